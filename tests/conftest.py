"""How the tests run: Hypothesis draws the same examples on every run.

`make test` has to give the same answer to everybody.  New examples are drawn with
`--hypothesis-profile=random`, which is how to look for failures that nobody has seen.
"""

from __future__ import annotations

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
