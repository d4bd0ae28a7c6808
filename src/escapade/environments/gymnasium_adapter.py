"""Any Gymnasium environment with discrete spaces, brought in by one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import gymnasium
import numpy as np

from escapade.environments.brought import (
    Brought,
    BroughtEnv,
    OnDone,
)
from escapade.environments.costs_of import Costs, CostSource
from escapade.environments.flattening import Flattening
from escapade.environments.rewards_of import RewardMap
from escapade.environments.tables_of import Outcomes, own_table, to_model
from escapade.environments.telling import check_keywords
from escapade.environments.told_of import with_costs, with_end
from escapade.environments.wrapping import altering, without_time_limits
from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.cmdp import CMDP
from escapade.typing import ArrayLike, FloatArray

__all__ = ["from_gymnasium"]

_NAMES = ("state_names", "action_names", "coordinates")
_STARTS = 200
"""Resets from which the start distribution is estimated where it is not told."""


def from_gymnasium(
    env: gymnasium.Env[Any, Any] | str,
    *,
    cost: CostSource | Sequence[CostSource],
    on_done: OnDone = "reset",
    discount: float,
    budget: ArrayLike,
    cost_max: ArrayLike = 1.0,
    reward_range: tuple[float, float] | None = None,
    start: ArrayLike | None = None,
    known_costs: bool = False,
    **told: Any,
) -> Brought:
    """Bring a Gymnasium environment in.

    Parameters
    ----------
    env
        The environment, or its id.  Observations and actions are ``Discrete``,
        ``MultiDiscrete``, ``MultiBinary``, a bounded ``Box`` of whole numbers, or
        ``Tuple`` or ``Dict`` of these.
    cost
        Where the cost of a step stands: a key of ``info``, ``SIX_TUPLE``, or a function
        of state, action, next state (as numbers) and ``info``; a list of them for
        several channels.  There is no default, and a step without a cost is an error.
    on_done
        ``"reset"``: the end of an episode leads to the next start.  ``"absorb"``: it
        leads to an end state for good.  Time limits are not ends:
        every ``TimeLimit`` is taken off ``env``.
    discount, budget
        Of the problem that an agent is to solve.
    cost_max
        Bound on every sample of a cost.
    reward_range
        Bounds on the rewards; read off the table where there is one.  A table counts
        only where no wrapper around the environment may change what it says.
    start
        A state or a distribution in which life begins; by default the environment's
        ``initial_state_distrib``, or the frequencies over 200 resets.
    known_costs
        Whether the agent is told what steps cost, where costs are functions that do not
        look into ``info``: the mean or the largest over the next states that are held
        possible (:mod:`escapade.environments.told_of`).
    told
        More that is known, as keywords of :class:`escapade.Knowledge`: ``support``,
        ``known_rows``, ``models``, ``costs``, ``free``, ``log``, ...  Without any of it
        no agent can promise much: see :func:`escapade.preflight`.  With
        ``on_done="absorb"`` it may be over the environment's own states; of the end
        everything is known.

    Returns
    -------
    Brought
        Its ``env``, ``knowledge``, and ``cmdp``: the model, where the environment has a
        table ``P`` and costs are functions that need no ``info``.

    Examples
    --------
    >>> import escapade as ep
    >>> holes = {5, 7, 11, 12}
    >>> lake = ep.environments.from_gymnasium(
    ...     "FrozenLake-v1", cost=lambda s, a, t, info: t in holes,
    ...     discount=0.95, budget=2.0)
    >>> lake
    Brought('FrozenLake-v1', 16 states, 4 actions, rewards in [0, 1], as they are, ...)
    >>> state, info = lake.env.reset(seed=1)
    >>> state, reward, _, _, info = lake.env.step(0)
    >>> info["cost"]
    0.0
    """
    if on_done not in get_args(OnDone):
        raise refusal("on_done", f"one of {list(get_args(OnDone))}", repr(on_done))
    check_keywords(told, settled=("reward_max",))
    costs = Costs(cost, cost_max)
    if np.size(budget) != costs.n:
        raise refusal("budget", f"{costs.n} of them, one a cost", np.size(budget))
    made = gymnasium.make(env) if isinstance(env, str) else env
    if not isinstance(made, gymnasium.Env):
        raise refusal("env", "a Gymnasium environment, or an id", type(env).__name__)
    inner = without_time_limits(made)
    observations = Flattening(inner.observation_space, argument="observation")
    actions = Flattening(inner.action_space, argument="action")
    outcomes, without = own_table(inner, observations, actions)
    rewards = _rewards(reward_range, outcomes, without)
    brought = BroughtEnv(
        inner,
        costs=costs,
        rewards=rewards,
        observations=observations,
        actions=actions,
        on_done=on_done,
    )
    if isinstance(env, str):
        brought.try_out()
    begins, sure = _start(start, inner, observations)
    if on_done == "absorb":
        told = with_end(told, observations.n, actions.n, rewards.shifted(0.0, 0))
    cmdp, source = _model(
        outcomes,
        without,
        costs=costs,
        rewards=rewards,
        start=begins,
        on_done=on_done,
        discount=discount,
        budget=budget,
        names={name: told[name] for name in _NAMES if name in told},
    )
    knowledge = Knowledge(
        brought.n_states,
        actions.n,
        discount=discount,
        budget=budget,
        reward_max=rewards.reward_max,
        cost_max=costs.cost_max,
        start=np.append(begins, np.zeros(brought.n_states - observations.n)),
        **{"reward_offset": rewards.low, **told},
    )
    if known_costs:
        if "costs" in told or "cost_bounds" in told:
            raise refusal("known_costs", "False beside costs that are told", "True")
        ends = np.arange(brought.n_states) >= observations.n
        if on_done == "reset":
            ends = (begins > 0.0) | (not sure)
        knowledge = with_costs(
            knowledge, costs, n=observations.n, ends=ends, outcomes=outcomes
        )
    return Brought(
        name=_name(inner),
        env=brought,
        knowledge=knowledge,
        cmdp=cmdp,
        model_source=source,
        rewards=rewards,
    )


def _name(env: gymnasium.Env[Any, Any]) -> str:
    spec = env.spec
    return type(env.unwrapped).__name__ if spec is None else spec.id


def _rewards(
    reward_range: tuple[float, float] | None, outcomes: Outcomes | None, without: str
) -> RewardMap:
    if reward_range is not None:
        if len(reward_range) != 2:
            raise refusal("reward_range", "a lower and an upper bound", reward_range)
        return RewardMap.between(*reward_range, argument="reward_range")
    if outcomes is None:
        raise refusal("reward_range", f"bounds on the rewards, as {without}", "none")
    rewards = [
        reward for actions in outcomes for lines in actions for _, _, reward, _ in lines
    ]
    return RewardMap.between(min(rewards), max(rewards), argument="reward_range")


def _start(
    start: ArrayLike | None, env: gymnasium.Env[Any, Any], observations: Flattening
) -> tuple[FloatArray, bool]:
    """Return the start distribution over numbered states, and whether it is sure."""
    from escapade.model.arguments import read_start

    if start is not None:
        return read_start(start, observations.n), True
    told: Any = getattr(env.unwrapped, "initial_state_distrib", None)
    if altering(env) is None and np.shape(told) == (observations.n,):
        return read_start(told, observations.n), True
    seen = np.zeros(observations.n)
    for seed in range(_STARTS):
        observation, _ = env.reset(seed=seed)
        seen[observations.number(observation)] += 1.0
    return seen / _STARTS, False


def _model(
    outcomes: Outcomes | None, without: str, *, costs: Costs, **how: Any
) -> tuple[CMDP | None, str]:
    """Return the model, and where it came from or why there is none."""
    if outcomes is None:
        return None, f"none, as {without}"
    if not costs.are_functions:
        return None, "none, as its table has no costs and they are no function"
    try:
        return to_model(outcomes, costs=costs, **how), "its own table"
    except (KeyError, AttributeError) as error:
        return None, f"none, as the cost needs {error} of info, which a table lacks"
