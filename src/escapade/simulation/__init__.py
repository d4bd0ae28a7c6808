"""Agents in worlds: the loop, what happened, and whether the promise was kept."""

from escapade.simulation.audit import audit
from escapade.simulation.audit_report import Audit, PhaseAccount
from escapade.simulation.replay import Divergence, replay
from escapade.simulation.simulate import simulate
from escapade.simulation.trace import Trace

__all__ = [
    "Audit",
    "Divergence",
    "PhaseAccount",
    "Trace",
    "audit",
    "replay",
    "simulate",
]
