"""Models in the PRISM language, built by Storm.

Each state offers the choices that its guards allow, and no others: the masks are kept.
A choice goes by its label; where a state has several of one label, or labels are
missing, by its number among them.  What earns and what costs are named: a reward model,
or a label, which then stands for 1 a step in the states that carry it.

A program with intervals for probabilities becomes an
:class:`~escapade.uncertainty.Interval` set, which the agent is told as ``models``; the
true model of such a world is the middle of the set, and only one of those that are
possible.  Otherwise transitions are exact, and nobody is told them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from escapade.environments.world import World
from escapade.errors import InvalidFileError, MissingExtraError, refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray, IntArray
from escapade.uncertainty.interval import Interval

__all__ = ["from_prism"]

_POINT = 1e-12
"""Intervals narrower than this are probabilities."""


def from_prism(
    path: str | PathLike[str],
    *,
    reward: str,
    cost: str | Sequence[str],
    discount: float,
    budget: ArrayLike,
    constants: Mapping[str, Any] | None = None,
    **told: Any,
) -> World:
    """Return the world that a PRISM program describes: a DTMC or an MDP.

    Parameters
    ----------
    path
        The program.
    reward, cost
        Name of a reward model, or a label; for several budgets a list of costs.
    discount, budget
        As for :class:`escapade.CMDP`.
    constants
        Values of the constants that the program leaves open.
    told
        Further keywords of :class:`escapade.Knowledge`.

    Raises
    ------
    MissingExtraError
        If stormpy is not installed.
    InvalidFileError
        If Storm cannot read or build the program.
    """
    try:
        import stormpy
    except ImportError:
        raise MissingExtraError("stormpy", "prism") from None
    source = Path(path)
    if not source.is_file():
        raise InvalidFileError(f"path: expected a file, found none at {path}")
    try:
        program = stormpy.parse_prism_program(str(source))
        if constants:
            program, _ = stormpy.instantiate_constants(program, dict(constants))
        built = stormpy.build_model[stormpy.Interval](
            program, options=stormpy.BuilderOptions(build_full=True)
        )
    except (RuntimeError, stormpy.exceptions.StormError) as error:
        reason = " ".join(str(error).split())
        raise InvalidFileError(
            f"path: expected a PRISM program that Storm can build, found {path} "
            f"({reason[:200]})"
        ) from error
    kind = str(built.model_type).rpartition(".")[2]
    if kind not in ("DTMC", "MDP"):
        raise refusal("path", "a DTMC or an MDP", f"a {kind}", str(path))
    names = [cost] if isinstance(cost, str) else list(cost)
    choices = _choices(built)
    gains = _amounts("reward", built, reward, choices)
    paid = np.array([_amounts("cost", built, one, choices) for one in names])
    cmdp = _model(built, choices, gains, paid, discount=discount, budget=budget)
    intervals = (choices.upper - choices.lower > _POINT).any()
    return World(
        name=source.stem,
        description=f"{source.name}, a PRISM program.",
        cmdp=cmdp,
        told=lambda: _knowledge(cmdp, choices if intervals else None, told),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choices:
    """The rows of a model: one a choice, with bounds on its probabilities.

    ``first`` is ``[S + 1]``, pointers to the choices of each state.
    """

    first: IntArray
    labels: list[str]
    row_ptr: IntArray
    successor: IntArray
    lower: FloatArray
    upper: FloatArray

    @property
    def state(self) -> IntArray:
        """State of each choice."""
        states: IntArray = np.repeat(
            np.arange(self.first.size - 1), np.diff(self.first)
        )
        return states


def _choices(built: Any) -> _Choices:
    matrix = built.transition_matrix
    first = [matrix.get_row_group_start(s) for s in range(built.nr_states)]
    first.append(matrix.nr_rows)
    successor: list[int] = []
    bounds: list[tuple[float, float]] = []
    row_ptr, labels = [0], []
    for state in range(built.nr_states):
        seen: set[str] = set()
        for place, row in enumerate(range(first[state], first[state + 1])):
            for entry in matrix.get_row(row):
                successor.append(int(entry.column))
                bounds.append((_end(entry.value, "lower"), _end(entry.value, "upper")))
            row_ptr.append(len(successor))
            said = sorted(
                built.choice_labeling.get_labels_of_choice(row)
                if built.has_choice_labeling()
                else ()
            )
            label = ", ".join(said) or f"choice {place}"
            if label in seen:
                label = f"{label} #{place}"
            seen.add(label)
            labels.append(label)
    ends = np.array(bounds, dtype=np.float64).reshape(-1, 2)
    return _Choices(
        first=np.array(first, dtype=np.int64),
        labels=labels,
        row_ptr=np.array(row_ptr, dtype=np.int64),
        successor=np.array(successor, dtype=np.int64),
        lower=ends[:, 0],
        upper=ends[:, 1],
    )


def _end(interval: Any, which: str) -> float:
    end = getattr(interval, which)
    return float(end() if callable(end) else end)


def _amounts(argument: str, built: Any, name: str, choices: _Choices) -> FloatArray:
    """Return what each choice earns or costs, by a reward model or a label."""
    state = choices.state
    if name in built.reward_models:
        model = built.reward_models[name]
        if model.has_transition_rewards:
            raise refusal(
                argument, "rewards of states and choices", f"of transitions in {name!r}"
            )
        amount = np.zeros(state.size)
        if model.has_state_rewards:
            amount += np.array([_point(value) for value in model.state_rewards])[state]
        if model.has_state_action_rewards:
            amount += np.array([_point(v) for v in model.state_action_rewards])
        return amount
    if name in built.labeling.get_labels():
        carried = np.zeros(built.nr_states)
        carried[list(built.labeling.get_states(name))] = 1.0
        marked: FloatArray = carried[state]
        return marked
    known = sorted([*built.reward_models, *built.labeling.get_labels()])
    raise refusal(argument, f"a reward model or a label among {known}", repr(name))


def _point(interval: Any) -> float:
    low, high = _end(interval, "lower"), _end(interval, "upper")
    if high - low > _POINT:
        raise refusal("path", "rewards that are numbers", f"[{low:g}, {high:g}]")
    return low


def _model(
    built: Any,
    choices: _Choices,
    gains: FloatArray,
    paid: FloatArray,
    *,
    discount: float,
    budget: ArrayLike,
) -> CMDP:
    """Return the model over numbered actions, one a label."""
    actions = sorted(set(choices.labels))
    number = {label: k for k, label in enumerate(actions)}
    action = np.array([number[label] for label in choices.labels])
    order = np.lexsort((action, choices.state))
    rows = sp.csr_array(
        (_middle(choices), choices.successor, choices.row_ptr),
        shape=(action.size, built.nr_states),
    )[order]
    rows.sort_indices()
    start = np.zeros(built.nr_states)
    initial = list(built.initial_states)
    start[initial] = 1.0 / len(initial)
    names = None
    if built.has_state_valuations():
        said = built.state_valuations
        names = [str(said.to_string(s)) for s in range(built.nr_states)]
    return CMDP.from_pairs(
        state_ptr=choices.first,
        pair_action=action[order],
        row_ptr=rows.indptr,
        successor=rows.indices,
        probability=rows.data,
        reward=gains[order],
        cost=paid[:, order],
        n_actions=len(actions),
        discount=discount,
        budget=budget,
        start=start,
        state_names=names,
        action_names=actions,
    )


def _middle(choices: _Choices) -> FloatArray:
    """Return a distribution within the bounds: as far between them in every entry."""
    starts = choices.row_ptr[:-1]
    low = np.add.reduceat(choices.lower, starts)
    room = np.add.reduceat(choices.upper - choices.lower, starts)
    share = np.divide(1.0 - low, room, out=np.zeros_like(low), where=room > _POINT)
    bad = (share < -_POINT) | (share > 1.0 + _POINT)
    if bad.any():
        row = int(np.argmax(bad))
        raise refusal(
            "path",
            "intervals that hold a distribution",
            f"ends that sum to {low[row]:g} and {low[row] + room[row]:g}",
            f"state {choices.state[row]}, {choices.labels[row]}",
        )
    each = np.repeat(share, np.diff(choices.row_ptr))
    probability: FloatArray = choices.lower + each * (choices.upper - choices.lower)
    return probability


def _knowledge(
    cmdp: CMDP, choices: _Choices | None, told: Mapping[str, Any]
) -> Knowledge:
    """Return what an agent is told: spaces, bounds, masks, and the intervals."""
    given: dict[str, Any] = {}
    if choices is not None:
        given["models"] = _intervals(cmdp, choices)
    return Knowledge(
        cmdp.n_states,
        cmdp.n_actions,
        **{
            "discount": cmdp.discount,
            "budget": cmdp.budget,
            "reward_max": cmdp.reward_max,
            "cost_max": cmdp.cost_max,
            "start": cmdp.start,
            "available": cmdp.available,
            "state_names": cmdp.state_names,
            "action_names": cmdp.action_names,
            **given,
            **told,
        },
    )


def _intervals(cmdp: CMDP, choices: _Choices) -> Interval:
    """Return the set of all kernels that the program allows."""
    names = cmdp.action_names
    assert names is not None
    number = {label: k for k, label in enumerate(names)}
    action = np.array([number[label] for label in choices.labels])
    order = np.lexsort((action, choices.state))
    shape = (order.size, cmdp.n_states)

    def over_pairs(ends: FloatArray) -> FloatArray:
        rows = sp.csr_array((ends, choices.successor, choices.row_ptr), shape=shape)
        chosen = rows[order]
        chosen.sort_indices()
        return np.asarray(chosen.data, dtype=np.float64)

    return Interval(
        cmdp, lower=over_pairs(choices.lower), upper=over_pairs(choices.upper)
    )
