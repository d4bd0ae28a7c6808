"""Sets taken apart into arrays and words, and put together again."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import escapade as ep
from escapade.errors import InvalidInputError
from escapade.model.layout import Pairs
from escapade.uncertainty import ActionModel, ActionModels, Failures, Transfer, within
from escapade.uncertainty.packing import pack_set, unpack_set


def through_a_file(sets):
    tree, arrays = pack_set(sets)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        read = {name: archive[name] for name in archive.files}
    return unpack_set(json.loads(json.dumps(tree)), read)


def problem():
    return ep.environments.garnet(6, 2, 3, seed=1, slack=0.5).cmdp


def corridor(length=6):
    """Walls that may stand anywhere in a corridor, costs tied to hitting them."""
    cells = np.arange(length)
    return ActionModels(
        Pairs.from_mask(np.ones((length, 2), dtype=bool)),
        {
            "free": ActionModel(
                typical=np.stack([np.minimum(cells + 1, length - 1), cells], axis=1),
                cost=0.0,
                reward=(0.0, 0.5),
            ),
            "wall": ActionModel(
                typical=np.stack([cells, np.full(length, -1)], axis=1), cost=1.0
            ),
        },
        failures=[
            Failures(around=within(cells[:, None], 1.0), rate=(0.0, 0.1), law="any"),
            Failures(around=within(cells[:, None], 2.0), rate=0.05),
        ],
        groups=np.stack([cells // 2, np.full(length, -1)], axis=1),
        transfers=Transfer(source=[0], target=[4], rho=[[1, 1], [0, 1]]),
        error=0.01,
        cost_max=1.0,
        reward_max=1.0,
    )


def seen_corridor():
    models = corridor()
    counts = np.zeros(models.successor.size)
    counts[models.row_ptr[0]] = 60.0  # the first cell is left by nobody
    return models.observe(counts)


def sets_of_every_kind():
    cmdp = problem()
    other = cmdp.replace(budget=cmdp.budget)
    rng = np.random.default_rng(0)
    shape = (cmdp.n_pairs, cmdp.n_states)
    family = [other, *rng.dirichlet(np.ones(shape[1]), (2, shape[0]))]
    interval = ep.uncertainty.Interval(cmdp, radius=0.1)
    return {
        "interval": interval,
        "everywhere": ep.uncertainty.Interval(cmdp, radius=0.1, support="everywhere"),
        "l1": ep.uncertainty.L1Ball(cmdp, radius=0.3),
        "kl": ep.uncertainty.KLBall(cmdp, radius=0.2),
        "kl-free": ep.uncertainty.KLBall(cmdp, radius=np.inf),
        "models": ep.uncertainty.Models(cmdp, family),
        "throughout": ep.uncertainty.Models(cmdp, family, throughout=True),
        "factors": ep.uncertainty.FactorMatrix(
            rng.dirichlet(np.ones(3), 7), rng.dirichlet(np.ones(4), 3), radius=0.2
        ),
        "corridor": corridor(),
        "seen corridor": seen_corridor(),
        "both": ep.uncertainty.Intersection(
            ep.uncertainty.L1Ball(cmdp, radius=0.3), interval
        ),
    }


@pytest.mark.parametrize("name", sets_of_every_kind())
def test_sets_come_back_bit_for_bit(name):
    sets = sets_of_every_kind()[name]
    copy = through_a_file(sets)
    assert type(copy) is type(sets)
    assert copy.rectangular == sets.rectangular
    for array in ("row_ptr", "successor", "nominal", "reachable"):
        np.testing.assert_array_equal(getattr(copy, array), getattr(sets, array))
    if not sets.rectangular:
        np.testing.assert_array_equal(copy.model_rows, sets.model_rows)
        sets, copy = sets.hull(), copy.hull()
    rng = np.random.default_rng(0)
    for sense in ("max", "min"):
        v = rng.normal(size=sets.n_states)
        ours, theirs = copy.worst(v, sense=sense), sets.worst(v, sense=sense)
        np.testing.assert_array_equal(ours, theirs)


def test_models_go_on_learning_where_they_were():
    models = seen_corridor()
    copy = through_a_file(models)
    assert models.left.sum() < corridor().left.sum()  # something had been ruled out
    np.testing.assert_array_equal(copy.left, models.left)
    np.testing.assert_array_equal(copy.log_evidence, models.log_evidence)
    assert copy.threshold == models.threshold
    assert copy.names == models.names
    counts = np.round(80.0 * models.nominal)
    again, copied = models.observe(counts), copy.observe(counts)
    np.testing.assert_array_equal(again.left, copied.left)
    np.testing.assert_array_equal(again.nominal, copied.nominal)
    cost = np.ones((1, models.n_pairs))
    v = np.linspace(0.0, 3.0, models.n_states)
    for first, second in ((models, copy), (again, copied)):
        (a, gain), (b, _) = (s.charged(cost, np.ones(1), 0.9) for s in (first, second))
        np.testing.assert_array_equal(a.backup(v, gain, 0.9), b.backup(v, gain, 0.9))


def test_sets_that_are_derived_are_refused():
    models = corridor()
    charged, _ = models.charged(np.ones((1, models.n_pairs)), np.ones(1), 0.9)
    with pytest.raises(InvalidInputError, match="sets: expected one of"):
        pack_set(charged)


def damaged(change):
    tree, arrays = pack_set(corridor())
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(tree, arrays)
    return tree, arrays


def _set(name, place, value):
    def change(tree, arrays):
        arrays[name][place] = value

    return change


def _cut(name):
    def change(tree, arrays):
        arrays[name] = arrays[name][:-1]

    return change


def _rename(tree, arrays):
    tree["set"] = "Pickle"


def _lose(tree, arrays):
    del arrays["set.left"]


def _record(tree, arrays):
    tree["parts"]["statement"]["record"] = "Popen"


def _field(tree, arrays):
    del tree["parts"]["statement"]["parts"]["kind"]


def _deep(tree, arrays):
    inner = tree["parts"]
    for _ in range(40):
        inner["left"] = {"list": [{"parts": {}}]}
        inner["left"]["list"][0]["parts"] = {"left": {}}
        inner = inner["left"]["list"][0]["parts"]


@pytest.mark.parametrize(
    "change",
    [
        _set("set.statement.branches.target", 0, 10_000),
        _set("set.statement.branches.target", 0, -1),
        _set("set.statement.branches.around", 0, 10_000),
        _set("set.statement.branches.near", 0, 10_000),
        _set("set.statement.branches.near_ptr", -1, 10_000),
        _set("set.statement.branches.ptr", 1, -5),
        _set("set.statement.branches.high", 0, 2.0),
        _set("set.statement.groups.of", 0, 10_000),
        _set("set.statement.groups.members", 0, -1),
        _set("set.statement.links.linked", 0, 10_000),
        _set("set.statement.links.rule", 0, 7),
        _set("set.statement.rows.stored", 0, 10_000),
        _set("set.statement.rows.stored", 1, 0),
        _set("set.statement.rows.stored_nominal", 0, np.nan),
        _set("set.statement.kind", 0, 10_000),
        _set("set.statement.pair", 0, 3),
        _set("set.statement.spaces.pair_action", 0, 9),
        _set("set.statement.spaces.pair_state", 0, 9),
        _set("set.left", slice(None), False),
        _cut("set.left"),
        _cut("set.weighed.rate"),
        _cut("set.statement.gains"),
        _cut("set.statement.contested"),
        _rename,
        _lose,
        _record,
        _field,
        _deep,
    ],
)
def test_damaged_parts_are_refused(change):
    tree, arrays = damaged(change)
    with pytest.raises(InvalidInputError):
        unpack_set(tree, arrays)


def test_a_family_with_too_few_rows_is_refused():
    tree, arrays = pack_set(sets_of_every_kind()["models"])
    for name in ("set.probability", "set.active"):
        broken = {**arrays, name: arrays[name][:-1]}
        with pytest.raises(InvalidInputError):
            unpack_set(tree, broken)


def test_what_is_no_set_is_refused():
    rows = corridor().statement.rows
    tree, arrays = pack_set(ep.uncertainty.Interval.around(rows, *[rows.nominal] * 2))
    with pytest.raises(InvalidInputError, match="a packed set"):
        unpack_set(tree["parts"]["rows"], arrays)
    for tree in ({}, {"set": "Interval", "parts": {}}, [1], {"list": 3}):
        with pytest.raises(InvalidInputError):
            unpack_set(tree, arrays)


def test_statements_keep_their_error():
    models = corridor().with_error(0.2)
    assert through_a_file(models).error == 0.2
    assert replace(models.statement, error=0.1).error == 0.1
