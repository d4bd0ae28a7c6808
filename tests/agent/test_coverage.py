"""Whether the truth stays within what is held possible, at the probability stated.

Single intervals and single models are tested where they are made; here the whole belief
is, with models that are ruled out, rows and means at once, by an adversary who chooses
what to visit by what came out so far.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from tests.simulation.worlds import told

from escapade.knowledge.belief import Belief
from escapade.model import CMDP
from escapade.uncertainty import ActionModel, ActionModels, Failures, within

CELLS = 4
NEAR = within(np.arange(float(CELLS))[:, None], 2.0)


def corridor() -> CMDP:
    """Return a walk that fails with .3; then it ends where a wall would have left it.

    Nothing is harder to tell from a wall at every cell, within what is told below.
    """
    rows = np.zeros((CELLS, 1, CELLS))
    for s in range(CELLS):
        after = min(s + 1, CELLS - 1)
        rows[s, 0, after] += 0.7
        rows[s, 0, s] += 0.3
    return CMDP(
        rows,
        np.full((CELLS, 1), 0.3),
        np.full((CELLS, 1), 0.3),
        discount=0.8,
        budget=20.0,
        reward_max=1.0,
        cost_max=1.0,
    )


def belief_of(cmdp: CMDP, delta: float) -> Belief:
    cells = np.arange(CELLS)
    models = ActionModels(
        cmdp,
        {
            "free": ActionModel(
                typical=np.minimum(cells + 1, CELLS - 1),
                cost=0.0,
                missed_cost=(0.0, 1.0),
            ),
            "wall": ActionModel(typical=cells, cost=1.0, missed_cost=(0.0, 1.0)),
        },
        failures=Failures(around=NEAR, rate=(0.0, 0.35), law="any"),
        cost_max=1.0,
    )
    return Belief(told(cmdp, models=models), delta=delta)


@pytest.mark.statistical
@pytest.mark.parametrize("adversary", ["nearest to failing", "widest", "even"])
def test_the_truth_stays_inside_whatever_is_visited(adversary):
    """50 lives of 40 looks at δ = .3; fails with a probability of 1e-6 by chance."""
    cmdp = corridor()
    dense = cmdp.transition_matrix.toarray()
    delta, lives, looks = 0.3, 50, 40
    rng = np.random.default_rng(11)
    left = 0
    for _ in range(lives):
        belief = belief_of(cmdp, delta)
        knowledge = belief.knowledge
        owner = np.repeat(np.arange(CELLS), np.diff(knowledge.row_ptr))
        truth = dense[owner, knowledge.successor]
        failed = False
        pair = 0
        for _ in range(looks):
            for _ in range(5):
                after = int(rng.choice(CELLS, p=dense[pair]))
                cost = np.array([float(rng.random() < 0.3)])
                assert belief.evidence.record(pair, after, 0.3, cost)
            belief.update(np.array([pair]))
            held = belief.confidence
            failed |= bool(((held.lower > truth) | (held.upper < truth)).any())
            failed |= bool((held.cost_upper[0] < 0.3).any())
            failed |= bool((held.cost_lower[0] > 0.3).any())
            if failed:
                break
            near = np.minimum(truth - held.lower, held.upper - truth)
            starts = knowledge.row_ptr[:-1]
            if adversary == "nearest to failing":
                pair = int(np.argmin(np.minimum.reduceat(near, starts)))
            elif adversary == "widest":
                width = np.add.reduceat(held.upper - held.lower, starts)
                pair = int(np.argmax(width))
            else:
                pair = int(rng.integers(CELLS))
        left += failed
    assert left <= binom.isf(1e-6, lives, delta)
