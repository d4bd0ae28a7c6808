"""Laws of the ledger, checked in exact rational numbers.

Probabilities are multiples of 1/64 and every double is a fraction, so what a rule
promises can be added up without rounding: ``E[c + γ b'] <= b`` is tested as it stands.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from escapade.kernels import ledger as kernels
from escapade.kernels.ledger import Ledger, Pending, Plan, decide, settle

PARTS = 64


def rounded_up(x: Fraction) -> float:
    """Return the least double that is not below ``x``."""
    y = float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def pending_for(n_costs: int) -> Pending:
    return Pending(
        rule=np.zeros(n_costs, dtype=np.int64),
        q=np.zeros(n_costs),
        ahead=np.zeros(n_costs),
        reach=np.zeros(n_costs),
        shift=np.zeros(n_costs),
    )


def plan_for(ledger: Ledger, **changes) -> Plan:
    """Return a plan that asks for nothing: whoever follows it plays the fallback."""
    n_states, n_pairs = ledger.w.shape[1], ledger.allowed.size
    n_costs = len(ledger.channels)
    plan = Plan(
        known=np.ones(n_states, dtype=np.bool_),
        home=np.zeros(n_states, dtype=np.bool_),
        goal=np.zeros(n_pairs, dtype=np.int64),
        score=np.zeros(n_pairs),
        exploring=np.zeros(n_states, dtype=np.bool_),
        node_ptr=np.zeros(n_states + 1, dtype=np.int64),
        level=np.zeros(0),
        share=np.eye(1, n_costs)[0],
        grid=np.zeros((n_costs, 0)),
        weight=np.zeros((0, n_pairs)),
        reserve=np.zeros(n_costs),
        turn_home=np.zeros(n_costs),
        turn_back=np.zeros(n_costs),
        recharge=np.zeros(n_costs),
        by_level=False,
        watch=np.full(n_pairs, 2**60),
        urgency=np.array([0.25, 0.5]),
    )
    return plan._replace(**changes)


def with_policy(plan: Plan, weight, level=(-math.inf,)) -> Plan:
    """Return the plan with nodes for state 0, one a row of ``weight``."""
    weight = np.atleast_2d(np.array(weight, dtype=np.float64))
    node_ptr = np.full(plan.node_ptr.size, len(weight), dtype=np.int64)
    node_ptr[0] = 0
    return plan._replace(node_ptr=node_ptr, weight=weight, level=np.array(level))


# -- one decision, with every kernel that is possible ----------------------------------


@dataclass(frozen=True)
class Case:
    """State 0 with its pairs; every pair has a set of kernels, given by vertices."""

    ledger: Ledger
    vertices: list[np.ndarray]  # a pair: [vertices, S], whole numbers out of PARTS
    costs: list[np.ndarray]  # a pair: [K, S], what is paid on the way to each state
    weight: np.ndarray
    promise: np.ndarray

    @property
    def channels(self):
        return self.ledger.channels

    def worst(self, pair: int, k: int, value) -> Fraction:
        """Return the most that the mean of ``value(s)`` can be."""
        values = [value(s) for s in range(self.ledger.w.shape[1])]
        return max(
            sum(
                (Fraction(int(n), PARTS) * v for n, v in zip(row, values, strict=True)),
                Fraction(),
            )
            for row in self.vertices[pair]
        )


def unit_floats():
    return st.one_of(
        st.sampled_from([0.0, 1.0, 1e-300, 2.0**-40, 1.0 - 2.0**-53]),
        st.floats(0.0, 1.0),
    )


@st.composite
def cases(draw) -> Case:
    n_costs = draw(st.integers(1, 3))
    n_states = draw(st.integers(1, 4))
    n_pairs = draw(st.integers(1, 3))
    gamma = draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 0.99, 1.0 - 2.0**-20]))
    most = np.array(
        [draw(st.sampled_from([0.0, 0.3, 1.0, 1e3])) for _ in range(n_costs)]
    )
    cap = np.array([m * 6.0 * draw(unit_floats()) + draw(unit_floats()) for m in most])
    w = np.array([[c * draw(unit_floats()) for _ in range(n_states)] for c in cap])
    vertices, costs = [], []
    for _ in range(n_pairs):
        rows = []
        for _ in range(draw(st.integers(1, 3))):
            cuts = sorted(
                draw(
                    st.lists(
                        st.integers(0, PARTS),
                        min_size=n_states - 1,
                        max_size=n_states - 1,
                    )
                )
            )
            rows.append(np.diff([0, *cuts, PARTS]))
        vertices.append(np.array(rows))
        costs.append(
            np.array([[m * draw(unit_floats()) for _ in range(n_states)] for m in most])
        )
    cuts = sorted(
        draw(
            st.lists(st.integers(0, PARTS), min_size=n_pairs - 1, max_size=n_pairs - 1)
        )
    )
    weight = np.diff([0, *cuts, PARTS]) / PARTS
    tied = draw(st.booleans())
    empty = Ledger(
        channels=tuple(range(n_costs)),
        state_ptr=np.array([0] + [n_pairs] * n_states),
        w=w,
        q=np.zeros((n_costs, n_pairs)),
        ahead=np.zeros((n_costs, n_pairs)),
        reach=np.zeros((n_costs, n_pairs)),
        allowed=np.ones(n_pairs, dtype=np.bool_),
        fallback=np.zeros(n_states, dtype=np.int64),
        cap=cap,
        cost_max=most,
        gamma=gamma,
    )
    case = Case(empty, vertices, costs, weight, np.zeros(n_costs))
    exact_gamma = Fraction(gamma)
    for k in range(n_costs):
        for pair in range(n_pairs):

            def after(s, k=k):
                return exact_gamma * Fraction(w[k, s])

            def paid(s, k=k, pair=pair):
                return Fraction(costs[pair][k, s])

            def both(s, paid=paid, after=after):
                return paid(s) + after(s)

            ahead = case.worst(pair, k, after)
            if tied:
                q = case.worst(pair, k, both)
            else:
                q = case.worst(pair, k, paid) + ahead
            empty.ahead[k, pair] = rounded_up(ahead)
            empty.q[k, pair] = rounded_up(q)
            possible = np.flatnonzero(vertices[pair].any(axis=0))
            empty.reach[k, pair] = rounded_up(max(after(s) for s in possible))
    # the promise: anywhere it may be, and where rules change
    for k in range(n_costs):
        least = max(empty.q[k, 0], w[k, 0])
        assume(least <= cap[k])
        edges = [least, cap[k], float(weight @ empty.q[k])]
        edges += [
            (most[k] + x[k, 0]) * kernels._MARGIN for x in (empty.ahead, empty.reach)
        ]
        at = (
            draw(st.sampled_from(edges))
            if draw(st.booleans())
            else least + (cap[k] - least) * draw(unit_floats())
        )
        at = draw(
            st.sampled_from([at, math.nextafter(at, 0.0), math.nextafter(at, math.inf)])
        )
        case.promise[k] = min(max(at, least), cap[k])
        empty.w[k, 0] = min(empty.w[k, 0], case.promise[k])
    return case


@settings(max_examples=300)
@given(cases(), st.floats(0.0, 1.0, exclude_max=True))
def test_what_is_promised_next_costs_no_more_than_what_was_promised(case, u):
    ledger, gamma = case.ledger, Fraction(case.ledger.gamma)
    plan = with_policy(plan_for(ledger), case.weight)
    pending = pending_for(len(ledger.channels))

    def decided(u):
        return decide(
            ledger, plan, np.zeros(ledger.allowed.size, dtype=np.int64), case.promise,
            np.zeros(1, dtype=np.int64), 0, u, pending,
        )  # fmt: skip

    pair, _, reason = decided(u)
    if reason == kernels.AS_PLANNED:
        assert case.weight[pair] > 0.0
        chances = {i: Fraction(c) for i, c in enumerate(case.weight) if c > 0.0}
    else:
        assert pair == 0
        chances = {0: Fraction(1)}
    following = {}
    for i in chances:
        if reason == kernels.AS_PLANNED:  # what comes next depends on what is drawn
            before = float(case.weight[:i].sum())
            again = math.nextafter(before + float(case.weight[i]), 0.0)
            assert decided(min(before + u * float(case.weight[i]), again))[0] == i
        chosen = pending.rule.copy()
        for s in np.flatnonzero(case.vertices[i].any(axis=0)):
            after = case.promise.copy()
            settle(ledger, pending, np.ascontiguousarray(case.costs[i][:, s]), s, after)
            assert (ledger.w[:, s] <= after).all()
            assert (after <= ledger.cap).all()
            following[i, s] = after
        np.testing.assert_array_equal(pending.rule, chosen)
    for k in case.channels:

        def to_pay(s, i, k=k):
            if (i, s) not in following:
                return Fraction()
            return Fraction(case.costs[i][k, s]) + gamma * Fraction(following[i, s][k])

        spent = sum(
            chance * case.worst(i, k, partial(to_pay, i=i))
            for i, chance in chances.items()
        )
        assert spent <= Fraction(case.promise[k])
