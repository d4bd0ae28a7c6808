"""Arrays in every order give one model, and nothing is guessed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import escapade as ep
from escapade.environments import from_arrays
from escapade.errors import InvalidInputError

S, A = 4, 3
RNG = np.random.default_rng(5)
P = RNG.dirichlet(np.ones(S), size=(S, A))
P[P < 0.1] = 0.0
P /= P.sum(axis=-1, keepdims=True)
R, C = RNG.random((S, A)), RNG.random((S, A))
TERMS = {"discount": 0.9, "budget": 5.0}

ORDERS = {
    "sas": [
        P,
        sp.csr_array(P.reshape(S * A, S)),
        [sp.csr_array(P[s]) for s in range(S)],
    ],
    "ass": [P.transpose(1, 0, 2), [sp.csc_array(P[:, a]) for a in range(A)]],
    "s'sa": [P.transpose(2, 0, 1), [sp.coo_array(P[:, :, t]) for t in range(S)]],
}


@pytest.mark.parametrize(
    ("convention", "arrays"),
    [(name, arrays) for name, forms in ORDERS.items() for arrays in forms],
)
def test_every_order_is_the_same_model(convention, arrays):
    world = from_arrays(arrays, R, C, convention=convention, **TERMS)
    plain = ep.CMDP(P, R, C, **TERMS)
    np.testing.assert_array_equal(world.cmdp.successor, plain.successor)
    np.testing.assert_allclose(world.cmdp.probability, plain.probability, rtol=1e-15)
    np.testing.assert_array_equal(world.cmdp.reward, plain.reward)
    assert world.optimum == pytest.approx(ep.solve(plain).value)


@pytest.mark.parametrize("convention", ["sas", "ass", "s'sa"])
def test_rewards_and_costs_by_next_state(convention):
    order = {"sas": (0, 1, 2), "ass": (1, 0, 2), "s'sa": (2, 0, 1)}[convention]
    earned = RNG.random((S, A, S))
    paid = RNG.random((2, S, A, S))
    world = from_arrays(
        P.transpose(order),
        earned.transpose(order),
        np.array([channel.transpose(order) for channel in paid]),
        convention=convention,
        per_transition=True,
        discount=0.9,
        budget=[5.0, 6.0],
    )
    cmdp = world.cmdp
    np.testing.assert_allclose(cmdp.reward, (P * earned).sum(-1).ravel())
    np.testing.assert_allclose(cmdp.cost, (P * paid).sum(-1).reshape(2, -1))
    assert cmdp.reward_max == earned[P > 0].max()


def knowledge(**changed):
    sizes = {"n_states": S, "n_actions": A, "reward_max": 1.0, "cost_max": 1.0}
    return ep.Knowledge(**{**sizes, **TERMS, **changed})


def test_what_is_told_is_told():
    told = knowledge(support=P > 0)
    world = from_arrays(P, R, C, convention="sas", knowledge=told, **TERMS)
    assert world.knowledge is told  # its bounds are wider than the world's, which holds
    bare = from_arrays(P, R, C, convention="sas", **TERMS).knowledge
    assert (
        repr(bare) == "Knowledge(4 states, 3 actions, 12 pairs, 1 cost, 0 rows known)"
    )
    assert not ep.preflight(bare).promisable


@pytest.mark.parametrize(
    ("convention", "form"),
    [("sas", 0), ("sas", 1), ("ass", 0), ("ass", 1), ("s'sa", 1)],
)
def test_what_is_told_in_keywords_stands_in_the_order_of_the_arrays(convention, form):
    arrays = ORDERS[convention][form]
    world = from_arrays(
        arrays, R, C, convention=convention, support=arrays, costs=C, reward_max=2.0,
        **TERMS,
    )  # fmt: skip
    told = {"costs": C, "reward_max": 2.0, "cost_max": C.max()}
    plain = knowledge(support=P > 0, **told)
    np.testing.assert_array_equal(world.knowledge.row_ptr, plain.row_ptr)
    np.testing.assert_array_equal(world.knowledge.successor, plain.successor)
    np.testing.assert_array_equal(world.knowledge.cost_upper, plain.cost_upper)
    assert world.knowledge.reward_max == 2.0
    known = from_arrays(
        arrays, R, C, convention=convention, known_rows=arrays, **TERMS
    ).knowledge
    assert known.exact_pairs.all()
    np.testing.assert_array_equal(known.lower, world.cmdp.probability)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"discount": 0.95}, "the world's discount, 0.9, found 0.95"),
        ({"budget": 6.0}, "the world's budget, 5, found 6"),
        ({"budget": [5.0, 5.0]}, "the world's 1 costs, found 2"),
        ({"reward_max": 0.25}, "at least the world's reward_max, 0.9.*, found 0.25"),
        ({"cost_max": 0.25}, "at least the world's cost_max, 0.9.*, found 0.25"),
        ({"n_states": 5}, "the world's 4 states, found 5"),
        ({"n_actions": 2}, "the world's 3 actions, found 2"),
        ({"available": np.arange(A) < [[2], [3], [3], [3]]}, "12 pairs, found 11"),
    ],
    ids=str,
)
def test_knowledge_of_another_problem_is_refused(told, reason):
    told = knowledge(**told)
    with pytest.raises(InvalidInputError, match=rf"^knowledge: expected .*{reason}"):
        from_arrays(P, R, C, convention="sas", knowledge=told, **TERMS)
    world = ep.environments.World(
        name="x", description="y", cmdp=ep.CMDP(P, R, C, **TERMS), told=lambda: told
    )
    with pytest.raises(InvalidInputError, match=rf"^knowledge: expected .*{reason}"):
        _ = world.knowledge


def test_knowledge_of_other_actions_is_refused():
    masks = [
        np.arange(A) < [[2], [3], [3], [3]],
        np.arange(A) > [[0], [-1], [-1], [-1]],
    ]
    told = knowledge(available=masks[0])
    terms = {"convention": "sas", "available": masks[1], **TERMS}
    with pytest.raises(InvalidInputError, match=r"knowledge: .* the world offers"):
        from_arrays(P, R, C, knowledge=told, **terms)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"told": 1}, r"^keyword: .*found told=$"),
        ({"supports": P > 0}, r"found supports= \(did you mean 'support'\?\)"),
        ({"n_states": 4}, r"^keyword: .*found n_states="),
        ({"support": P.transpose(1, 0, 2) > 0}, r"^support: expected as many next st"),
        ({"known_rows": P[:, :2]}, r"^known_rows: expected shape \(4, 3, 4\)"),
        ({"knowledge": 3}, r"^knowledge: expected a Knowledge, found a int"),
        ({"knowledge": knowledge(), "free": True}, r"^knowledge: expected none beside"),
    ],
    ids=str,
)
def test_what_is_told_wrongly_is_refused(given, reason):
    with pytest.raises(InvalidInputError, match=reason):
        from_arrays(P, R, C, convention="sas", **given, **TERMS)


def test_rewards_below_0_and_lists_of_pairs_say_what_to_do():
    with pytest.raises(
        InvalidInputError, match=r"R: .*and 5 moves every value by 50\)"
    ):
        from_arrays(P, R - 5.0 - R.min(), C, convention="sas", **TERMS)
    for rows in (P.reshape(S * A, S)[:9], sp.csr_array(P.reshape(S * A, S))):
        earned = R.ravel()[: rows.shape[0]]
        with pytest.raises(InvalidInputError, match=r"P\[s_indices, a_indices\] = Q"):
            from_arrays(rows, earned, earned, convention="sas", **TERMS)


@pytest.mark.parametrize(
    ("verb", "part"),
    [(ep.E4, "knowledge"), (ep.preflight, "knowledge"), (ep.solve, "cmdp")],
)
def test_verbs_say_which_part_of_a_world_they_take(verb, part):
    world = from_arrays(P, R, C, convention="sas", **TERMS)
    with pytest.raises(InvalidInputError, match=rf"a World; give its \.{part}$"):
        verb(world)


@pytest.mark.parametrize(
    ("arrays", "convention", "reason"),
    [
        (P, "guess", r"^convention: expected one of 'sas', 'ass', \"s'sa\", found"),
        (P, None, r"^convention"),
        (P, "ass", r"^P: expected as many next states as states .* found 4 and 3"),
        (P, "s'sa", r"^P: expected as many next states as states"),
        (P[0], "sas", r"^P: expected three axes"),
        (sp.csr_array(P.reshape(S * A, S)), "ass", r"^P: expected a list of sparse"),
        (sp.csr_array((5, 4)), "sas", r"^P: expected shape \(S · A, S\)"),
        ([sp.eye_array(4), sp.eye_array(3)], "ass", r"^P: .* at matrix 1"),
        ([sp.csr_array((3, 4))] * 2, "ass", r"^P: expected as many next states"),
        (P * 0.9, "sas", r"sum to 1"),
    ],
)
def test_what_is_wrong_is_named(arrays, convention, reason):
    with pytest.raises(InvalidInputError, match=reason):
        from_arrays(arrays, R, C, convention=convention, **TERMS)


@pytest.mark.parametrize(
    ("earned", "paid", "reason"),
    [
        (R, P, r"^R: expected shape \(4, 3, 4\)"),
        (P, C, r"^C: expected shape \(4, 3, 4\), or"),
        (P - 1.0, P, r"^R: expected numbers of at least 0"),
        (P, -P, r"^C: expected numbers of at least 0"),
    ],
)
def test_amounts_by_next_state_are_checked(earned, paid, reason):
    with pytest.raises(InvalidInputError, match=reason):
        from_arrays(P, earned, paid, convention="sas", per_transition=True, **TERMS)
