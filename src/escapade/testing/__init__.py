"""What a test of your own solver, environment or model can stand on.

Two kinds of things, loaded when they are first used:

- Hypothesis strategies that draw small problems, policies, budgets and transitions near
  a problem: :mod:`escapade.testing.strategies`.  They need the extra ``testing``.
- Conformance suites that hold an object to what this library promises of its kind:
  ``check_solver``, ``check_env``, ``check_agent``, ``check_uncertainty_set``.  They
  need nothing besides the library, work under any test runner, and raise
  :class:`AssertionError` with the law that was broken, what it was broken on and the
  numbers.  ``instances`` and ``reference_optimum`` are what solvers are judged by.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from escapade.testing.agents import check_agent
    from escapade.testing.environments import check_env
    from escapade.testing.known_optima import Instance, instances
    from escapade.testing.reference import Reference, reference_optimum
    from escapade.testing.relabelling import relabelled, relabelled_policy
    from escapade.testing.solvers import check_solution, check_solver
    from escapade.testing.strategies import (
        budgets,
        cmdps,
        distributions,
        kernels,
        policies,
    )
    from escapade.testing.uncertainty import check_uncertainty_set

__all__ = [
    "Instance",
    "Reference",
    "budgets",
    "check_agent",
    "check_env",
    "check_solution",
    "check_solver",
    "check_uncertainty_set",
    "cmdps",
    "distributions",
    "instances",
    "kernels",
    "policies",
    "reference_optimum",
    "relabelled",
    "relabelled_policy",
]

_MODULE_OF = {
    "Instance": "known_optima",
    "Reference": "reference",
    "budgets": "strategies",
    "check_agent": "agents",
    "check_env": "environments",
    "check_solution": "solvers",
    "check_solver": "solvers",
    "check_uncertainty_set": "uncertainty",
    "cmdps": "strategies",
    "distributions": "strategies",
    "instances": "known_optima",
    "kernels": "strategies",
    "policies": "strategies",
    "reference_optimum": "reference",
    "relabelled": "relabelling",
    "relabelled_policy": "relabelling",
}

if not TYPE_CHECKING:  # a type checker must see that other names do not exist

    def __getattr__(name: str) -> Any:
        """Import the module that holds a public name, on its first use (PEP 562)."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'escapade.testing' has no attribute {name!r}")
        module = import_module(f"escapade.testing.{_MODULE_OF[name]}")
        globals()[name] = getattr(module, name)
        return globals()[name]

    def __dir__() -> list[str]:
        """Every public name, loaded or not."""
        return sorted({*globals(), *__all__})
