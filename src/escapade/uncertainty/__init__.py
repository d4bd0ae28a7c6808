"""Uncertainty sets: which transition probabilities are possible.

A set answers, pair by pair, what the worst expectation of a value can be, tells
members from strangers, and draws members at random.  :mod:`escapade.uncertainty.base`
says what every set can do.
"""

from escapade.uncertainty.action_models import ActionModels
from escapade.uncertainty.action_models_description import (
    ActionModel,
    Failures,
    Transfer,
    within,
)
from escapade.uncertainty.action_models_walls import unknown_walls
from escapade.uncertainty.base import Sense, UncertaintySet
from escapade.uncertainty.factor_matrix import FactorMatrix, factor_rows
from escapade.uncertainty.factor_matrix_estimate import (
    FactorEstimate,
    estimate_factors,
)
from escapade.uncertainty.hull import Hull, HullLoss, rectangular_hull
from escapade.uncertainty.intersection import Intersection
from escapade.uncertainty.interval import Interval
from escapade.uncertainty.kl_ball import KLBall
from escapade.uncertainty.l1_ball import L1Ball
from escapade.uncertainty.models import Models

__all__ = [
    "ActionModel",
    "ActionModels",
    "FactorEstimate",
    "FactorMatrix",
    "Failures",
    "Hull",
    "HullLoss",
    "Intersection",
    "Interval",
    "KLBall",
    "L1Ball",
    "Models",
    "Sense",
    "Transfer",
    "UncertaintySet",
    "estimate_factors",
    "factor_rows",
    "rectangular_hull",
    "unknown_walls",
    "within",
]
