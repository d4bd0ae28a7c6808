"""``escapade demo``: the best policy of the paper's Example 2."""

from __future__ import annotations

from escapade.cli.options import Json
from escapade.cli.output import print_json, say

__all__ = ["demo"]

_SIZE = 10


def demo(json: Json = False) -> int:
    """Solve the paper's Example 2 and draw the best policy.

    An agent walks round a field of 10 by 10 cells with walls along its outside.  Each
    step along the boundary earns 1, each hit of a wall costs 1, and a move fails now
    and then.  The planner is told the true model; nothing is learned here.
    """
    from escapade.cli.plans import describe_plan, show_plan
    from escapade.environments.cycles import wall_cycle
    from escapade.planning.solve import solve

    world = wall_cycle(size=_SIZE)
    found = solve(world.cmdp)
    if json:
        print_json({"world": world.name, **describe_plan(world.cmdp, found)})
    else:
        say(f"{world.name}: {world.description}")
        say()
        show_plan(world.cmdp, found)
    return 0 if found.is_feasible else 1
