"""Is it an agent?  What everyone has to get right who lives in the loop.

An agent is asked, acts and is told; see :class:`escapade.typing.Agent`.  Real plants
call late, twice, or in the wrong order, so the order of calls is part of the law.
Whether a promise is kept on average is for :func:`escapade.audit` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.agent.phases import Phase
from escapade.errors import EscapadeError, refusal
from escapade.testing.laws import require
from escapade.typing import Agent, Decision

if TYPE_CHECKING:
    from escapade.environments.world import World
    from escapade.knowledge.knowledge import Knowledge

__all__ = ["check_agent"]

MakeAgent = Callable[["Knowledge", int], Agent]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Life:
    actions: list[int]
    promises: list[tuple[float, ...]]
    plans: list[int]


def check_agent(
    make_agent: MakeAgent,
    world: World | None = None,
    *,
    steps: int = 60,
    seed: int = 0,
) -> None:
    """Hold an agent to the laws of the loop.

    Parameters
    ----------
    make_agent
        ``make_agent(knowledge, seed)`` returns a new agent.
    world
        Where it lives; by default the loop of three states.
    steps
        How long each of its lives is.
    seed
        Of the agent and of the world.

    Raises
    ------
    AssertionError
        With the law and what was found.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.testing import check_agent
    >>> check_agent(lambda knowledge, seed: ep.E4(knowledge), steps=20)
    >>> check_agent(lambda knowledge, seed: ep.baselines.PSRL(knowledge, seed=seed))
    """
    if steps < 3:
        raise refusal("steps", "a number of at least 3", steps)
    if world is None:
        from escapade.environments.loop import three_state_loop

        world = three_state_loop()
    once = _live(make_agent, world, steps, seed)
    again = _live(make_agent, world, steps, seed)
    name = _name(make_agent(world.knowledge, seed))
    same = once.actions == again.actions and once.plans == again.plans
    same &= np.array_equal(once.promises, again.promises, equal_nan=True)
    require(same, "lives the same life from the same seed", name, f"seed {seed}")
    twice = _live(make_agent, world, steps, seed, times=2)
    same = once.actions == twice.actions and once.plans == twice.plans
    same &= np.array_equal(once.promises, twice.promises, equal_nan=True)
    require(same, "does nothing when told the same thing twice", name, "another life")
    _live(make_agent, world, steps, seed, costs_known=False)
    _check_order(make_agent, world, seed)


def _name(agent: object) -> str:
    return type(agent).__name__


def _live(
    make_agent: MakeAgent,
    world: World,
    steps: int,
    seed: int,
    *,
    times: int = 1,
    costs_known: bool = True,
) -> _Life:
    """Live a life; say everything ``times`` times, and every third cost or all."""
    agent, env = make_agent(world.knowledge, seed), world.make_env()
    name = _name(agent)
    require(isinstance(agent, Agent), "keeps the protocol", name, _missing(agent))
    require(agent.state is None, "stands nowhere before life", name, agent.state)
    state, _ = env.reset(seed=seed)
    life = _Life(actions=[], promises=[], plans=[])
    for step in range(steps):
        place = f"{name}, step {step}"
        decision = agent.ask(state)
        _check_decision(decision, agent, world, step, state, place)
        state, reward, _, _, info = env.step(decision.action)
        cost = info["cost"] if costs_known or step % 3 else None
        for _ in range(times):
            agent.tell(decision, reward=reward, cost=cost, next_state=state)
        require(agent.state == state, "stands where it was told", place, agent.state)
        life.actions.append(int(decision.action))
        life.promises.append(tuple(decision.promise))
        life.plans.append(agent.plans)
    return life


def _missing(agent: object) -> list[str]:
    parts = ("knowledge", "seed", "state", "plans", "ask", "tell")
    return [part for part in parts if not hasattr(agent, part)]


def _check_decision(
    decision: Decision, agent: Agent, world: World, step: int, state: int, place: str
) -> None:
    told = world.knowledge
    require(decision.id == step, "counts its decisions from 0", place, decision.id)
    require(decision.state == state, "decides where it is asked", place, decision.state)
    first, last = told.pairs.state_ptr[state : state + 2]
    actions = told.pairs.pair_action[first:last]
    found = decision.action
    require(bool((actions == found).any()), "takes an action that exists", place, found)
    known = decision.phase in list(Phase)
    require(known, f"is in a phase of 0..{max(Phase)}", place, decision.phase)
    worded = isinstance(decision.reason, str) and bool(decision.reason.strip())
    require(worded, "says why", place, repr(decision.reason))
    promise, reserved = np.array(decision.promise), np.array(decision.reserved)
    shaped = promise.shape == reserved.shape == (told.n_costs,)
    shapes = f"{promise.shape} and {reserved.shape}"
    require(shaped, f"has {told.n_costs} promises and reserves", place, shapes)
    silent = bool(np.isnan(promise).all() and np.isnan(reserved).all())
    kept = bool((reserved <= promise).all() and (promise <= told.budget).all())
    require(
        silent or kept or bool(getattr(agent, "breaks", ())),
        "reserves no more than it promises, and promises no more than the budget",
        place,
        f"reserves {reserved}, promises {promise}, budget {told.budget}",
    )


def _check_order(make_agent: MakeAgent, world: World, seed: int) -> None:
    """Call in the wrong order; whatever is refused must leave no trace."""
    agent, env = make_agent(world.knowledge, seed), world.make_env()
    name = _name(agent)
    state, _ = env.reset(seed=seed)
    _refuses(lambda: agent.ask(world.knowledge.n_states), "states not there", name)
    first = agent.ask(state)
    _refuses(lambda: agent.ask(state), "two questions without an answer between", name)
    after, reward, _, _, info = env.step(first.action)
    cost = info["cost"]
    _refuses(lambda: _tell(agent, first, -1.0, cost, after), "negative rewards", name)
    nan = np.full(world.knowledge.n_costs, np.nan)
    _refuses(lambda: _tell(agent, first, reward, nan, after), "costs of NaN", name)
    _tell(agent, first, reward, cost, after)
    other = (after + 1) % world.knowledge.n_states
    if other != after:
        _refuses(lambda: agent.ask(other), "a state that it was not led to", name)
        _refuses(
            lambda: _tell(agent, first, reward, cost, other),
            "another outcome of what is over",
            name,
        )
    second = agent.ask(after)
    require(second.id == 1, "counts nothing that it refused", name, second.id)


def _tell(agent: Agent, decision: Any, reward: float, cost: Any, after: int) -> None:
    agent.tell(decision, reward=reward, cost=cost, next_state=after)


def _refuses(call: Callable[[], object], what: str, name: str) -> None:
    """Require that a call is refused by an error of this library."""
    try:
        call()
    except EscapadeError:
        return
    require(False, f"refuses {what}", name, "no error")
