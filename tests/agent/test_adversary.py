"""Worlds that wish the agent ill, within what was told: nothing goes over.

The true kernel sits at the corner of the set that is worst against the fallback's
cost-to-go, costs are all that they may be, and rewards lead the agent on to where it
costs most.  The ledger's invariant w <= b <= cap is looked at in every step of every
life, and the mean cost-to-go of many lives is held to the budget.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.simulation.worlds import LIVES

from escapade.agent import E4, E4Settings
from escapade.agent.safety import Safety
from escapade.environments import World, garnet, toll_cycle, wall_cycle
from escapade.knowledge import Knowledge
from escapade.knowledge.birth import at_birth
from escapade.model import CMDP
from escapade.simulation import audit, simulate


def worst_of(knowledge: Knowledge, *, costs: float = 1.0) -> World:
    """Return the world that is worst for what is told, and rewards what costs."""
    belief, cap = at_birth(knowledge, delta=0.05, margin=0.005)
    safety = Safety(belief, cap, precision=1e-9)
    outside = knowledge.cost_max.sum() / (1.0 - knowledge.discount)
    value = np.where(safety.promisable, safety.w.sum(axis=0), outside)
    kernel = belief.sets.worst_kernel(value)
    layout = knowledge.pairs
    cost = belief.cost_upper * costs
    most = cost.sum(axis=0)
    cmdp = CMDP.from_pairs(
        state_ptr=layout.state_ptr,
        pair_action=layout.pair_action,
        row_ptr=belief.sets.row_ptr,
        successor=belief.sets.successor,
        probability=np.maximum(kernel, 0.0),
        # the dearer a pair, the more it earns
        reward=knowledge.reward_max * most / max(float(most.max()), 1e-300),
        cost=cost,
        n_actions=knowledge.n_actions,
        discount=knowledge.discount,
        budget=knowledge.budget,
        start=knowledge.start,
        reward_max=knowledge.reward_max,
        cost_max=knowledge.cost_max,
    )
    return World(
        name="worst", description="The worst of all that was told.", cmdp=cmdp,
        cost_noise="bernoulli", told=lambda: knowledge,
    )  # fmt: skip


def dear(n_costs: int) -> Knowledge:
    """Return a garnet of which little is told but a cautious controller."""
    return garnet(8, 3, 2, n_costs=n_costs).knowledge


WORST = {
    "garnet": lambda: worst_of(dear(1)),
    "two garnets": lambda: worst_of(dear(2)),
    "walls": lambda: worst_of(wall_cycle(3).knowledge),
    "toll": lambda: worst_of(toll_cycle(2).knowledge),
    "workshop": lambda: worst_of(LIVES["workshop"][0]().knowledge),
    "two budgets": lambda: worst_of(LIVES["two budgets"][0]().knowledge),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.compiled] * (name == "two budgets"))
        for name in WORST
    ],
)
def test_the_invariant_holds_at_every_step_in_the_worst_world(name):
    world = WORST[name]()
    for seed in range(2):
        agent = E4(world.knowledge, E4Settings(known_after=3, seed=seed, refine=False))
        trace = simulate(agent, world.make_env(), 400, seed=seed)
        assert not agent.breaks
        assert (trace.reserved <= trace.promise).all()
        assert (trace.promise <= agent.cap).all()
        assert (agent.cap <= agent.knowledge.budget).all()


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["garnet", "two garnets", "workshop"])
def test_nothing_goes_over_the_budget_in_the_worst_world(name):
    """A sound agent fails with a probability of at most 2e-4."""
    world = WORST[name]()
    found = audit(
        lambda knowledge, seed: E4(
            knowledge, E4Settings(known_after=3, seed=seed, refine=False)
        ),
        world, lifetimes=24, steps=300, seed=3, confidence=0.9999,
    )  # fmt: skip
    assert found.invariant_breaks == 0
    assert (found.block_lower <= found.budget).all()
    assert (found.block_excess_lower <= 0.0).all()


def test_a_world_that_charges_all_it_may_at_every_step():
    """Every pair that is not known to be free costs c_max, in every channel."""
    knowledge = dear(2)
    world = worst_of(knowledge)
    agent = E4(world.knowledge, E4Settings(known_after=2, refine=False))
    env, state = world.make_env(), 0
    state, _ = env.reset(seed=0)
    for _ in range(300):
        decision = agent.ask(int(state))
        pair = agent.open_pair
        charged = np.where(knowledge.cost_upper[:, pair] > 0.0, knowledge.cost_max, 0.0)
        mean = knowledge.cost_lower[:, pair] == knowledge.cost_upper[:, pair]
        charged = np.where(mean, knowledge.cost_upper[:, pair], charged)
        state, reward, *_ = env.step(decision.action)
        agent.tell(decision, reward=reward, cost=charged, next_state=int(state))
        assert (agent.safety.w[:, agent.state] <= agent.promise).all()
        assert (agent.promise <= agent.cap).all()
    assert not agent.breaks


@pytest.mark.parametrize("name", LIVES)
def test_the_invariant_holds_in_every_small_world(name):
    make, settings, steps = LIVES[name]
    world = make()
    agent = E4(world.knowledge, E4Settings(**settings))
    trace = simulate(agent, world.make_env(), steps)
    assert (trace.reserved <= trace.promise).all()
    assert (trace.promise <= agent.cap).all()
