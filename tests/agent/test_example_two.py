"""The story that the paper tells of Example 2, as the agent lives it.

Cells are (x, y), both from 1; cell (10, 1) is the first beyond the known ones.
"""

from __future__ import annotations

import numpy as np
import pytest

from escapade.agent import E4, E4Settings, Phase
from escapade.environments import wall_cycle
from escapade.simulation import simulate
from escapade.uncertainty import ActionModels

NORTH, WEST, SOUTH, EAST, STAY = range(5)


@pytest.fixture(scope="module")
def world():
    return wall_cycle(10)


def cell(x: int, y: int, size: int = 10) -> int:
    return (y - 1) * size + x - 1


def models_of(agent: E4) -> ActionModels:
    (models,) = agent.belief.given.parts
    assert isinstance(models, ActionModels)
    return models


def test_the_known_cells_are_the_first_row_but_its_last(world):
    agent = E4(world.knowledge)
    known = np.flatnonzero(agent.planned.plan.known)
    assert known.tolist() == [cell(x, 1) for x in range(1, 10)]
    visits = agent.belief.evidence.pair_visits
    assert (visits[:45] == 2_000).all()
    assert (visits[45:] == 0).all()


def test_at_the_corner_the_bounds_in_the_south_and_the_east_are_active(world):
    agent = E4(world.knowledge)
    corner = cell(10, 1)
    active = models_of(agent).active_at(corner)
    assert active[SOUTH] == ("south wall",)
    assert active[EAST] == ("east wall",)
    assert active[NORTH] == active[WEST] == ("free",)
    pair = agent.knowledge.pair
    # in the worst case these two lead nowhere for certain, and cost 1 each time
    here = np.zeros(100)
    here[corner] = 1.0
    nowhere = agent.belief.ahead(here)
    step, _ = agent.belief.worst_cost(0, np.zeros(100))
    for action in (SOUTH, EAST):
        assert nowhere[pair(corner, action)] == pytest.approx(1.0)
        assert step[pair(corner, action)] == pytest.approx(1.0)
    for action in (NORTH, WEST):  # and the others fail one time in ten
        assert nowhere[pair(corner, action)] == pytest.approx(0.1)
        assert step[pair(corner, action)] == pytest.approx(0.1)


def test_a_few_wandering_steps_then_escape_to_the_known_cells_and_stay(world):
    """Whatever is tried fails and costs: the agent goes home in time, and stays."""
    agent = E4(world.knowledge, E4Settings(known_after=20))
    corner, home = cell(10, 1), cell(9, 1)
    agent.state = corner
    tried = []
    while (decision := agent.ask(agent.state)).phase == Phase.WANDER:
        tried.append(decision.action)
        agent.tell(decision, reward=0.0, cost=1.0, next_state=corner)
    assert 3 <= len(tried) <= 6
    counts = np.bincount(tried, minlength=5)
    assert counts.max() - counts.min() <= 1  # balanced
    assert (decision.phase, decision.action) == (Phase.ESCAPE, WEST)
    low = decision.promise[0]
    assert decision.reserved[0] <= low < 0.7 * agent.cap[0]
    agent.tell(decision, reward=0.0, cost=0.0, next_state=home)
    promised = low
    for _ in range(200):
        decision = agent.ask(home)
        if decision.phase != Phase.WAIT:
            break
        assert decision.action == STAY
        assert decision.promise[0] > promised  # rest is free, so the promise recovers
        promised = decision.promise[0]
        agent.tell(decision, reward=0.0, cost=0.0, next_state=home)
    assert decision.phase == Phase.EXPLORE  # and out it goes again
    assert decision.promise[0] >= 0.9 * agent.cap[0] - 0.05
    assert not agent.breaks


def test_late_in_life_only_the_bound_in_the_north_is_left():
    world, size = wall_cycle(7), 7
    agent = E4(world.knowledge, E4Settings(known_after=2, refine=False))
    top = [cell(x, size, size) for x in range(1, size + 1)]
    for s in top:
        assert models_of(agent).active_at(s)[NORTH] == ("north wall",)
    below = [cell(x, size - 1, size) for x in range(1, size + 1)]
    for s in below:  # at birth the wall may stand here as well
        assert models_of(agent).active_at(s)[NORTH] == ("free", "north wall")
    simulate(agent, world.make_env(), 900)
    assert agent.planned.plan.known.all()
    models = models_of(agent)
    for s in range(size * size):
        x, y = s % size + 1, s // size + 1
        active = models.active_at(s)
        assert active[NORTH] == (("north wall",) if y == size else ("free",))
        assert active[EAST] == (("east wall",) if x == size else ("free",))
    assert not agent.breaks
