"""Safe reinforcement learning in one lifetime.

The public names of Escapade, loaded when they are first used: ``import escapade``
alone imports no other package, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from escapade import (
        agent,
        baselines,
        environments,
        errors,
        experiment,
        kernels,
        knowledge,
        learning,
        model,
        planning,
        simulation,
        testing,
        theory,
        typing,
        uncertainty,
    )
    from escapade.agent.e4 import E4
    from escapade.agent.settings import E4Settings
    from escapade.experiment.plant import open_plant as open  # noqa: A004
    from escapade.knowledge.knowledge import Knowledge
    from escapade.knowledge.log import Log
    from escapade.model.cmdp import CMDP
    from escapade.model.evaluation import evaluate, occupancy
    from escapade.model.policy import Policy
    from escapade.planning.column_generation import ColumnGeneration
    from escapade.planning.dual_lp import DualLP
    from escapade.planning.fallback import fallback
    from escapade.planning.lagrangian_robust_dp import LagrangianRobustDP
    from escapade.planning.occupation_lp import OccupationLP
    from escapade.planning.policy_gradient import PolicyGradient
    from escapade.planning.promise_dp import PromiseDP
    from escapade.planning.robust_evaluation import robust_evaluate
    from escapade.planning.robust_lp import RobustLP
    from escapade.planning.slack_dp import SlackDP
    from escapade.planning.solution import Solution
    from escapade.planning.solve import solve
    from escapade.preflight.examine import preflight
    from escapade.simulation.audit import audit
    from escapade.simulation.simulate import simulate

    __version__: str

__all__ = [
    "CMDP",
    "E4",
    "ColumnGeneration",
    "DualLP",
    "E4Settings",
    "Knowledge",
    "LagrangianRobustDP",
    "Log",
    "OccupationLP",
    "Policy",
    "PolicyGradient",
    "PromiseDP",
    "RobustLP",
    "SlackDP",
    "Solution",
    "__version__",
    "agent",
    "audit",
    "baselines",
    "environments",
    "errors",
    "evaluate",
    "experiment",
    "fallback",
    "kernels",
    "knowledge",
    "learning",
    "model",
    "occupancy",
    "open",
    "planning",
    "preflight",
    "robust_evaluate",
    "simulate",
    "simulation",
    "solve",
    "testing",
    "theory",
    "typing",
    "uncertainty",
]

_MODULE_OF = {
    "CMDP": "escapade.model.cmdp",
    "E4": "escapade.agent.e4",
    "E4Settings": "escapade.agent.settings",
    "Knowledge": "escapade.knowledge.knowledge",
    "Log": "escapade.knowledge.log",
    "ColumnGeneration": "escapade.planning.column_generation",
    "DualLP": "escapade.planning.dual_lp",
    "LagrangianRobustDP": "escapade.planning.lagrangian_robust_dp",
    "OccupationLP": "escapade.planning.occupation_lp",
    "Policy": "escapade.model.policy",
    "PolicyGradient": "escapade.planning.policy_gradient",
    "PromiseDP": "escapade.planning.promise_dp",
    "RobustLP": "escapade.planning.robust_lp",
    "SlackDP": "escapade.planning.slack_dp",
    "Solution": "escapade.planning.solution",
    "audit": "escapade.simulation.audit",
    "evaluate": "escapade.model.evaluation",
    "fallback": "escapade.planning.fallback",
    "occupancy": "escapade.model.evaluation",
    "open": "escapade.experiment.plant",
    "preflight": "escapade.preflight.examine",
    "robust_evaluate": "escapade.planning.robust_evaluation",
    "simulate": "escapade.simulation.simulate",
    "solve": "escapade.planning.solve",
}

_CALLED = {"open": "open_plant"}
"""Names that are others where they are defined."""

if not TYPE_CHECKING:  # a type checker must see that other names do not exist

    def __getattr__(name: str) -> Any:
        """Import the module that holds a public name, on its first use (PEP 562)."""
        if name in _MODULE_OF:
            value = getattr(import_module(_MODULE_OF[name]), _CALLED.get(name, name))
        elif name == "__version__":
            value = import_module("importlib.metadata").version("escapade")
        elif name in __all__:
            return import_module(f"escapade.{name}")
        else:
            raise AttributeError(f"module 'escapade' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """Every public name, loaded or not."""
        return sorted({*globals(), *__all__})
