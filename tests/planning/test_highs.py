"""The file that touches HiGHS: signs of prices, outcomes, refusals."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
import scipy.sparse as sp

from escapade.errors import InvalidInputError, SolverError
from escapade.planning import highs
from escapade.planning.highs import LinearProgram, check_method, maximise

METHODS = ["simplex", "interior_point"]


def program(**changes) -> LinearProgram:
    """Maximise 3x + 2y with x + y <= 4, x >= 1 as a row, and 0 <= y <= 3."""
    fields = {
        "objective": np.array([3.0, 2.0]),
        "matrix": sp.csc_array(np.array([[1.0, 1.0], [1.0, 0.0]])),
        "row_lower": np.array([-np.inf, 1.0]),
        "row_upper": np.array([4.0, np.inf]),
        "lower": np.zeros(2),
        "upper": np.array([np.inf, 3.0]),
    }
    return LinearProgram(**{**fields, **changes})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("presolve", [True, False])
def test_prices_are_rates_of_the_maximum(method, presolve) -> None:
    answer = maximise(program(), method=method, presolve=presolve)
    assert answer.outcome == "optimal"
    np.testing.assert_allclose(answer.x, [4.0, 0.0], atol=1e-8)
    np.testing.assert_allclose(answer.prices, [3.0, 0.0], atol=1e-8)
    for row in range(2):
        upper = np.array([4.0, np.inf])
        upper[row] += 0.01
        more = maximise(program(row_upper=upper), method=method)
        assert (more.x - answer.x) @ [3.0, 2.0] == pytest.approx(
            0.01 * answer.prices[row], abs=1e-9
        )


def test_an_active_lower_bound_has_a_price_of_at_most_zero() -> None:
    fields = {"objective": np.array([-1.0, 2.0]), "upper": np.array([np.inf, 2.0])}
    answer = maximise(program(**fields))
    np.testing.assert_allclose(answer.x, [1.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(answer.prices, [0.0, -1.0], atol=1e-9)
    more = maximise(program(**fields, row_lower=np.array([-np.inf, 1.25])))
    change = (more.x - answer.x) @ fields["objective"]
    assert change == pytest.approx(0.25 * answer.prices[1])


def test_outcomes_have_names() -> None:
    impossible = program(row_lower=np.array([5.0, 1.0]))
    assert maximise(impossible).outcome in ("infeasible", "unbounded_or_infeasible")
    endless = program(row_upper=np.array([np.inf, np.inf]))
    assert maximise(endless).outcome in ("unbounded", "unbounded_or_infeasible")
    assert maximise(endless, presolve=False).outcome == "unbounded"


def test_limits_stop_it() -> None:
    rng = np.random.default_rng(0)
    n = 60
    hard = LinearProgram(
        objective=rng.random(n),
        matrix=sp.csc_array(rng.random((n, n))),
        row_lower=np.full(n, -np.inf),
        row_upper=rng.random(n) + 1.0,
        lower=np.zeros(n),
        upper=np.full(n, np.inf),
    )
    short = maximise(hard, max_iterations=1, presolve=False)
    assert short.outcome == "iteration_limit"
    assert maximise(hard, time_limit=1e-9, presolve=False).outcome == "time_limit"
    assert maximise(hard).iterations > short.iterations


class Reluctant(dict[highspy.HighsModelStatus, str]):
    """Outcomes of which the first few are not recognised."""

    def __init__(self, failures: int) -> None:
        super().__init__(highs._OUTCOMES)
        self.failures = failures

    def __contains__(self, status: object) -> bool:
        self.failures -= 1
        return self.failures < 0 and super().__contains__(status)


@pytest.mark.parametrize("failures", [1, 2])
def test_what_breaks_down_is_asked_in_another_way(failures, monkeypatch) -> None:
    monkeypatch.setattr(highs, "_OUTCOMES", Reluctant(failures))
    answer = maximise(program())
    assert answer.outcome == "optimal"
    assert program().objective @ answer.x == pytest.approx(12.0)


def test_what_breaks_down_in_every_way_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(highs, "_OUTCOMES", Reluctant(3))
    with pytest.raises(SolverError, match="broke down with 'Optimal', by either"):
        maximise(program())


def test_what_highs_cannot_read_is_an_error() -> None:
    with pytest.raises(SolverError, match="refuses the linear program"):
        maximise(program(objective=np.array([np.nan, 1.0]), matrix=_infinite()))
    with pytest.raises(SolverError, match="refuses the option"):
        maximise(program(), time_limit=-1.0)


def _infinite() -> sp.csc_array:
    return sp.csc_array(np.array([[np.inf, 1.0], [1.0, 0.0]]))


def test_a_breakdown_is_an_error(monkeypatch) -> None:
    status = highspy.HighsModelStatus.kSolveError
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda self: status)
    with pytest.raises(SolverError, match="broke down"):
        maximise(program())


def test_methods_are_named() -> None:
    check_method("simplex")
    with pytest.raises(InvalidInputError, match="method: expected one of"):
        check_method("pdlp")
