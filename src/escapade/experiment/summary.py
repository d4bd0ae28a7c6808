"""How a run ended, in numbers that follow from its journal and its agent alone.

The summary is derived, so :mod:`escapade.experiment.verify` derives it again and
compares.  What hangs on the clock or the machine stands in the journal instead.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from escapade.agent.certificate import Certificate
from escapade.agent.e4 import E4
from escapade.agent.paper.report import known_after_by_lemma, paper_report
from escapade.knowledge.knowledge import Knowledge
from escapade.simulation.trace import Trace
from escapade.typing import FloatArray

__all__ = [
    "assumption",
    "at_most",
    "digest_of",
    "realised",
    "summarise",
    "verdict",
]


def assumption(agent: E4) -> str:
    """Return in a sentence under what the promise holds."""
    failure = agent.belief.failure_probability
    if agent.breaks:
        return "no promise: an assumption broke, and the fallback is played"
    if agent.unguarded:
        return "no promise: a rule as printed decides, with no ledger behind it"
    if failure == 0.0:
        return "holds surely, if what the agent was told is true"
    return (
        f"holds at all times with probability {1.0 - agent.settings.delta:g}, if what "
        f"the agent was told is true"
    )


def at_most(trace: Trace, cost_max: FloatArray) -> Trace:
    """Return a lifetime in which each cost that is not known is the most it can be."""
    costs = np.where(np.isnan(trace.costs), cost_max, trace.costs)
    return replace(trace, costs=costs)


def realised(trace: Trace, cost_max: FloatArray) -> dict[str, Any]:
    """Return what was paid, beside what was promised.

    Where costs are not known, ``cost_max`` stands for each, ``unknown_costs`` says of
    how many steps, and all numbers are upper bounds.

    A realised cost above the budget is no broken promise, which is about expectations;
    but with one lifetime to see, it is what there is to see.
    """
    unknown = int(np.isnan(trace.costs).any(axis=1).sum())
    trace = at_most(trace, cost_max)
    to_go = trace.cost_to_go()
    over = to_go > trace.budget
    return {
        "cost": trace.costs.sum(axis=0).tolist(),
        "largest_cost_to_go": to_go.max(axis=0, initial=0.0).tolist(),
        "steps_over_budget": over.any(axis=1).sum().item(),
        **({"unknown_costs": unknown} if unknown else {}),
    }


def summarise(agent: E4, trace: Trace) -> dict[str, Any]:
    """Return the summary of a finished run; the agent is one that was set aside.

    The certificate is asked of it, which may change what it would plan next.
    """
    certificate = agent.certificate()
    slack = trace.promise - trace.reserved
    kept = bool((slack >= 0.0).all() and (trace.promise <= agent.cap).all())
    found: dict[str, Any] = {
        **trace.summary(),
        "realised": realised(trace, agent.knowledge.cost_max),
        "promise_kept": kept and not agent.breaks and not agent.unguarded,
        "breaks": list(agent.breaks),
        "assumption": assumption(agent),
        "delta": agent.settings.delta,
        "failure_probability": agent.belief.failure_probability,
        "cap": agent.cap.tolist(),
        "known_after": agent.settings.known_after,
        "known_after_by_lemma": known_after_by_lemma(agent),
        "lemma_lapsed": _lapsed(agent),
        "known_states": int(agent.planned.plan.known.sum()),
        "states": agent.knowledge.n_states,
        "certified": agent.certified,
        "certificate": {
            "state": certificate.state,
            "value_lower": certificate.value_lower,
            "value_upper": certificate.value_upper,
            "cost_upper": certificate.cost_upper.tolist(),
            "upper_bound": certificate.upper_bound,
            "gap": certificate.gap,
            "safe": certificate.safe,
            "exposure": certificate.exposure,
            "message": certificate.message,
        },
        "own_units": _own_units(agent.knowledge, certificate, trace),
    }
    found["verdict"] = verdict(found)
    return found


def _own_units(
    knowledge: Knowledge, certificate: Certificate, trace: Trace
) -> dict[str, Any] | None:
    """Return what was earned in the problem's own units, if those are others."""
    if not knowledge.rescaled:
        return None
    value, rewards = knowledge.raw_value, trace.rewards
    earned = float(rewards.mean()) if rewards.size else 0.0
    return {
        "reward_scale": knowledge.reward_scale,
        "reward_offset": knowledge.reward_offset,
        "map": knowledge.reward_map,
        "reward_per_step": knowledge.raw_reward(earned),
        "value_lower": value(certificate.value_lower),
        "value_upper": value(certificate.value_upper),
        "upper_bound": value(certificate.upper_bound),
        "gap": knowledge.reward_scale * certificate.gap,
    }


def verdict(summary: dict[str, Any]) -> str:
    """Return the outcome of a run in a sentence or two."""
    steps = f"{summary['steps']:,} steps"
    if summary["breaks"]:
        first = summary["breaks"][0]
        return f"{steps}; an assumption broke, and the fallback was played: {first}"
    if not summary["promise_kept"]:
        return f"{steps}; the promise was not kept"
    lapsed = summary["lemma_lapsed"]
    return (
        f"{steps} within promise; {summary['certificate']['message']}"
        f"{'; ' if lapsed else ''}{lapsed}"
    )


def _lapsed(agent: E4) -> str:
    """Return which requirement of the paper's lemma failed; empty if none did."""
    return paper_report(agent).lapsed if agent.settings.mode == "paper" else ""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
