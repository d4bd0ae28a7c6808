"""Families of models: mixed pair by pair, or one throughout."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.uncertainty import Models


def _family(n_models=4, seed=0):
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(n_models):
        P = rng.dirichlet(np.full(4, 0.5), (4, 2))
        P[P < 0.15] = 0.0
        tables.append(P / P.sum(axis=2, keepdims=True))
    cost = rng.random((4, 2))
    return [
        ep.CMDP(P, 1.0 - cost, cost, discount=0.9, budget=8.0, cost_max=1.0)
        for P in tables
    ]


def _single():
    return ep.CMDP([[[1.0]]], [[0.0]], [[0.0]], discount=0.9, budget=1.0)


def _dense(models, kernel):
    table = np.zeros((models.n_pairs, models.n_states))
    for pair in range(models.n_pairs):
        own = slice(models.row_ptr[pair], models.row_ptr[pair + 1])
        table[pair, models.successor[own]] = kernel[own]
    return table


def test_kernels_are_read_in_every_form():
    family = _family()
    dense = [model.transition_matrix.toarray() for model in family]
    forms = [family[0], dense[1].reshape(4, 2, 4), sp.coo_array(dense[2]), dense[3]]
    models = Models(family[0], forms)
    assert models.n_models == 4
    v = np.array([3.0, 0.0, -1.0, 2.0])
    np.testing.assert_allclose(
        models.worst(v), np.max([P @ v for P in dense], axis=0), atol=1e-15
    )
    np.testing.assert_allclose(
        models.worst(v, sense="min"), np.min([P @ v for P in dense], axis=0), atol=1e-15
    )
    assert np.array_equal(_dense(models, models.nominal), dense[0])
    union = np.any([P > 0 for P in dense], axis=0)
    assert np.array_equal(_dense(models, models.reachable) > 0, union)


def test_members_are_the_models_themselves():
    family = _family()
    models = Models(family[0], family, throughout=True)
    assert list(models.members(family[0])) == family
    assert not models.rectangular


def test_one_model_throughout_is_not_the_worst_of_each_pair():
    """Two ways around, each cheap in one model: mixing them is dear, neither is."""
    P = np.zeros((2, 3, 1, 3))
    P[:, 0, 0] = [[0.0, 1.0, 0.0]] * 2
    P[0, 1, 0], P[1, 1, 0] = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
    P[0, 2, 0], P[1, 2, 0] = [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]
    cost = np.array([[0.0], [0.0], [1.0]])
    family = [
        ep.CMDP(rows, np.zeros((3, 1)), cost, discount=0.9, budget=10.0) for rows in P
    ]
    policy = ep.Policy.deterministic([0, 0, 0], 1)
    throughout = Models(family[0], family, throughout=True)
    alone = [ep.evaluate(model, policy).costs[0] for model in family]
    found = ep.robust_evaluate(family[0], policy, throughout)
    np.testing.assert_allclose(found.costs_upper[0], np.max(alone, axis=0), atol=1e-6)
    mixed = ep.robust_evaluate(family[0], policy, throughout.hull())
    assert mixed.costs_upper[0, 0] > found.costs_upper[0, 0] + 1.0


def test_one_model_throughout_has_no_worst_row():
    family = _family()
    models = Models(family[0], family, throughout=True)
    for ask in (models.worst, models.worst_kernel):
        with pytest.raises(
            InvalidInputError, match=r"rectangular over pairs, found one"
        ):
            ask(np.zeros(4))
    with pytest.raises(InvalidInputError, match="a radius to multiply by"):
        models.shrink(0.5)


def test_membership_looks_at_whole_models_where_one_holds_throughout():
    family = _family()
    mixed = Models(family[0], family)
    one = Models(family[0], family, throughout=True)
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert mixed.contains(mixed.sample(rng)).all()
        assert one.contains(one.sample(rng)).all()
        assert mixed.contains(one.sample(rng)).all()
    patchwork = np.where(
        np.arange(8)[:, np.newaxis] % 2,
        *[m.transition_matrix.toarray() for m in family[:2]],
    )
    entries = np.concatenate(
        [
            patchwork[
                pair, mixed.successor[mixed.row_ptr[pair] : mixed.row_ptr[pair + 1]]
            ]
            for pair in range(8)
        ]
    )
    assert mixed.contains(entries).all()
    assert not one.contains(entries).all()
    assert not mixed.contains(0.5 * (entries + mixed.sample(rng))).all()


def test_samples_visit_every_model():
    family = _family()
    one = Models(family[0], family, throughout=True)
    rng = np.random.default_rng(1)
    drawn = {one.sample(rng).tobytes() for _ in range(60)}
    assert len(drawn) == 4


def test_models_that_are_ruled_out_count_no_more():
    family = _family()
    models = Models(family[0], family)
    fewer = models.keep([True, False, True, False])
    same = Models(family[0], [family[0], family[2]])
    v = np.array([3.0, 0.0, -1.0, 2.0])
    for sense in ("min", "max"):
        assert np.array_equal(fewer.worst(v, sense=sense), same.worst(v, sense=sense))
    assert fewer.n_models == 4
    by_pair = np.ones((8, 4), dtype=bool)
    by_pair[3, :3] = False
    mended = models.keep(by_pair)
    assert np.array_equal(
        _dense(mended, mended.nominal)[3], family[3].transition_matrix.toarray()[3]
    )
    assert mended.contains(mended.nominal).all()
    assert mended.keep(by_pair[0]).active.sum() == mended.active.sum()


def test_keeping_fewer_models_throughout_moves_the_nominal_as_a_whole():
    family = _family()
    one = Models(family[0], family, throughout=True).keep([False, True, True, False])
    assert not one.rectangular
    assert list(one.members(family[0])) == family[1:3]
    assert one.contains(one.nominal).all()
    rng = np.random.default_rng(2)
    assert all(one.contains(one.sample(rng)).all() for _ in range(10))


def test_a_lifted_family_is_rectangular():
    family = _family()
    one = Models(family[0], family, throughout=True)
    pairs = np.array([5, 0, 5])
    lengths = np.diff(one.row_ptr)[pairs]
    target = np.concatenate([np.arange(n) for n in lengths])
    lifted = one.lift(pairs, target, 6)
    assert lifted.rectangular
    v = np.arange(6.0) ** 2
    expected = []
    for pair in pairs:
        own = slice(one.row_ptr[pair], one.row_ptr[pair + 1])
        rows = [_dense(one, np.asarray(m)) for m in one._probability.T]
        values = [r[pair, one.successor[own]] @ v[: own.stop - own.start] for r in rows]
        expected.append(max(values))
    np.testing.assert_allclose(lifted.worst(v), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda f: Models(f[0], []), "kernels: expected a sequence of at least one"),
        (lambda f: Models(f[0], f[0]), "kernels: expected a sequence of at least one"),
        (lambda f: Models(f[0], f[1:]), "a family that holds the problem's own trans"),
        (
            lambda f: Models(f[0], [_single()]),
            "kernels[0]: expected a problem with the same pairs",
        ),
        (
            lambda f: Models(f[0], [f[0], np.full((4, 2, 4), 0.3)]),
            "kernels[1]: expected rows that sum to 1, found a sum of 1.2 at state 0",
        ),
        (
            lambda f: Models(f[0], [np.full((4, 2, 4), -0.25)]),
            "kernels[0]: expected finite numbers of at least 0, found -0.25",
        ),
        (
            lambda f: list(Models(f[0], f).members(f[0])),
            "a family of which one model holds throughout",
        ),
        (
            lambda f: Models(f[0], f).keep([1, 0, 0, 1]),
            "models: expected a boolean mask",
        ),
        (
            lambda f: Models(f[0], f, throughout=True).keep(
                np.ones((8, 4), dtype=bool)
            ),
            "shape (4,), found bool of shape (8, 4)",
        ),
        (
            lambda f: Models(f[0], f).keep(np.zeros(4, dtype=bool)),
            "models: expected at least one model for every pair, found none at state "
            "0, action 0",
        ),
    ],
)
def test_bad_families_are_refused(build, message):
    with pytest.raises(InvalidInputError) as caught:
        build(_family())
    assert message in str(caught.value)


def test_threads_give_the_same_bits(monkeypatch):
    family = _family()
    models = Models(family[0], family)
    v = np.array([3.0, 0.0, -1.0, 2.0])
    alone = models.worst(v)
    monkeypatch.setattr("escapade.uncertainty.models.pieces_of_work", lambda _: 2)
    assert np.array_equal(models.worst(v), alone)
