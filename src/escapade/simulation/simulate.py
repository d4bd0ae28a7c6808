"""The one loop in which an agent meets a world.

The loop asks, acts and tells; that is all that passes between agent and world, and any
agent that keeps the protocol :class:`escapade.typing.Agent` can live in it.  For
:class:`escapade.E4` in a world of this library the same loop also exists compiled, and
lives from plan to plan at once; it takes the same decisions, bit for bit, as a test
holds it to.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from escapade.agent.e4 import E4
from escapade.agent.phases import REASONS, Phase
from escapade.environments.cmdp_env import CMDPEnv
from escapade.environments.noise import Noise
from escapade.errors import BrokenAssumptionWarning, refusal
from escapade.kernels.life import IMPOSSIBLE
from escapade.kernels.lifetime import RECORD, WORLD, Record, World, live
from escapade.kernels.parcels import Parcel
from escapade.kernels.sampling import fill_cumulative
from escapade.model.arguments import MOST_INDEX, read_count
from escapade.model.cmdp import CMDP
from escapade.simulation.trace import Trace
from escapade.typing import Agent, IntArray

__all__ = ["begin", "live_through", "simulate"]

_LAW = {"deterministic": 0, "bernoulli": 1, "uniform": 2}


def simulate(
    agent: Agent,
    env: Any,
    steps: int,
    *,
    seed: int | None = None,
    until: Literal["steps", "certified"] = "steps",
    compiled: bool | None = None,
    on_plan: Callable[[int], None] | None = None,
) -> Trace:
    """Let an agent live in a world.

    Parameters
    ----------
    agent
        A new agent, or one that stopped where ``env`` now is.  What an agent does not
        promise stands in the trace as NaN.
    env
        A Gymnasium environment with discrete spaces and ``info["cost"]``.
    steps
        Most steps to take.
    seed
        For the world; by default it follows from the agent's own seed.
    until
        ``"steps"`` takes all of them; ``"certified"``, which asks for an E4 agent, ends
        as soon as its certificate is as narrow as its ``epsilon``.
    compiled
        Whether to use the compiled loop; by default where that is possible.
    on_plan
        Called after each new plan, with the number of steps taken by then.

    Returns
    -------
    Trace

    Warns
    -----
    BrokenAssumptionWarning
        If what the agent was told turned out to be false; see :attr:`Trace.breaks`.
    """
    before = len(_breaks_of(agent))
    trace = live_through(
        agent,
        env,
        steps,
        seed=seed,
        until=until,
        compiled=compiled,
        on_plan=on_plan,
    )
    if len(trace.breaks) > before:
        warnings.warn(
            f"an assumption broke, the promise is no longer sure to hold: "
            f"{trace.breaks[before]}",
            BrokenAssumptionWarning,
            stacklevel=2,
        )
    return trace


def live_through(
    agent: Agent,
    env: Any,
    steps: int,
    *,
    seed: int | None = None,
    until: str = "steps",
    compiled: bool | None = None,
    on_plan: Callable[[int], None] | None = None,
) -> Trace:
    """Do as :func:`simulate` does, for a caller that tells of breaks itself."""
    steps = read_count("steps", steps, most=MOST_INDEX)
    if until not in ("steps", "certified"):
        raise refusal("until", "'steps' or 'certified'", repr(until))
    if until == "certified" and not isinstance(agent, E4):
        raise refusal("until", "'steps' for an agent without certificates", repr(until))
    _check_who_meets_whom(agent, env)
    tape = _Tape(agent, steps, on_plan)
    if (
        compiled is not False
        and isinstance(agent, E4)
        and isinstance(env, CMDPEnv)
        and _within_bounds(agent, env)
    ):
        tape.record.states[0] = begin(agent, env, seed)
        done, stopped = _run_compiled(agent, env, tape, steps, until)
    elif compiled:
        raise refusal(
            "compiled",
            "an E4 agent and an environment over a CMDP, within its bounds",
            "others",
        )
    else:
        tape.record.states[0] = begin(agent, env, seed)
        done, stopped = _run(agent, env, tape, steps, until)
    return tape.cut(done, stopped)


def _check_who_meets_whom(agent: object, env: object) -> None:
    """Refuse what is no agent, and what it cannot live in."""
    if not isinstance(agent, Agent):
        raise refusal("agent", "an agent, such as an escapade.E4", repr(agent))
    if callable(getattr(env, "step", None)) and callable(getattr(env, "reset", None)):
        return
    if callable(getattr(env, "make_env", None)):
        kind = type(env).__name__
        raise refusal("env", f"what make_env() of that {kind} returns", f"a {kind}")
    raise refusal("env", "a Gymnasium environment", repr(env))


def begin(agent: Agent, env: Any, seed: int | None = None) -> int:
    """Put the world where the agent is, or both at a start."""
    if agent.state is not None:
        return agent.state
    if seed is None:
        own = agent.seed
        seed = (
            None
            if own is None
            else int(np.random.SeedSequence([own, 1]).generate_state(1, np.uint32)[0])
        )
    start = agent.draw_start() if isinstance(agent, E4) else None
    if start is None:
        state, _ = env.reset(seed=seed)
        return int(state)
    state, _ = env.reset(seed=seed, options={"state": start})
    if state != start:
        raise refusal("env", f"a reset to options['state'] = {start}", int(state))
    return int(state)


def blank(steps: int, n_costs: int) -> Record:
    """Return an empty record of so many steps, all of it in one piece of memory.

    Of large pieces the system hands out large pages, which it has to look up less.
    """
    columns = {
        "rewards": (np.float64, (steps,)),
        "costs": (np.float64, (steps, n_costs)),
        "promise": (np.float64, (steps, n_costs)),
        "reserved": (np.float64, (steps, n_costs)),
        "states": (np.int32, (steps + 1,)),
        "actions": (np.int32, (steps,)),
        "phases": (np.int8, (steps,)),
        "reasons": (np.int8, (steps,)),
    }
    sizes = [
        np.dtype(kind).itemsize * int(np.prod(shape))
        for kind, shape in columns.values()
    ]
    memory = np.zeros(sum(sizes), dtype=np.uint8)
    record, begin = {}, 0
    for (name, (kind, shape)), size in zip(columns.items(), sizes, strict=True):
        record[name] = memory[begin : begin + size].view(kind).reshape(shape)
        begin += size
    return Record(**record)


class _Tape:
    """Arrays that a lifetime is written into."""

    def __init__(
        self, agent: Agent, steps: int, on_plan: Callable[[int], None] | None
    ) -> None:
        self.terms = agent.knowledge
        self.record = blank(steps, agent.knowledge.n_costs)
        self.reasons = dict(REASONS) if isinstance(agent, E4) else {}
        self.plans: list[int] = []
        self._agent = agent
        self._on_plan = on_plan

    def note_plan(self, step: int) -> None:
        """Note that before a step the agent planned again."""
        self.plans.append(step)
        if self._on_plan is not None:
            self._on_plan(step)

    def note_reasons(self, codes: dict[str, int]) -> None:
        """Keep the words behind the numbers of reasons."""
        self.reasons = {code: words for words, code in codes.items()}

    def cut(self, done: int, stopped: str) -> Trace:
        """Return the first ``done`` steps as a trace."""
        record, terms = self.record, self.terms
        return Trace(
            states=record.states[: done + 1],
            actions=record.actions[:done],
            phases=record.phases[:done],
            reasons=record.reasons[:done],
            rewards=record.rewards[:done],
            costs=record.costs[:done],
            promise=record.promise[:done],
            reserved=record.reserved[:done],
            plans=np.array(self.plans, dtype=np.int64),
            discount=terms.discount,
            budget=terms.budget,
            stopped=stopped,
            phase_names=tuple(phase.label for phase in Phase),
            reason_names=self.reasons,
            breaks=_breaks_of(self._agent),
        )


def _breaks_of(agent: Agent) -> tuple[str, ...]:
    """Return what an agent says to have broken; an agent need not say anything."""
    return tuple(getattr(agent, "breaks", ()))


def _run(
    agent: Agent, env: Any, tape: _Tape, steps: int, until: str
) -> tuple[int, str]:
    """Ask, act and tell, one step after the other."""
    record = tape.record
    codes = {words: code for code, words in tape.reasons.items()}
    state = int(record.states[0])
    for t in range(steps):
        plans = agent.plans
        decision = agent.ask(state)
        after, reward, ended, cut_off, info = env.step(decision.action)
        if ended or cut_off:
            raise refusal("env", "a world that goes on", f"an end at step {t}")
        if "cost" not in info:
            raise refusal("env", 'costs in info["cost"]', list(info), f"step {t}")
        state = int(after)
        record.actions[t] = decision.action
        record.phases[t] = decision.phase
        record.reasons[t] = codes.setdefault(decision.reason, len(codes))
        record.rewards[t] = reward
        record.costs[t] = info["cost"]
        record.promise[t] = decision.promise
        record.reserved[t] = decision.reserved
        record.states[t + 1] = state
        agent.tell(decision, reward=float(reward), cost=info["cost"], next_state=state)
        if agent.plans > plans:
            tape.note_plan(t + 1)
            if until == "certified" and isinstance(agent, E4) and agent.certified:
                tape.note_reasons(codes)
                return t + 1, "certified"
    tape.note_reasons(codes)
    return steps, "all steps taken"


def _run_compiled(
    agent: E4, env: CMDPEnv, tape: _Tape, steps: int, until: str
) -> tuple[int, str]:
    """Live from plan to plan; between them nothing but compiled code runs."""
    opened = agent.open_decision
    if opened is not None:
        raise refusal("agent", "what came of its last decision first", opened.id)
    world = Parcel(WORLD, _world(agent, env))
    record = Parcel(RECORD, tape.record)
    t = 0
    while t < steps:
        begun, plans = t, agent.plans
        life = agent.life()
        t, why, pair = live(
            life.table,
            world.table,
            record.table,
            life.content.ledger.channels,
            agent.rng,
            env.np_random,
            begun,
            steps,
            agent.learning,
        )
        if why == IMPOSSIBLE:
            t += 1
        after = int(tape.record.states[t])
        agent.decisions += t - begun - 1
        agent.finish_step(
            pair,
            after,
            why=why,
            reward=float(tape.record.rewards[t - 1]),
            cost=tape.record.costs[t - 1],
        )
        if agent.plans > plans:
            tape.note_plan(t)
            if until == "certified" and agent.certified:
                env.place(after)
                return t, "certified"
    env.place(int(tape.record.states[t]))
    return steps, "all steps taken"


def _within_bounds(agent: E4, env: CMDPEnv) -> bool:
    """Tell whether no sample can be above what the agent was told; else it must say."""
    cmdp, told = env.cmdp, agent.knowledge
    costs = cmdp.cost_max.shape == told.cost_max.shape
    return costs and bool(
        (cmdp.cost_max <= told.cost_max).all() and cmdp.reward_max <= told.reward_max
    )


def _world(agent: E4, env: CMDPEnv) -> World:
    """Return the world as the loop samples it."""
    cmdp, layout = env.cmdp, agent.knowledge.pairs
    if (layout.n_states, layout.n_actions) != (cmdp.n_states, cmdp.n_actions):
        raise refusal(
            "env",
            f"{layout.n_states} states and {layout.n_actions} actions",
            f"{cmdp.n_states} and {cmdp.n_actions}",
        )
    number = np.full((cmdp.n_states, cmdp.n_actions), -1, dtype=np.int64)
    number[cmdp.pair_state, cmdp.pair_action] = np.arange(cmdp.n_pairs)
    pair_of = number[layout.pair_state, layout.pair_action]
    if (pair_of < 0).any():
        raise refusal(
            "env",
            "every action that the agent thinks available",
            "one that is not",
            layout.name(int(np.argmin(pair_of))),
        )
    cumulative = np.empty_like(cmdp.probability)
    fill_cumulative(cmdp.row_ptr, cmdp.probability, cumulative)
    cost = env.cost_given_next
    if cost is None:
        cost = np.repeat(cmdp.cost, np.diff(cmdp.row_ptr), axis=1)
    reward_law: Noise = env.reward_noise
    return World(
        pair_of=pair_of,
        row_ptr=cmdp.row_ptr,
        successor=cmdp.successor,
        cumulative=cumulative,
        entry_of=_entries(agent, cmdp, pair_of),
        reward=cmdp.reward,
        reward_max=cmdp.reward_max,
        reward_law=_LAW[reward_law],
        cost=cost,
        cost_max=cmdp.cost_max,
        cost_law=_LAW[env.cost_noise],
    )


def _entries(agent: E4, cmdp: CMDP, pair_of: IntArray) -> IntArray:
    """Return the agent's number of each transition of the world, or −1."""
    evidence = agent.belief.evidence
    mine = np.full(cmdp.n_pairs, -1, dtype=np.int64)
    mine[pair_of] = np.arange(pair_of.size)
    keys = np.repeat(np.arange(evidence.n_pairs), np.diff(evidence.row_ptr))
    keys = keys * cmdp.n_states + evidence.successor
    wanted = np.repeat(mine, np.diff(cmdp.row_ptr)) * cmdp.n_states + cmdp.successor
    found = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[found] == wanted, found, -1)
