"""What a page is made of, read once from a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from escapade.agent.certificate import Certificate
from escapade.agent.e4 import E4
from escapade.agent.settings import E4Settings
from escapade.environments.world import World
from escapade.errors import refusal
from escapade.experiment import Event, PlantRun, Run
from escapade.experiment.summary import at_most
from escapade.knowledge.knowledge import Knowledge
from escapade.model.evaluation import evaluate
from escapade.planning.solve import solve
from escapade.report.binning import Bins
from escapade.simulation.trace import Trace
from escapade.typing import FloatArray

__all__ = ["MOST_PAIRS", "Material", "Oracle", "gather"]

MOST_PAIRS = 5_000
"""Pairs up to which the oracle is computed; beyond that it may take minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """What whoever knows the truth can say of the policy that was certified.

    Attributes
    ----------
    value
        What the policy earns from the certificate's state.
    costs
        ``(K,)``; what it costs from there.
    best
        The most that any policy within the budgets earns from there; NaN if none
        keeps them.
    """

    value: float
    costs: FloatArray
    best: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """A run, read.

    Attributes
    ----------
    name
        Of the run.
    knowledge, settings
        What the agent was told at birth, and how it was set.
    specification
        What stands in ``spec.toml``.
    trace, to_go
        The life, and the realised cost from every step on, ``(T, K)``; at most, where
        costs are not known.
    unknown
        Steps whose cost is not known; ``cost_max`` stands for it in ``to_go``.
    bins
        Its steps in few groups.
    events, versions
        What happened beside deciding, and what the run was lived with.
    world
        ``None`` beside a plant.
    summary, agent, certificate
        ``None`` as long as the run has not ended.
    oracle
        ``None`` where there is no truth to ask, or it is too large to ask here.
    """

    name: str
    knowledge: Knowledge
    settings: E4Settings
    specification: str
    trace: Trace
    to_go: FloatArray
    unknown: int
    bins: Bins
    events: list[Event]
    versions: list[dict[str, Any]]
    world: World | None
    summary: dict[str, Any] | None
    agent: E4 | None
    certificate: Certificate | None
    oracle: Oracle | None

    def happened(self, *kinds: str) -> list[Event]:
        """Return the events of some kinds."""
        return [event for event in self.events if event.kind in kinds]


def gather(run: Run) -> Material:
    """Read a run; it must have lived a step."""
    if run.n_steps == 0:
        raise refusal("run", "one that has lived at least one step", "none yet")
    trace = run.trace()
    if len(trace) == 0:
        raise refusal("run", "one that has lived at least one step", "none yet")
    world: World | None
    if isinstance(run, PlantRun):
        world, knowledge = None, run.knowledge
        name, settings = run.directory.name, run.plant_spec.make_settings()
    else:
        world, knowledge = run.world, run.world.knowledge
        name, settings = run.spec.name, run.spec.make_settings()
    summary = run.summary
    agent = None if summary is None else run.agent()
    certificate = None if agent is None else agent.certificate()
    return Material(
        name=name,
        knowledge=knowledge,
        settings=settings,
        specification=run.spec_text(),
        trace=trace,
        to_go=at_most(trace, knowledge.cost_max).cost_to_go(),
        unknown=int(np.isnan(trace.costs).any(axis=1).sum()),
        bins=Bins.over(len(trace)),
        events=run.events(),
        versions=_different([opening["versions"] for opening in run.openings()]),
        world=world,
        summary=summary,
        agent=agent,
        certificate=certificate,
        oracle=_ask(world, certificate),
    )


def _different(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for entry in versions:
        if entry not in found:
            found.append(entry)
    return found


def _ask(world: World | None, certificate: Certificate | None) -> Oracle | None:
    """Judge the certified policy by the truth, from the certificate's state."""
    if world is None or certificate is None or world.cmdp.n_pairs > MOST_PAIRS:
        return None
    state = certificate.state
    judged = evaluate(world.cmdp, certificate.policy)
    best = solve(world.cmdp.replace(start=np.eye(world.cmdp.n_states)[state]))
    return Oracle(
        value=float(judged.value[state]),
        costs=np.array(judged.costs[:, state]),
        best=float(best.value),
    )
