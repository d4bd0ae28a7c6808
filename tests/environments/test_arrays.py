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


def test_what_is_told_is_told():
    told = ep.environments.three_state_loop().knowledge
    world = from_arrays(P, R, C, convention="sas", knowledge=told, **TERMS)
    assert world.knowledge is told
    with pytest.raises(InvalidInputError, match=r"^knowledge: expected"):
        _ = from_arrays(P, R, C, convention="sas", **TERMS).knowledge


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
