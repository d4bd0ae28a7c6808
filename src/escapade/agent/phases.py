"""What the agent is doing, and why, in words.

===========  =======================================================================
phase        the agent ...
===========  =======================================================================
exploit      follows the policy it thinks best
explore      goes, through known states, to where visits are wanted, or takes one there
wander       takes the least visited action of an unknown state
escape       plays the fallback in an unknown state
return       plays the fallback in a known state
wait         plays the fallback where it is cheapest, until the promise has recovered
===========  =======================================================================

The phase is a function of the evidence, the promise and whether the agent is on its way
home; :func:`escapade.kernels.ledger.decide` is that function.
"""

from __future__ import annotations

from enum import IntEnum

from escapade.kernels import ledger, paper

__all__ = ["PHASES", "REASONS", "Phase"]


class Phase(IntEnum):
    """The six phases, as they stand in a trace."""

    EXPLOIT = ledger.EXPLOIT
    EXPLORE = ledger.EXPLORE
    WANDER = ledger.WANDER
    ESCAPE = ledger.ESCAPE
    RETURN = ledger.RETURN
    WAIT = ledger.WAIT

    @property
    def label(self) -> str:
        """The name in lower case."""
        return self.name.lower()


PHASES = tuple(Phase)
"""The phases by their numbers."""

REASONS = {
    ledger.AS_PLANNED: "the plan can be afforded",
    ledger.LEAST_VISITED: "the least visited action here that can be afforded",
    ledger.RECHARGING: "the promise is low: the fallback until it has recovered",
    ledger.NOT_AFFORDABLE: "the plan costs more than the promise leaves: the fallback",
    ledger.NOTHING_TO_DO: "nothing planned leads on from here: the fallback",
    paper.ESCAPES: "one more step of wandering might cost too much: the escape",
    paper.RESTS: "after an escape, a trajectory of safe return",
}
"""Why an action was taken, by the reason that the decision kernel returns."""
