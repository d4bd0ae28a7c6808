"""Agents in worlds: the loop, what happened, and whether the promise was kept."""

from escapade.simulation.replay import Divergence, replay
from escapade.simulation.simulate import simulate
from escapade.simulation.trace import Trace

__all__ = ["Divergence", "Trace", "replay", "simulate"]
