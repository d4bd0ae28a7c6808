"""What the strategies draw is what they say they draw."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from escapade.errors import InvalidInputError
from escapade.model import CMDP, Policy
from escapade.testing import (
    budgets,
    cmdps,
    distributions,
    kernels,
    policies,
    reference_optimum,
)

SOME = settings(max_examples=20)


@SOME
@given(distributions(3, 4))
def test_distributions_are(rows):
    assert rows.shape == (3, 4)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)


@SOME
@given(cmdps(min_states=2, max_states=3, max_actions=2, max_costs=1, discounts=(0.25,)))
def test_sizes_are_kept(cmdp):
    assert 2 <= cmdp.n_states <= 3
    assert cmdp.n_actions <= 2
    assert (cmdp.n_costs, cmdp.discount) == (1, 0.25)


@SOME
@given(cmdps(masked=False, named=True))
def test_choices_are_kept(cmdp):
    assert cmdp.available.all()
    assert len(cmdp.state_names) == cmdp.n_states
    assert cmdp.coordinates.shape == (cmdp.n_states, 2)


@pytest.mark.parametrize(
    "wanted",
    {
        "masks": lambda m: not m.available.all(),
        "two costs": lambda m: m.n_costs == 2,
        "a spread start": lambda m: np.count_nonzero(m.start) > 1,
        "no look-ahead": lambda m: m.discount == 0.0,
        "wider bounds": lambda m: m.reward_max > m.reward.max(),
        "names": lambda m: m.state_names is not None,
        "budgets out of reach": lambda m: not reference_optimum(m).feasible,
    }.values(),
    ids=lambda _f: "",
)
def test_every_kind_of_problem_is_drawn(wanted):
    as_found = settings(max_examples=400, phases=[Phase.generate])
    assert wanted(find(cmdps(), wanted, settings=as_found))


def test_examples_shrink_to_what_can_be_worked_out_by_hand():
    smallest = find(cmdps(), lambda _cmdp: True)
    assert (smallest.n_states, smallest.n_pairs, smallest.n_costs) == (1, 1, 1)
    assert smallest.reward.tolist() == [0.0]
    earns = find(cmdps(feasible=True), lambda m: bool(m.reward.any()))
    assert earns.n_states == 1
    assert earns.reward.max() == 0.125


@SOME
@given(cmdps(feasible=True))
def test_feasible_is_feasible(cmdp):
    relaxed = cmdp.replace(budget=cmdp.budget + 1e-7)  # what LP takes for the same
    assert reference_optimum(relaxed).feasible


@SOME
@given(cmdps(feasible=False))
def test_infeasible_is_infeasible(cmdp):
    known = reference_optimum(cmdp)
    assert not known.feasible
    assert (known.least_costs > cmdp.budget).any()


@SOME
@given(st.data())
def test_budgets_for_a_problem_at_hand(data):
    cmdp = data.draw(cmdps())
    anywhere = data.draw(budgets(cmdp))
    assert anywhere.shape == (cmdp.n_costs,)
    assert (anywhere <= cmdp.cost_max / (1.0 - cmdp.discount) + 1e-9).all()
    assert isinstance(cmdp.replace(budget=anywhere), CMDP)


@SOME
@given(st.data())
def test_policies_play_what_is_available(data):
    cmdp = data.draw(cmdps())
    policy = data.draw(policies(cmdp))
    assert isinstance(policy, Policy)
    assert policy.pair_weights(cmdp).size == cmdp.n_pairs
    assert data.draw(policies(cmdp, deterministic=True)).is_deterministic


@pytest.mark.parametrize("on_support", [True, False])
@SOME
@given(data=st.data(), radius=st.sampled_from([0.0, 0.2, 2.0]))
def test_kernels_are_near(on_support, data, radius):
    cmdp = data.draw(cmdps())
    near = data.draw(kernels(cmdp, radius=radius, on_support=on_support))
    before, after = (m.transition_matrix.toarray() for m in (cmdp, near))
    assert np.abs(after - before).sum(axis=1).max() <= radius + 1e-12
    if on_support:
        assert not after[before == 0.0].any()
    np.testing.assert_array_equal(near.reward, cmdp.reward)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (lambda m: cmdps(min_states=3, max_states=2), "min_states: expected a number"),
        (lambda m: kernels(m, radius=3.0), "radius: expected a number in"),
    ],
)
def test_what_cannot_be_drawn_is_refused(strategy, message):
    cmdp = CMDP(np.ones((1, 1, 1)), [[0.0]], [[0.0]], discount=0.5, budget=0.0)
    with pytest.raises(InvalidInputError, match=message):
        find(strategy(cmdp), lambda _found: True)
