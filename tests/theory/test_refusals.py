"""Whatever a formula is given, it answers or refuses in one line that names it.

Every public function of plain numbers is called with good numbers, of which one at a
time is replaced by something hostile.  Nothing but a refusal may be raised, no NaN and
no warning may come out.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest

from escapade import theory
from escapade.errors import InvalidInputError

GOOD = {
    "accuracy": 0.01,
    "attempts": 100,
    "budget": 10.0,
    "cost": 0.25,
    "cost_max": 1.0,
    "cost_variance": 0.125,
    "costs": (0.25, 0.5),
    "delta": 0.05,
    "deviations": 3.0,
    "discount": 0.875,
    "discounted_exit": 0.25,
    "epsilon": 0.5,
    "escape_budget": 5.0,
    "escape_steps": 3.0,
    "expected_escape_cost": 1.0,
    "first_epsilon": 1.0,
    "horizon": 20,
    "known_budget": 4.0,
    "known_value": 3.0,
    "maximum": 1.0,
    "mean": 0.5,
    "n_actions": 4,
    "n_pairs": 40,
    "n_states": 10,
    "optimisation_operations": 10.0,
    "plan_budget": 2.0,
    "probability": 0.125,
    "radius": 0.125,
    "reward_max": 1.0,
    "row_distance": 0.125,
    "running": 5.0,
    "safe_return_budget": 0.5,
    "samples_as_printed": 1e9,
    "scale": 1.0,
    "signal_error": 0.125,
    "spent": 1.0,
    "stages": 2,
    "step": 2,
    "steps": 5,
    "support_size": 5,
    "value_bound": 9.0,
    "variance": 0.125,
    "visits": 10,
    "worst_escape_cost": 2.0,
}
HOSTILE = {
    "nan": math.nan,
    "infinity": math.inf,
    "less than nothing": -1.0,
    "less than any number": -math.inf,
    "nothing": 0.0,
    "a denormal": 1e-320,
    "the largest": 1.7e308,
    "beyond every double": 10**400,
    "below every double": -(10**400),
    "words": "ten",
    "a number in words": "0.5",
    "None": None,
    "true": True,
    "complex": 1j,
    "a list": [0.5, [0.5]],
    "an object": object(),
}
# Where one argument limits another, the refusal may name the other.
LIMITED = {("next_running_budget", "budget"): "running"}


def formulas():
    for module in pkgutil.iter_modules(theory.__path__, "escapade.theory."):
        code = importlib.import_module(module.name)
        for name in code.__all__:
            function = getattr(code, name)
            if not inspect.isfunction(function):
                continue
            needed = {
                parameter.name
                for parameter in inspect.signature(function).parameters.values()
                if parameter.default is parameter.empty
            }
            if needed and needed <= GOOD.keys():
                yield function, {name: GOOD[name] for name in needed}


FORMULAS = {function.__name__: (function, given) for function, given in formulas()}


def test_the_formulas_are_found():
    assert len(FORMULAS) >= 50
    assert {"horizon_time", "known_visits", "bounds", "hoeffding_radius"} <= set(
        FORMULAS
    )


def asked(function, given):
    """Return the answer, or None and why it was refused."""
    try:
        return function(**given), None
    except InvalidInputError as refused:
        return None, str(refused)


@pytest.mark.parametrize("name", FORMULAS)
def test_an_answer_or_a_refusal(name):
    function, given = FORMULAS[name]
    for argument in inspect.signature(function).parameters:
        for hostile in HOSTILE.values():
            answer, message = asked(function, {**given, argument: hostile})
            if message is None:
                if isinstance(answer, float | np.ndarray):
                    assert not np.isnan(answer).any(), (argument, hostile)
            else:
                other = LIMITED.get((name, argument), argument)
                assert message.startswith((f"{argument}: ", f"{other}: "))
                assert "\n" not in message
