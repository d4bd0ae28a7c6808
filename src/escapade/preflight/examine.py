"""One verb that looks a plant over: ``preflight(knowledge)``, or of a model.

The promise is examined with the sets, the worst costs and the cap that an agent would
begin with, so its answer is the agent's own: whatever is promisable here, ``E4`` takes
on, and what is not, it refuses for the same reason.
"""

from __future__ import annotations

import numpy as np

from escapade.errors import refusal
from escapade.knowledge.knowledge import Knowledge
from escapade.model.arguments import read_count, read_number
from escapade.model.cmdp import CMDP
from escapade.planning.robust_hitting import worst_transition_diameter
from escapade.planning.solve import solve
from escapade.preflight.findings import Preflight
from escapade.preflight.lemma import known_at_birth, requirements
from escapade.preflight.mends import mends
from escapade.preflight.outlook import Outlook, beyond_help, dead_ends, outlook
from escapade.preflight.plant import Plant, least_budget
from escapade.theory.diameter import diameter
from escapade.theory.horizons import horizon_time
from escapade.theory.known_states import known_visits
from escapade.typing import BoolArray

__all__ = ["budget_binds", "preflight"]

_STATES_FOR_DIAMETER = 500
_WORK_FOR_DIAMETER = 200_000_000
"""States times possible transitions up to which ways between all states are sought."""
_STATES_FOR_ROBUST_DIAMETER = 120
_GAIN = 1e-6
"""By how much, relative to what can be earned, more budget must earn to bind."""


def preflight(
    problem: Knowledge | CMDP,
    *,
    epsilon: float = 1.0,
    delta: float = 0.05,
    margin: float = 0.005,
    known_after: int = 5,
    reserve: float = 0.5,
) -> Preflight:
    """Examine a plant before a life begins in it.

    Parameters
    ----------
    problem
        What an agent would be told; or a model, which is then taken as known.
    epsilon, delta, margin, known_after, reserve
        As in :class:`escapade.E4Settings`.

    Examples
    --------
    >>> import escapade as ep
    >>> found = ep.preflight(ep.environments.wall_cycle(size=4).knowledge)
    >>> found
    Preflight(promisable, least budget 0 of 10, 0 of 16 states not promisable)

    With less to spend than a safe way costs, it says what would do.

    >>> shop = ep.CMDP([[[1.0]]], [[1.0]], [[0.25]], discount=0.5, budget=0.3)
    >>> ep.preflight(shop).mend
    ('raise the budget to at least 0.501',)
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not read_number(name, value) > 0.0:
            raise refusal(name, "a number above 0", value)
    quota = read_count("known_after", known_after, least=1)
    share = read_number("reserve", reserve)
    if not 0.0 <= share < np.inf:
        raise refusal("reserve", "a number of at least 0", reserve)
    plant = Plant.of(problem, delta=delta, margin=margin)
    model = plant.model
    found = plant.fallback()
    promisable = found.covers(model.start)
    least = least_budget(plant, found)
    reachable = plant.reached()
    known = known_at_birth(plant, known_after=quota)
    steps, lemma = requirements(
        plant, found, known=known, reachable=reachable, epsilon=epsilon
    )
    view = outlook(plant, found, reserve=share)
    met = plant.reached_by(view.open) if promisable else np.zeros_like(reachable)
    binds = budget_binds(model) if _rewards_known(plant) else None
    horizon, visits = _settled(model, epsilon=epsilon, delta=delta)
    return Preflight(
        examined="knowledge" if isinstance(problem, Knowledge) else "model",
        n_states=model.n_states,
        n_actions=model.n_actions,
        n_pairs=model.n_pairs,
        n_costs=model.n_costs,
        n_entries=int(plant.sets.reachable.sum()),
        discount=model.discount,
        budget=model.budget,
        cap=plant.cap,
        reachable=reachable,
        known=known,
        horizon=horizon,
        theory_visits=visits,
        practical_visits=quota,
        diameter=_diameter(model),
        robust_diameter=_robust_diameter(plant),
        escape_steps=steps,
        promisable=promisable,
        least_budget=least.sufficient,
        fallback_cost=found.unrestricted_cost[:, plant.start].max(axis=1),
        unpromisable_states=np.flatnonzero(~found.promisable),
        never_promisable=np.flatnonzero(beyond_help(plant) & ~found.promisable),
        open_pairs=int((view.open & met[model.pair_state]).sum()),
        open_states=int(met.sum()),
        untried_pairs=np.flatnonzero(view.untried & met[model.pair_state]),
        requirements=tuple(channel.requirements for channel in lemma),
        budget_binds=binds,
        mend=()
        if promisable
        else mends(problem, plant, least, delta=delta, margin=margin),
        warnings=_warnings(
            plant,
            promisable=promisable,
            binds=binds,
            reachable=reachable,
            met=met,
            more=(
                _untried(plant, view, met=met, reserve=share),
                _dead_ends(plant, view, met=met),
            ),
        ),
        fallback=found,
    )


def _settled(model: CMDP, *, epsilon: float, delta: float) -> tuple[int, int]:
    """Return the steps and the visits that the theory asks for."""
    reward_max, cost_max = model.reward_max, float(model.cost_max.max())
    if max(reward_max, cost_max) == 0.0:
        return 1, 0  # nothing can be earned or paid
    horizon = horizon_time(
        discount=model.discount,
        epsilon=0.5 * epsilon,
        reward_max=reward_max,
        cost_max=cost_max,
    )
    visits = known_visits(
        n_states=model.n_states,
        n_actions=model.n_actions,
        discount=model.discount,
        epsilon=epsilon,
        delta=delta,
        reward_max=reward_max,
        cost_max=cost_max,
        n_costs=model.n_costs,
    )
    return horizon, visits


def _rewards_known(plant: Plant) -> bool:
    """Whether the mean rewards are known, so that one can ask what earns most."""
    if plant.belief is None:
        return True
    confidence = plant.belief.confidence
    return bool((confidence.reward_lower == confidence.reward_upper).all())


def budget_binds(model: CMDP) -> bool | None:
    """Whether the best policy of a model would earn more with a larger budget.

    ``None`` if no policy keeps the budget.

    Examples
    --------
    >>> import escapade as ep
    >>> from escapade.preflight import budget_binds
    >>> budget_binds(ep.environments.toll_cycle(size=4).cmdp)
    True
    """
    within = solve(model)
    if not within.is_feasible:
        return None
    most = np.maximum(model.cost_max / (1.0 - model.discount), model.budget)
    without = solve(model.replace(budget=most * (1.0 + 1e-9) + 1e-12))
    scale = max(abs(without.value), 1e-12)
    return bool(without.lower - within.upper > _GAIN * scale)


def _diameter(model: CMDP) -> tuple[float, float] | None:
    if model.n_states > _STATES_FOR_DIAMETER:
        return None
    if model.n_states * model.nnz > _WORK_FOR_DIAMETER:
        return None
    found = diameter(model)
    return found.lower, found.upper


def _robust_diameter(plant: Plant) -> tuple[float, float] | None:
    if plant.model.n_states > _STATES_FOR_ROBUST_DIAMETER:
        return None
    found = worst_transition_diameter(plant.model, plant.sets)
    return found.lower, found.upper


def _warnings(
    plant: Plant,
    *,
    promisable: bool,
    binds: bool | None,
    reachable: BoolArray,
    met: BoolArray,
    more: tuple[str, ...],
) -> tuple[str, ...]:
    said = []
    model = plant.model
    if binds is False:
        which = "model" if plant.belief is None else "likeliest model"
        said.append(
            f"the budget does not bind: the best policy of the {which} keeps it "
            f"anyway, so safety is a matter of learning only"
        )
    if (
        promisable
        and plant.belief is not None
        and met.sum() == plant.start.sum() < reachable.sum()
    ):
        said.append(
            "the budget can be promised, but at birth nothing that leads on from where "
            "life may begin can be afforded: the agent stays there until it knows more"
        )
    said += [sentence for sentence in more if sentence]
    if model.n_costs > 1 and not promisable:
        said.append(
            "with several budgets one fallback serves all: that none of those tried "
            "does proves nothing about other policies"
        )
    return tuple(said)


def _untried(plant: Plant, view: Outlook, *, met: BoolArray, reserve: float) -> str:
    """Say which pairs an agent will never try, and what would change that; or ''."""
    model = plant.model
    closed = np.flatnonzero(view.untried & met[model.pair_state])
    if not closed.size:
        return ""
    caps = view.opening_caps(model.cost_max, reserve)[:, closed]
    easiest = int(
        np.argmin((caps / np.maximum(plant.cap, 1e-300)[:, None]).max(axis=0))
    )
    pair = int(closed[easiest])
    k = int(np.argmax(plant.cost[:, pair] + view.kept - plant.cap))
    channel = f" in channel {k}" if model.n_costs > 1 else ""
    budget = ", ".join(
        f"{b:.6g}" for b in np.maximum(caps[:, easiest] / plant.kept, model.budget)
    )
    without = (view.cost[:, pair] <= plant.cap).all() and view.kept[k] > 0.0
    told = "" if plant.belief is None else ", or say what they cost"
    return (
        f"{closed.size} pairs of the states that can be met at birth will never be "
        f"tried: for state {model.pair_state[pair]}, action {model.pair_action[pair]} "
        f"one try may cost {plant.cost[k, pair]:.6g}{channel}, and {view.kept[k]:.6g} "
        f"is kept back, while at most {plant.cap[k]:.6g} is ever promised; to open it "
        f"and its like, raise the budget to {budget}"
        f"{', keep less back (reserve=0)' if without else ''}{told}"
    )


def _dead_ends(plant: Plant, view: Outlook, *, met: BoolArray) -> str:
    """Say where an agent may end up at birth and not come away again; or ''."""
    ends = np.flatnonzero(dead_ends(plant, view.open, met))
    if not ends.size:
        return ""
    which = f"{ends.size} states" if ends.size > 1 else f"state {ends[0]}"
    example = "" if ends.size == 1 else f", such as state {ends[0]},"
    return (
        f"{which} that can be met at birth{example} may be entered and not left again: "
        f"all that leads away costs more at worst than a full promise pays for; say "
        f"more of what it costs and where it leads, or raise the budget"
    )
