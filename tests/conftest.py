"""How the tests run: Hypothesis draws the same examples on every run.

`make test` has to give the same answer to everybody.  New examples are drawn with
`--hypothesis-profile=random`, which is how to look for failures that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import pytest
from hypothesis import HealthCheck, settings

# A first example may compile a kernel, and coverage runs with compilation off: neither
# says anything about the code under test, so no example has a deadline.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "random", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def few_levels_where_nothing_is_compiled() -> Iterator[None]:
    """Plan several promises by five levels each, as plain Python takes its time."""
    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT:
            patch.setattr("escapade.agent.earning._LEVELS_EACH", (5, 5))
        yield
