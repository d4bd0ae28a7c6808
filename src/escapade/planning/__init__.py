"""Planning: one solver a file, one :class:`Solution` for all of them.

A solver is a frozen value; ``solver.solve(problem)`` returns a
:class:`~escapade.planning.solution.Solution` whose bounds come from evaluating the
returned policy, never from the solver's own word.  ``solve`` chooses a solver.
"""

from escapade.planning.column_generation import ColumnGeneration
from escapade.planning.dual_lp import DualLP
from escapade.planning.dynamic_programming import (
    Optimum,
    policy_iteration,
    value_iteration,
)
from escapade.planning.fallback import Fallback, fallback
from escapade.planning.gradient_run import GradientProgress
from escapade.planning.lagrangian_robust_dp import LagrangianRobustDP
from escapade.planning.learning_rate import LearningRate
from escapade.planning.neural_policy_gradient import NeuralPolicyGradient
from escapade.planning.occupation_lp import OccupationLP
from escapade.planning.policy_gradient import PolicyGradient
from escapade.planning.promise_dp import PromiseDP
from escapade.planning.robust_evaluation import RobustEvaluation, robust_evaluate
from escapade.planning.robust_hitting import (
    RobustHittingTimes,
    WorstTransitionDiameter,
    robust_hitting_times,
    worst_transition_diameter,
)
from escapade.planning.robust_lp import RobustLP
from escapade.planning.slack_dp import SlackDP
from escapade.planning.solution import Solution
from escapade.planning.solve import solve

__all__ = [
    "ColumnGeneration",
    "DualLP",
    "Fallback",
    "GradientProgress",
    "LagrangianRobustDP",
    "LearningRate",
    "NeuralPolicyGradient",
    "OccupationLP",
    "Optimum",
    "PolicyGradient",
    "PromiseDP",
    "RobustEvaluation",
    "RobustHittingTimes",
    "RobustLP",
    "SlackDP",
    "Solution",
    "WorstTransitionDiameter",
    "fallback",
    "policy_iteration",
    "robust_evaluate",
    "robust_hitting_times",
    "solve",
    "value_iteration",
    "worst_transition_diameter",
]
