"""Small plants to know something about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from escapade.knowledge import Knowledge


@pytest.fixture
def told() -> dict[str, Any]:
    """Arguments of a plant with three states and two actions, one of them missing."""
    support = np.array(
        [
            [[1, 1, 0], [0, 0, 1]],
            [[1, 1, 1], [0, 0, 0]],
            [[0, 0, 1], [1, 0, 1]],
        ],
        dtype=bool,
    )
    return {
        "n_states": 3,
        "n_actions": 2,
        "discount": 0.9,
        "budget": [2.0, 3.0],
        "reward_max": 1.0,
        "cost_max": [1.0, 4.0],
        "available": [[True, True], [True, False], [True, True]],
        "support": support,
    }


@pytest.fixture
def plant(told) -> Knowledge:
    return Knowledge(**told)
