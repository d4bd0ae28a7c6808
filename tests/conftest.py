"""How the tests run: Hypothesis draws the same examples on every CI run."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A first example may compile a kernel, and coverage runs with compilation off: neither
# says anything about the code under test, so no example has a deadline.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "dev", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
