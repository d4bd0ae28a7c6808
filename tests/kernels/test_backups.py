"""The plain Bellman operator, against NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from escapade.kernels.backups import (
    bellman_backup,
    chain_residual,
    improve,
    pair_values,
)
from escapade.testing import cmdps


@st.composite
def cases(draw):
    cmdp = draw(cmdps())
    value = draw(
        st.lists(st.integers(-8, 8), min_size=cmdp.n_states, max_size=cmdp.n_states)
    )
    return cmdp, np.array(value, dtype=np.float64) / 4.0


def rows(cmdp):
    return cmdp.row_ptr, cmdp.successor, cmdp.probability


def in_numpy(cmdp, value):
    return cmdp.reward + cmdp.discount * (cmdp.transition_matrix.toarray() @ value)


def backed_up(cmdp, value):
    out = np.empty(cmdp.n_states)
    best = np.empty(cmdp.n_states, dtype=np.int64)
    low, high = bellman_backup(
        cmdp.state_ptr, *rows(cmdp), cmdp.reward, cmdp.discount, value, out, best
    )
    return out, best, low, high


@settings(max_examples=40)
@given(cases())
def test_pair_values_are_reward_and_what_follows(case):
    cmdp, value = case
    out = np.empty(cmdp.n_pairs)
    pair_values(*rows(cmdp), cmdp.reward, cmdp.discount, value, out)
    np.testing.assert_allclose(out, in_numpy(cmdp, value), atol=1e-14)


@settings(max_examples=40)
@given(cases())
def test_a_backup_takes_the_best_pair_of_every_state(case):
    cmdp, value = case
    out, best, low, high = backed_up(cmdp, value)
    expected = np.maximum.reduceat(in_numpy(cmdp, value), cmdp.state_ptr[:-1])
    np.testing.assert_allclose(out, expected, atol=1e-14)
    np.testing.assert_array_equal(cmdp.pair_state[best], np.arange(cmdp.n_states))
    own = np.empty(cmdp.n_pairs)
    pair_values(*rows(cmdp), cmdp.reward, cmdp.discount, value, own)
    np.testing.assert_array_equal(own[best], out)  # it attains it, and is the first
    for state, pair in enumerate(best):
        assert not (own[cmdp.state_ptr[state] : pair] >= out[state]).any()
    assert low == (out - value).min()
    assert high == (out - value).max()


@settings(max_examples=40)
@given(cases(), st.sampled_from([-2.0, 0.5, 3.0]))
def test_the_laws_of_the_operator(case, shift):
    """Monotone, a contraction by γ, and ``T(v + c) = T v + γ c``."""
    cmdp, value = case
    out, *_ = backed_up(cmdp, value)
    moved, *_ = backed_up(cmdp, value + shift)
    np.testing.assert_allclose(moved, out + cmdp.discount * shift, atol=1e-13)
    other = value + np.abs(np.sin(np.arange(value.size) + shift))
    higher, *_ = backed_up(cmdp, other)
    assert (higher >= out - 1e-14).all()
    assert (higher - out).max() <= cmdp.discount * (other - value).max() + 1e-14


@settings(max_examples=40)
@given(cases(), st.data())
def test_improvement_moves_only_where_it_gains(case, data):
    cmdp, value = case
    counts = np.diff(cmdp.state_ptr)
    chosen = cmdp.state_ptr[:-1] + np.array(
        [data.draw(st.integers(0, int(count) - 1)) for count in counts]
    )
    before = chosen.copy()
    margin = data.draw(st.sampled_from([0.0, 0.3]))
    changed, low, high = improve(
        cmdp.state_ptr,
        *rows(cmdp),
        cmdp.reward,
        cmdp.discount,
        value,
        margin,
        chosen,
    )
    own = np.empty(cmdp.n_pairs)
    pair_values(*rows(cmdp), cmdp.reward, cmdp.discount, value, own)
    top = np.maximum.reduceat(own, cmdp.state_ptr[:-1])
    gains = top > own[before] + margin
    assert changed == gains.sum() == (chosen != before).sum()
    np.testing.assert_array_equal(chosen[~gains], before[~gains])
    np.testing.assert_array_equal(own[chosen[gains]], top[gains])
    assert (low, high) == ((top - value).min(), (top - value).max())


@settings(max_examples=40)
@given(cases(), st.data())
def test_the_residual_of_a_chain(case, data):
    cmdp, value = case
    counts = np.diff(cmdp.state_ptr)
    chosen = cmdp.state_ptr[:-1] + np.array(
        [data.draw(st.integers(0, int(count) - 1)) for count in counts]
    )
    out = np.empty(cmdp.n_states)
    low, high = chain_residual(
        chosen, *rows(cmdp), cmdp.reward[chosen], cmdp.discount, value, out
    )
    expected = in_numpy(cmdp, value)[chosen] - value
    np.testing.assert_allclose(out, expected, atol=1e-14)
    assert (low, high) == (out.min(), out.max())
