"""Is it an uncertainty set?  What robust planning takes on trust.

Robust planning asks a set one thing, the extreme of ``P · v`` over its members, and
believes the answer.  :func:`check_uncertainty_set` compares that answer with members
that the set itself draws, with the member that is said to attain it, and with the laws
that any support function obeys.
"""

from __future__ import annotations

import numpy as np

from escapade.model.cmdp import CMDP
from escapade.testing.laws import require
from escapade.typing import FloatArray
from escapade.uncertainty.base import Sense, UncertaintySet

__all__ = ["check_uncertainty_set"]

_SENSES: tuple[Sense, Sense] = ("min", "max")


def check_uncertainty_set(
    sets: UncertaintySet,
    cmdp: CMDP,
    *,
    draws: int = 20,
    seed: int = 0,
    tolerance: float = 1e-8,
) -> None:
    """Hold an uncertainty set over the pairs of a problem to its laws.

    Parameters
    ----------
    sets
        The set.
    cmdp
        The problem it belongs to.
    draws
        How many members to draw, and how many vectors ``v`` to try.
    seed
        Seed of both.
    tolerance
        Rounding to allow, relative to the largest entry of ``v``.

    Raises
    ------
    AssertionError
        With the law and the numbers.

    Examples
    --------
    >>> import escapade as ep
    >>> world = ep.environments.three_state_loop()
    >>> check_uncertainty_set(ep.uncertainty.L1Ball(world.cmdp, radius=0.2), world.cmdp)
    """
    name = type(sets).__name__
    rng = np.random.default_rng(seed)
    _check_rows(sets, cmdp, name)
    members = [sets.nominal, *(sets.sample(rng) for _ in range(draws))]
    for place, member in enumerate(members):
        what = "the nominal kernel" if place == 0 else f"draw {place}"
        _check_member(sets, member, f"{name}, {what}")
    for _ in range(draws):
        v = rng.normal(size=sets.n_states) * 10.0 ** rng.integers(-2, 4)
        scale = tolerance * max(1.0, float(np.abs(v).max()))
        for sense in _SENSES:
            _check_extreme(sets, cmdp, v, sense, members, scale, name)


def _check_rows(sets: UncertaintySet, cmdp: CMDP, name: str) -> None:
    shape = (sets.n_pairs, sets.n_states)
    require(
        shape == (cmdp.n_pairs, cmdp.n_states), "fits the problem", name, f"{shape}"
    )
    row_ptr, successor = sets.row_ptr, sets.successor
    lengths = np.diff(row_ptr)
    require(bool((lengths > 0).all()), "has a successor for every pair", name, lengths)
    inner = np.ones(successor.size, dtype=np.bool_)
    inner[row_ptr[:-1]] = False
    ordered = successor[1:][inner[1:]] > successor[:-1][inner[1:]]
    require(bool(ordered.all()), "lists successors in increasing order", name, "others")
    unreached = (sets.nominal > 0.0) & ~sets.reachable
    require(
        not unreached.any(),
        "reaches what its nominal kernel reaches",
        name,
        f"entry {int(np.argmax(unreached))}",
    )


def _check_member(sets: UncertaintySet, member: FloatArray, place: str) -> None:
    sums = np.add.reduceat(member, sets.row_ptr[:-1])
    fits = bool((member >= 0.0).all()) and bool(np.allclose(sums, 1.0, atol=1e-9))
    require(fits, "is a kernel", place, f"sums {sums.min()} to {sums.max()}")
    stray = (member > 0.0) & ~sets.reachable
    require(
        not stray.any(), "reaches what is reachable only", place, int(np.argmax(stray))
    )
    inside = sets.contains(member)
    require(
        bool(inside.all()), "is in the set", place, f"pair {int(np.argmin(inside))}"
    )


def _check_extreme(
    sets: UncertaintySet,
    cmdp: CMDP,
    v: FloatArray,
    sense: Sense,
    members: list[FloatArray],
    scale: float,
    name: str,
) -> None:
    sign = 1.0 if sense == "max" else -1.0
    place = f"{name}, sense {sense!r}"
    extreme = sets.worst(v, sense=sense)

    def expectation(member: FloatArray) -> FloatArray:
        sums: FloatArray = np.add.reduceat(
            member * v[sets.successor], sets.row_ptr[:-1]
        )
        return sums

    for member in members:
        beyond = sign * (expectation(member) - extreme)
        require(
            bool((beyond <= scale).all()),
            "no member goes beyond the extreme",
            f"{place}, pair {int(np.argmax(beyond))}",
            f"by {beyond.max():.3g}",
        )
    kernel = sets.worst_kernel(v, sense=sense)
    if sets.exact:
        _check_member(sets, kernel, f"{place}, the extreme kernel")
    off = np.abs(expectation(kernel) - extreme)
    require(
        bool((off <= scale).all()),
        "the extreme kernel attains the extreme",
        f"{place}, pair {int(np.argmax(off))}",
        f"{off.max():.3g} off",
    )
    laws = {
        "moves with a constant": sets.worst(v + 3.0, sense=sense) - (extreme + 3.0),
        "scales with a factor": sets.worst(2.0 * v, sense=sense) - 2.0 * extreme,
        "turns round with the sign": sets.worst(
            -v, sense="min" if sense == "max" else "max"
        )
        + extreme,
        "is what a backup is made of": sets.backup(v, cmdp.reward, 0.5, sense=sense)
        - (cmdp.reward + 0.5 * extreme),
    }
    for law, difference in laws.items():
        require(
            bool((np.abs(difference) <= 4.0 * scale).all()),
            law,
            place,
            f"{np.abs(difference).max():.3g} off",
        )
