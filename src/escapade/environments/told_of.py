"""What follows from how an environment is brought in, told to the agent.

**The end.**  With ``on_done="absorb"`` the library adds a state of its own, the end.
Nobody else can speak of it, so what is known of it is added to what the user tells:
every action leads from it to itself, costs nothing, and earns a reward of 0 before the
shift.  What the user tells may then be over the environment's own states; a support of
these says nothing of ends, so any step may end.

**Costs.**  A cost that was given as a function of state, action and next state may be
told to the agent (``known_costs``).  Where the function depends on the next state, what
is told is the largest value over those that are held possible; the mean, where the row
is known.  The step that ends an episode is paid for by the state in which it ended,
which a support over the life that goes on does not show: where a step may have ended an
episode, every state counts, unless the environment's table says which are possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from escapade.environments.costs_of import Costs
from escapade.environments.tables_of import Outcomes
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.layout import read_array
from escapade.typing import BoolArray, FloatArray

__all__ = ["with_costs", "with_end"]

_MOST_CALLS = 5_000_000

_GRIDS = {
    "available": True,
    "free": True,
    "exact_rewards": True,
    "exact_costs": True,
    "varying": False,
    "costs": 0.0,
    "cost_bounds": 0.0,
}
"""Tables of one number a pair, and what they hold at the end."""


def with_end(
    told: dict[str, Any], n: int, n_actions: int, rest: float
) -> dict[str, Any]:
    """Return what is told, over ``n`` states and an end in which ``rest`` is earned."""
    all_told = dict(told)
    for name, value in _GRIDS.items():
        if told.get(name) is not None:
            all_told[name] = _longer(name, told[name], n, n_actions, value)
    if told.get("free") is None:
        all_told["free"] = np.arange(n + 1)[:, np.newaxis] + np.zeros(n_actions) >= n
    rewards = told.get("rewards")
    if rewards is None:
        rewards = np.full((n, n_actions), np.nan)
    all_told["rewards"] = _longer("rewards", rewards, n, n_actions, rest)
    if told.get("support") is not None:
        all_told["support"] = _support(told["support"], n, n_actions)
    end = _end_rows(n, n_actions)
    if told.get("known_rows") is None:
        all_told["known_rows"] = end
    states: Any = told.get("known_states")
    if np.shape(states) == (n,) and np.asarray(states).dtype == np.bool_:
        all_told["known_states"] = np.append(states, True)
    names: Sequence[str] | None = told.get("state_names")
    if names is not None and len(names) == n:
        all_told["state_names"] = [*names, "end"]
    places = told.get("coordinates")
    if places is not None and len(places) == n:
        beyond = np.max(places, axis=0) + 1.0
        all_told["coordinates"] = np.vstack([places, beyond])
    models = told.get("models")
    if models is not None and getattr(models, "n_states", n + 1) == n:
        raise refusal(
            "models",
            f"a set over {n + 1} states, the last of them the end (resets='end', where "
            "a Discretizer makes it)",
            f"one over {n}",
        )
    return all_told


def _longer(name: str, table: Any, n: int, n_actions: int, value: Any) -> Any:
    """Return a table ``(..., S, A)`` with a row for the end; others as they are."""
    given = read_array(name, f"a table of {n} states and {n_actions} actions", table)
    if given.ndim < 2 or given.shape[-2:] != (n, n_actions):
        return table
    row = np.full((*given.shape[:-2], 1, n_actions), value, dtype=given.dtype)
    return np.concatenate([given, row], axis=-2)


def _end_rows(n: int, n_actions: int) -> sp.csr_array:
    """Return rows ``(S · A, S)``, empty but for those of the end."""
    row = n * n_actions + np.arange(n_actions)
    where = (row, np.full(n_actions, n))
    shape = ((n + 1) * n_actions, n + 1)
    return sp.csr_array(sp.coo_array((np.ones(n_actions), where), shape=shape))


def _support(support: Any, n: int, n_actions: int) -> Any:
    """Return a support over the environment's states with the end after every step."""
    rows: Any = support
    if isinstance(support, list | tuple) and any(map(sp.issparse, support)):
        return support
    if not sp.issparse(support):
        given = read_array("support", "booleans (S, A, S)", support)
        if given.shape != (n, n_actions, n) or given.dtype != np.bool_:
            return support
        rows = given.reshape(n * n_actions, n)
    if rows.shape != (n * n_actions, n):
        return support
    stored = sp.coo_array(cast(Any, rows))
    ending = np.arange(n * n_actions)
    row = np.concatenate([stored.row, ending])
    column = np.concatenate([stored.col, np.full(ending.size, n)])
    shape = ((n + 1) * n_actions, n + 1)
    table = sp.csr_array(sp.coo_array((np.ones(row.size), (row, column)), shape=shape))
    return sp.csr_array(table + _end_rows(n, n_actions))


def with_costs(
    knowledge: Knowledge,
    costs: Costs,
    *,
    n: int,
    ends: BoolArray,
    outcomes: Outcomes | None,
) -> Knowledge:
    """Return knowledge of what steps cost, as far as functions and it tell.

    Parameters
    ----------
    knowledge
        The rest of what is known.
    costs
        Functions of state, action and next state.
    n
        The environment's own states.
    ends
        Mask of the states whose coming may be the end of an episode.
    outcomes
        The environment's table, if it has one.
    """
    if not costs.are_functions:
        raise refusal(
            "known_costs", "costs that are functions", "a key of info, or SIX_TUPLE"
        )
    ptr, exact = knowledge.row_ptr, knowledge.exact_pairs
    grid = (costs.n, knowledge.n_states, knowledge.n_actions)
    known, bounds = np.full(grid, np.nan), np.full(grid, np.nan)
    calls = 0
    for pair in range(knowledge.n_pairs):
        s, a = knowledge.pairs.pair_state[pair], knowledge.pairs.pair_action[pair]
        if s >= n:  # the end, which is told already
            continue
        entries = slice(int(ptr[pair]), int(ptr[pair + 1]))
        after = knowledge.successor[entries].tolist()
        weights = knowledge.lower[entries] if exact[pair] else None
        if outcomes is not None:
            lines = [line for line in outcomes[s][a] if line[0] > 0.0]
            after = [line[1] for line in lines]
            weights = np.array([line[0] for line in lines]) if exact[pair] else None
        elif ends[after].any():
            after, weights = list(range(n)), None
        calls += len(after)
        if calls > _MOST_CALLS:
            raise refusal(
                "known_costs",
                f"at most {_MOST_CALLS} possible steps to be asked of (tell a support, "
                "or costs)",
                "more",
            )
        paid = np.array([_asked(costs, int(s), int(a), t) for t in after])
        bounds[:, s, a] = paid.max(axis=0)
        if weights is not None or (paid == paid[0]).all():
            mean = paid[0] if weights is None else weights @ paid / weights.sum()
            known[:, s, a] = np.clip(mean, paid.min(axis=0), paid.max(axis=0))
    return knowledge.replace(costs=known, cost_bounds=bounds)


def _asked(costs: Costs, state: int, action: int, after: int) -> FloatArray:
    try:
        return costs.of_step(state, action, after, {})
    except (KeyError, AttributeError) as error:
        raise refusal(
            "known_costs", "costs that do not look into info", f"one that needs {error}"
        ) from None
