"""The smallest rectangular set that holds a family, and what taking it loses.

Robust planning needs a set in which nature may choose each row on its own.  A family of
which one model holds throughout, such as the samples of a posterior or the vertices of
a polytope, is not like that.  Its projection on the pairs is: for each pair the rows of
all models.  It is the smallest rectangular set that holds the family, and larger than
it: with M models and N pairs it has up to M^N kernels.  What that loses is reported in
two ways:

- how far a kernel of the hull can be from every model, as a total variation distance
  of rows (an upper bound: the radius of the family around its most central model);
- for a policy, by how much its worst and best values and costs move.  Under the hull
  they are found by policy iteration for nature, which alone chooses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from escapade.errors import SolverError, refusal
from escapade.model.cmdp import CMDP
from escapade.model.evaluation import evaluate
from escapade.model.policy import Policy
from escapade.typing import FloatArray, IntArray
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.models import Models
from escapade.uncertainty.rows import row_sums

__all__ = ["Hull", "HullLoss", "rectangular_hull"]

_ROUNDS = 1_000
_SAME = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HullLoss:
    """By how much bounds on a policy widen when the hull is taken, at the start.

    ``value_lower`` and ``value_upper`` are numbers, ``costs_lower`` and ``costs_upper``
    are ``(K,)``; none is negative but for ``error``, the accuracy of all of them.
    """

    value_lower: float
    value_upper: float
    costs_lower: FloatArray
    costs_upper: FloatArray
    error: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hull:
    """The rectangular hull of a family of models.

    Attributes
    ----------
    sets
        The hull; models whose row of a pair repeats an earlier one's are put aside.
    family
        The family.
    distance
        No kernel of the hull is further from every model than this: the largest total
        variation distance of a row, in [0, 1].
    centre
        The model from which that is measured.
    kernels_log10
        Logarithm of the number of kernels that the hull's vertices make up.
    """

    sets: Models
    family: Models
    distance: float
    centre: int
    kernels_log10: float

    @property
    def message(self) -> str:
        """One sentence on what was done."""
        return (
            f"{self.family.n_models} models became 10^{self.kernels_log10:.1f} kernels,"
            f" each within a total variation of {self.distance:.3g} of model "
            f"{self.centre} in every row"
        )

    def loss(self, cmdp: CMDP, policy: Policy, *, precision: float = 1e-9) -> HullLoss:
        """Return by how much the bounds on a policy widen, from the start.

        Parameters
        ----------
        cmdp
            The problem; its kernel is not used.
        policy
            A stationary policy.
        precision
            Accuracy of each evaluation.
        """
        self.family.check_matches(cmdp)
        results = [
            evaluate(model, policy, precision=precision)
            for model in self.family.members(cmdp)
        ]
        values = np.array([result.start_value for result in results])
        costs = np.array([result.start_costs for result in results])
        errors = [max(result.error for result in results)]

        def extreme(channel: int, sense: Sense) -> float:
            found, error = _extreme_of_hull(
                cmdp, policy, self.sets, channel, sense, precision
            )
            errors.append(error)
            return found

        channels = range(cmdp.n_costs)
        least = np.array([extreme(k, "min") for k in channels])
        most = np.array([extreme(k, "max") for k in channels])
        return HullLoss(
            value_lower=float(values.min() - extreme(-1, "min")),
            value_upper=float(extreme(-1, "max") - values.max()),
            costs_lower=costs.min(axis=0) - least,
            costs_upper=most - costs.max(axis=0),
            error=2.0 * max(errors),
        )


def rectangular_hull(family: Models) -> Hull:
    """Return the smallest rectangular set that holds a family, and its loss.

    Parameters
    ----------
    family
        Samples or vertices: a family of which one model holds throughout, as
        ``Models(cmdp, kernels, throughout=True)`` or
        ``Models.from_posterior_samples(samples)``.

    Examples
    --------
    >>> import escapade as ep
    >>> def plant(p, q):
    ...     return ep.CMDP(
    ...         [[[1 - p, p]], [[q, 1 - q]]],
    ...         [[1.0], [0.0]],
    ...         [[0.0], [1.0]],
    ...         discount=0.9,
    ...         budget=5.0,
    ...     )
    >>> plants = [plant(0.1, 0.1), plant(0.4, 0.4)]
    >>> family = ep.uncertainty.Models(plants[0], plants, throughout=True)
    >>> hull = ep.uncertainty.rectangular_hull(family)
    >>> round(hull.distance, 9), 10**hull.kernels_log10
    (0.3, 4.0)
    """
    if not isinstance(family, Models):
        raise refusal(
            "family", "a family of models (Models)", f"a {type(family).__name__}"
        )
    hull = family.hull()
    rows = hull.model_rows
    active, row_ptr = hull.active, hull.row_ptr
    radius = np.zeros(rows.shape[1])
    repeated = np.zeros_like(active)
    for m in range(rows.shape[1]):
        apart = np.stack(
            [row_sums(np.abs(column - rows[:, m]), row_ptr) for column in rows.T],
            axis=1,
        )
        far = np.where(active, 0.5 * apart, 0.0)
        radius[m] = far.max() if active[:, m].all() else np.inf
        repeated[:, m] = ((apart[:, :m] <= _SAME) & active[:, :m]).any(axis=1)
    smaller = hull.keep(~repeated)
    centre = int(np.argmin(radius))
    return Hull(
        sets=smaller,
        family=family,
        distance=float(radius[centre]),
        centre=centre,
        kernels_log10=float(np.log10(smaller.active.sum(axis=1)).sum()),
    )


def _extreme_of_hull(
    cmdp: CMDP,
    policy: Policy,
    sets: UncertaintySet,
    channel: int,
    sense: Sense,
    precision: float,
) -> tuple[float, float]:
    """Return the extreme cost (channel −1: value) of a policy from the start.

    Nature holds a kernel, evaluates it and takes the extreme rows for what it found,
    until that gains nothing; each round gains, and there are finitely many kernels.
    The second number bounds the distance from the extreme.
    """
    kernel: FloatArray = sets.nominal
    factor = cmdp.discount / (1.0 - cmdp.discount)
    for _ in range(_ROUNDS):
        result = evaluate(_with_kernel(cmdp, sets, kernel), policy, precision=precision)
        v = result.value if channel < 0 else result.costs[channel]
        better = sets.worst(v, sense=sense)
        present = row_sums(kernel * v[sets.successor], sets.row_ptr)
        room = float(np.abs(better - present).max())
        if room <= max(precision, 4.0 * result.error) * max(
            1.0, float(np.abs(v).max())
        ):
            return float(cmdp.start @ v), result.error + factor * room
        kernel = sets.worst_kernel(v, sense=sense)
    raise SolverError(
        f"nature's policy iteration did not end in {_ROUNDS} rounds (gain {room:.3g})"
    )


def _with_kernel(cmdp: CMDP, sets: UncertaintySet, kernel: FloatArray) -> CMDP:
    positive = kernel > 0.0
    before: IntArray = np.concatenate([[0], np.cumsum(positive)])
    return cmdp.replace(
        row_ptr=before[sets.row_ptr],
        successor=sets.successor[positive],
        probability=kernel[positive],
    )
