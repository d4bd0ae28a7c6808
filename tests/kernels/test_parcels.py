"""Parcels: what compiled code finds in a table is what was wrapped up."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from escapade.agent import E4
from escapade.environments import three_state_loop
from escapade.kernels.compilation import COMPILES, compiled
from escapade.kernels.life import LIFE
from escapade.kernels.parcels import (
    CHANNELS,
    CODES,
    FLAG,
    INDICES,
    INTEGER,
    INTEGERS,
    MASK,
    NUMBER,
    NUMBERS,
    TABLE,
    Layout,
    Parcel,
)
from escapade.simulation import simulate


class Inner(NamedTuple):
    channels: tuple[int, ...]
    number: float
    table: np.ndarray
    flag: bool


class Outer(NamedTuple):
    integer: int
    mask: np.ndarray
    inner: Inner
    codes: np.ndarray
    indices: np.ndarray
    integers: np.ndarray
    numbers: np.ndarray
    other: bool


OUTER = Layout(
    Outer,
    integer=INTEGER,
    mask=MASK,
    inner=Layout(Inner, channels=CHANNELS, number=NUMBER, table=TABLE, flag=FLAG),
    codes=CODES,
    indices=INDICES,
    integers=INTEGERS,
    numbers=NUMBERS,
    other=FLAG,
)

outer_in = OUTER.reader()


def content(n_costs: int = 2) -> Outer:
    return Outer(
        integer=-7,
        mask=np.array([True, False, True]),
        inner=Inner(
            channels=tuple(range(n_costs)),
            number=-0.1,
            table=np.arange(6.0).reshape(2, 3),
            flag=False,
        ),
        codes=np.array([3, -4], dtype=np.int8),
        indices=np.array([1, 2, 3, 4], dtype=np.int32),
        integers=np.array([2**60, -5]),
        numbers=np.zeros(13),
        other=True,
    )


@compiled
def copy_out(table, channels):
    found = outer_in(table, channels)
    out = found.numbers
    out[0] = found.integer
    out[1] = found.mask[0] + 2 * found.mask[1] + 4 * found.mask[2]
    out[2] = len(found.inner.channels)
    out[3] = found.inner.number
    out[4] = found.inner.table[1, 2]
    out[5] = found.inner.table[0, 1]
    out[6] = found.inner.flag
    out[7] = found.codes[1]
    out[8] = found.indices[3]
    out[9] = found.integers[1]
    out[10] = found.other
    out[11] = found.inner.table.size
    found.integers[0] = -found.integers[0]
    return found.indices.size


@pytest.mark.parametrize("n_costs", [1, 2, 3])
def test_a_kernel_reads_and_writes_what_was_wrapped_up(n_costs):
    held = content(n_costs)
    parcel = Parcel(OUTER, held)
    assert (parcel.table is held) != COMPILES
    for round_ in (1, -1):  # the table stays good
        assert copy_out(parcel.table, held.inner.channels) == 4
        assert held.integers.tolist() == [-round_ * 2**60, -5]
    assert held.numbers.tolist() == [
        -7.0, 5.0, n_costs, -0.1, 5.0, 1.0, 0.0, -4.0, 4.0, -5.0, 1.0, 6.0, 0.0
    ]  # fmt: skip


def test_a_parcel_keeps_alive_what_its_table_points_to():
    parcel = Parcel(OUTER, content())
    copy_out(parcel.table, (0, 1))
    assert parcel.content.numbers[3] == -0.1


def test_a_parcel_is_not_copied_and_a_copied_agent_wraps_up_its_own_arrays():
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.deepcopy(Parcel(OUTER, content()))
    world = three_state_loop()
    agent = E4(world.knowledge)
    simulate(agent, world.make_env(), 5)
    twin, visits = copy.deepcopy(agent), agent.belief.evidence.pair_visits.copy()
    decision = twin.ask(twin.state)
    assert decision == agent.ask(agent.state)
    twin.tell(decision, reward=0.0, cost=0.0, next_state=twin.state)
    np.testing.assert_array_equal(agent.belief.evidence.pair_visits, visits)
    assert twin.belief.evidence.pair_visits.sum() == visits.sum() + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numbers", np.zeros(3, dtype=np.float32)),
        ("numbers", np.zeros((3, 1))),
        ("numbers", np.zeros(6)[::2]),
        ("integers", [1, 2]),
        ("indices", np.zeros(3, dtype=np.int64)),
        ("mask", np.zeros(3, dtype=np.int8)),
    ],
)
def test_what_lies_otherwise_is_refused(name, value):
    with pytest.raises(TypeError, match=f"Outer.{name}: expected a contiguous array"):
        Parcel(OUTER, content()._replace(**{name: value}))


def test_a_layout_names_every_field_in_order():
    fields = dict(OUTER.fields)
    fields["other"] = fields.pop("mask")
    with pytest.raises(TypeError, match="expected the fields"):
        Layout(Outer, **{"mask": MASK, **fields})
    assert LIFE.made.__name__ == "Life"


@pytest.mark.slow
@pytest.mark.compiled
def test_a_second_process_compiles_no_step_again(tmp_path):
    code = """
import escapade as ep
from escapade.kernels import life, lifetime, replay
from escapade.simulation import replay as again
world = ep.environments.three_state_loop()
trace = ep.simulate(ep.E4(world.knowledge), world.make_env(), 50)
agent = ep.E4(world.knowledge)
assert again(agent, trace) is None
decision = agent.ask(int(trace.states[-1]))
agent.tell(decision, reward=0.0, cost=0.0, next_state=decision.state)
steps = (life.answer, life.hear, lifetime.live, replay.live_again)
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in steps))
"""
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "NUMBA_DISABLE_JIT": "0",
                "NUMBA_CACHE_DIR": str(tmp_path),
            },
        )
        found.append(int(done.stdout))
    assert found == [4, 0]
