"""A plan as the commands show it: its certificate, its policy, and a picture.

In JSON the policy is an object of states, each an object of the actions that it may
take with their probabilities.  States and actions go by their names where these are
there and differ from each other, else by their numbers.  A policy with a memory is not
printed: it is ``null``, with the number of its nodes beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from escapade.cli.output import amount, plural, say, show_facts, show_table
from escapade.cli.pictures import can_draw, draw_policy
from escapade.model.evaluation import occupancy
from escapade.model.memory_policy import MemoryPolicy
from escapade.model.policy import Policy

if TYPE_CHECKING:
    from escapade.model.cmdp import CMDP
    from escapade.planning.solution import Solution

__all__ = ["describe_plan", "labels", "show_plan"]

_MOST_ROWS = 20
_NOTHING = 1e-9  # a probability that no picture shows


def labels(names: Sequence[str] | None, count: int) -> list[str]:
    """Return what to call ``count`` things: by name, or by number."""
    if names is None or len(set(names)) < len(names):
        return [str(k) for k in range(count)]
    return list(names)


def describe_plan(
    cmdp: CMDP, found: Solution, *, cost_names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return a plan as the object that ``--json`` prints."""
    return {
        "status": found.status,
        "message": found.message,
        "feasible": found.is_feasible,
        "value": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "cost_names": labels(cost_names, cmdp.n_costs),
        "costs": found.costs,
        "budget": cmdp.budget,
        "least_costs": found.least_costs,
        "multipliers": found.multipliers,
        "residuals": found.residuals,
        "solver": found.solver,
        "iterations": found.iterations,
        "seconds": found.seconds,
        "problem": {
            "states": cmdp.n_states,
            "actions": cmdp.n_actions,
            "pairs": cmdp.n_pairs,
            "costs": cmdp.n_costs,
            "discount": cmdp.discount,
            "fingerprint": cmdp.fingerprint,
        },
        "policy": _policy(cmdp, found),
        "memory_nodes": _memory_nodes(found),
    }


def _memory_nodes(found: Solution) -> int | None:
    """Return how large the memory of a policy is, for one that has a memory."""
    policy = found.policy
    return policy.n_nodes if isinstance(policy, MemoryPolicy) else None


def _policy(cmdp: CMDP, found: Solution) -> dict[str, dict[str, float]] | None:
    if not isinstance(found.policy, Policy):
        return None
    states = labels(cmdp.state_names, cmdp.n_states)
    actions = labels(cmdp.action_names, cmdp.n_actions)
    table: dict[str, dict[str, float]] = {state: {} for state in states}
    for s, a in np.argwhere(found.policy.probabilities > 0.0):
        table[states[s]][actions[a]] = float(found.policy.probabilities[s, a])
    return table


def show_plan(
    cmdp: CMDP, found: Solution, *, cost_names: Sequence[str] | None = None
) -> None:
    """Print a plan for people."""
    names = labels(cost_names, cmdp.n_costs)
    if found.policy is None:
        show_facts({"status": found.status})
        say()
        say(found.message)
        least = found.least_costs
        if least is not None:
            say()
            show_table(
                ["cost", "budget", "least possible"],
                [
                    [name, amount(budget), amount(cost)]
                    for name, budget, cost in zip(
                        names, cmdp.budget, least, strict=True
                    )
                ],
                numbers=["budget", "least possible"],
            )
        return
    facts = {
        "status": found.status,
        "value": f"{amount(found.value)}; the best there is lies in "
        f"[{amount(found.lower)}, {amount(found.upper)}]",
    }
    for name, cost, budget in zip(names, found.costs, cmdp.budget, strict=True):
        label = "cost" if cmdp.n_costs == 1 and cost_names is None else f"cost {name}"
        facts[label] = f"{amount(cost)} of a budget of {amount(budget)}"
    facts["solver"] = f"{found.solver}, {found.seconds:.2f} s"
    show_facts(facts)
    say()
    say(found.message)
    say()
    if isinstance(found.policy, MemoryPolicy):
        say(
            f"The policy remembers its {found.policy.memory_name}, in "
            f"{plural(found.policy.n_nodes, 'node')}, and is not printed; in Python "
            f"it is the attribute policy of the solution."
        )
        return
    if can_draw(cmdp):
        visits = np.add.reduceat(occupancy(cmdp, found.policy), cmdp.state_ptr[:-1])
        draw_policy(cmdp, found.policy, visits)
        say()
        _show_rows(cmdp, found.policy, only_mixed=True)
    else:
        _show_rows(cmdp, found.policy, only_mixed=cmdp.n_states > _MOST_ROWS)


def _show_rows(cmdp: CMDP, policy: Policy, *, only_mixed: bool) -> None:
    """Print what the policy does, state by state."""
    likely = policy.probabilities > _NOTHING
    mixed = np.flatnonzero(likely.sum(axis=1) > 1)
    shown = mixed if only_mixed else np.arange(cmdp.n_states)
    if only_mixed:
        say(
            f"The policy takes one action in each of "
            f"{plural(cmdp.n_states - mixed.size, 'state')}"
            + (f" and mixes in {plural(mixed.size, 'state')}:" if mixed.size else ".")
        )
    if not shown.size:
        return
    states = labels(cmdp.state_names, cmdp.n_states)
    actions = labels(cmdp.action_names, cmdp.n_actions)
    rows = [
        [
            states[s],
            ", ".join(
                actions[a]
                if policy.probabilities[s, a] >= 1.0 - _NOTHING
                else f"{actions[a]} {policy.probabilities[s, a]:.4f}"
                for a in np.flatnonzero(likely[s])
            ),
        ]
        for s in shown[:_MOST_ROWS]
    ]
    show_table(["state", "action"], rows)
    if shown.size > _MOST_ROWS:
        say(f"... and {shown.size - _MOST_ROWS} more; --json has them all.")
