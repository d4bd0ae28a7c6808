r"""Sets that a posterior believes in: credible regions, from a Dirichlet or from draws.

A *joint* credible region of level 1 − δ holds the whole kernel, all pairs at once, with
posterior probability 1 − δ.  It is found without a union bound: give each row its shape
(a centre and a scale), let :math:`T` be the largest distance of a drawn kernel from
its centres in units of its scales, and multiply the scales by the
:math:`\lceil (M+1)(1-δ) \rceil`-th smallest of M such T.  The next draw then lies
inside with probability at least 1 − δ, exactly so for any shape that was fixed
beforehand: ranks of exchangeable draws are uniform.  At least 1/δ − 1 draws are needed.

With a Dirichlet posterior the shape is known.  With draws from elsewhere (PyMC,
NumPyro, emcee) every other draw gives the shape and the rest set the level; draws of a
Markov chain are exchangeable only in the long run, so thin them.

The level is Bayesian: given what was seen, and given the prior (E30).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from escapade.errors import refusal
from escapade.model.arguments import read_generator
from escapade.model.cmdp import CMDP
from escapade.model.layout import read_array
from escapade.theory.concentration import relative_entropy
from escapade.typing import FloatArray, Seed
from escapade.uncertainty.evidence import Counted
from escapade.uncertainty.rows import Rows, frozen, row_sums
from escapade.uncertainty.tables import Frame

__all__ = [
    "Posterior",
    "Samples",
    "credible_factor",
    "dirichlet",
    "read_samples",
]

_LEAST = 1e-300
_ROUNDING = 1e-12


def l1_distance(p: FloatArray, q: FloatArray, rows: Rows) -> FloatArray:
    """Return the L1 distance of each row."""
    return row_sums(np.abs(p - q), rows.row_ptr)


def entropy_distance(p: FloatArray, q: FloatArray, rows: Rows) -> FloatArray:
    """Return the relative entropy of ``q`` from ``p`` of each row."""
    return relative_entropy(p, q, rows.row_ptr)


def credible_factor(largest: FloatArray, delta: float) -> float:
    """Return the multiple of the scales that holds a further draw with 1 − δ.

    ``largest`` is T for each of M draws.
    """
    rank = math.ceil((largest.size + 1) * (1.0 - delta) - 1e-9)
    if rank > largest.size:
        raise refusal(
            "draws",
            f"at least {math.ceil(1.0 / delta - 1.0)} to set a level of {1 - delta:g}",
            largest.size,
        )
    return float(np.partition(largest, rank - 1)[rank - 1])


def in_scales(distance: FloatArray, scale: FloatArray) -> float:
    """Return the largest distance in units of its scale; rounding of 0 counts as 0."""
    with np.errstate(over="ignore"):
        units = distance / np.maximum(scale, _LEAST)
    return float(units[distance > _ROUNDING].max(initial=0.0))


def radii(scale: FloatArray, factor: float, most: float) -> FloatArray:
    """Return ``factor`` scales, at most ``most``."""
    with np.errstate(over="ignore", invalid="ignore"):
        multiple = np.where(scale > 0.0, scale * factor, 0.0)
    result: FloatArray = np.minimum(multiple, most)
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """A Dirichlet posterior of every row; ``rows`` has its mean as nominal."""

    rows: Rows
    alpha: FloatArray

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw a kernel, ``[entries]``."""
        weight = rng.standard_gamma(self.alpha)
        total = row_sums(weight, self.rows.row_ptr)
        total = np.repeat(np.maximum(total, _LEAST), self.rows.support_size)
        return weight / total

    def deviation(self) -> FloatArray:
        """Return the standard deviation of every probability."""
        total = np.repeat(
            row_sums(self.alpha, self.rows.row_ptr), self.rows.support_size
        )
        mean = self.rows.nominal
        spread: FloatArray = np.sqrt(mean * (1.0 - mean) / (total + 1.0))
        return spread

    def l1_radius(self, delta: float, draws: int, seed: Seed) -> FloatArray:
        """Return L1 radii of joint credibility 1 − δ."""
        scale = row_sums(self.deviation(), self.rows.row_ptr)
        factor = self._factor(l1_distance, scale, delta, draws, seed)
        return radii(scale, factor, 2.0)

    def kl_radius(self, delta: float, draws: int, seed: Seed) -> FloatArray:
        """Return relative entropies of joint credibility 1 − δ."""
        total = row_sums(self.alpha, self.rows.row_ptr)
        scale = (self.rows.support_size - 1.0) / (2.0 * total)  # half a χ² a degree
        factor = self._factor(entropy_distance, scale, delta, draws, seed)
        return radii(scale, factor, np.inf)

    def _factor(
        self,
        distance: Callable[[FloatArray, FloatArray, Rows], FloatArray],
        scale: FloatArray,
        delta: float,
        draws: int,
        seed: Seed,
    ) -> float:
        rng = read_generator("seed", seed)
        largest = np.empty(draws)
        for m in range(draws):
            far = distance(self.rows.nominal, self.draw(rng), self.rows)
            largest[m] = in_scales(far, scale)
        return credible_factor(largest, delta)

    def bounds(self, delta: float, families: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds on every probability: quantiles of its Beta marginal.

        The level of each is raised so that all hold at once with credibility 1 − δ.
        """
        total = np.repeat(
            row_sums(self.alpha, self.rows.row_ptr), self.rows.support_size
        )
        rest = np.maximum(total - self.alpha, _LEAST)
        tail = 0.5 * delta / families
        mean = self.rows.nominal
        lower = np.minimum(betaincinv(self.alpha, rest, tail), mean)
        upper = np.maximum(betaincinv(self.alpha, rest, 1.0 - tail), mean)
        certain = np.repeat(self.rows.support_size == 1, self.rows.support_size)
        return np.where(certain, 1.0, lower), np.where(certain, 1.0, upper)


def dirichlet(counted: Counted, prior: float) -> Posterior:
    """Return the posterior for a Dirichlet prior of ``prior`` a possible successor."""
    if not (math.isfinite(prior) and prior > 0.0):
        raise refusal("prior", "a finite number above 0", prior)
    rows = counted.rows
    alpha = rows.spread(counted.counts) + prior
    total = np.repeat(row_sums(alpha, rows.row_ptr), rows.support_size)
    return Posterior(rows=rows.with_nominal(alpha / total), alpha=frozen(alpha))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Draws of a kernel, ``probability`` being ``[entries, samples]``."""

    rows: Rows
    probability: FloatArray

    def halves(self) -> tuple[FloatArray, FloatArray]:
        """Return the draws that give the shape, and those that set the level."""
        if self.probability.shape[1] < 4:
            raise refusal("samples", "at least 4 draws", self.probability.shape[1])
        return self.probability[:, 0::2], self.probability[:, 1::2]

    def ball(
        self,
        distance: Callable[[FloatArray, FloatArray, Rows], FloatArray],
        delta: float,
        most: float,
    ) -> tuple[Rows, FloatArray]:
        """Return rows around the mean and the radii of joint credibility 1 − δ."""
        shape, level = self.halves()
        rows = self.rows.with_nominal(_normalised(shape.mean(axis=1), self.rows))
        far = [distance(rows.nominal, draw, rows) for draw in shape.T]
        scale: FloatArray = np.mean(far, axis=0)
        largest = [
            in_scales(distance(rows.nominal, draw, rows), scale) for draw in level.T
        ]
        return rows, radii(scale, credible_factor(np.array(largest), delta), most)

    def box(self, delta: float) -> tuple[Rows, FloatArray, FloatArray]:
        """Return rows around the mean and bounds of joint credibility 1 − δ."""
        shape, level = self.halves()
        centre = _normalised(shape.mean(axis=1), self.rows)
        scale = shape.std(axis=1)
        largest = [in_scales(np.abs(draw - centre), scale) for draw in level.T]
        around = radii(scale, credible_factor(np.array(largest), delta), 1.0)
        return self.rows.with_nominal(centre), centre - around, centre + around


def read_samples(samples: Any, cmdp: CMDP | None) -> Samples:
    """Read ``(samples, S, A, S)``, ``(samples, S·A, S)`` or ``(samples, pairs, S)``.

    A successor is possible where some sample gives it a positive probability.
    """
    array = read_array("samples", "an array of numbers", samples)
    if array.dtype.kind not in "fiub" or array.ndim not in (3, 4) or not len(array):
        raise refusal(
            "samples",
            "an array of shape (samples, S, A, S) or (samples, pairs, S)",
            f"dtype {array.dtype}, shape {array.shape}",
        )
    n_states = array.shape[-1]
    shape = array.shape[1:]
    frame = Frame.of_shape("samples", shape) if cmdp is None else Frame.of(cmdp)
    if frame.n_states != n_states or (len(shape) == 3 and shape[0] != n_states):
        raise refusal("samples", f"{frame.n_states} states", f"shape {array.shape}")
    table = array.reshape(len(array), -1, n_states)
    if table.shape[1] != frame.n_pairs:
        n_actions, rest = divmod(table.shape[1], n_states)
        if rest or n_actions <= int(frame.pair_action.max()):
            raise refusal("samples", f"{frame.n_pairs} pairs", f"shape {array.shape}")
        chosen = frame.pair_state.astype(np.int64) * n_actions + frame.pair_action
        table = table[:, chosen]
    return _possible(np.asarray(table, dtype=np.float64), frame)


def _possible(table: FloatArray, frame: Frame) -> Samples:
    """Return the samples on the entries that are positive in any of them."""
    bad = ~(np.isfinite(table) & (table >= 0.0))
    if bad.any():
        m, pair, state = np.argwhere(bad)[0].tolist()
        raise refusal(
            "samples",
            "finite probabilities of at least 0",
            float(table[m, pair, state]),
            f"sample {m}, {frame.name(pair)}, next state {state}",
        )
    sums = table.sum(axis=2)
    off = np.abs(sums - 1.0) > 1e-6  # samplers often work in single precision
    if off.any():
        m, pair = np.argwhere(off)[0].tolist()
        raise refusal(
            "samples",
            "rows that sum to 1",
            f"a sum of {sums[m, pair]:.10g}",
            f"sample {m}, {frame.name(pair)}",
        )
    pair, state = np.nonzero((table > 0.0).any(axis=0))
    pointers = np.searchsorted(pair, np.arange(frame.n_pairs + 1))
    probability = table[:, pair, state] / sums[:, pair]
    rows = Rows(
        n_states=frame.n_states,
        stored_ptr=frozen(pointers.astype(np.int64)),
        stored=frozen(state.astype(np.int32)),
        stored_nominal=frozen(probability[0].copy()),
        pair_state=frame.pair_state,
        pair_action=frame.pair_action,
    )
    return Samples(rows=rows, probability=np.ascontiguousarray(probability.T))


def _normalised(mean: FloatArray, rows: Rows) -> FloatArray:
    total = np.repeat(row_sums(mean, rows.row_ptr), rows.support_size)
    return mean / total
