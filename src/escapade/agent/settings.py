"""What an agent can be told to do differently, as one value.

Nothing here can break the promise except ``delta`` and ``margin``, which say how often
it may break; the rest settles how fast the agent learns, and what it looks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from escapade.agent.paper.settings import PaperSettings
from escapade.agent.planners import Planner, Planners, read_planners
from escapade.errors import refusal
from escapade.model.arguments import read_count, read_number

__all__ = ["E4Settings", "Mode", "Planner", "Planners"]

_MOST_VISITS = 2**62  # counts are 64-bit integers

Mode = Literal["ledger", "paper"]
"""The promise ledger, or the paper's algorithm with its errors mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class E4Settings:
    """Settings of :class:`escapade.E4`.

    Attributes
    ----------
    mode
        ``"ledger"`` or ``"paper"``.
    epsilon
        How far from the best the certified policy may be.
    delta
        Probability with which the promise may ever be broken.
    known_after
        Visits of each action after which a state counts as known.
    planner
        How policies are planned (see :mod:`escapade.agent.planners`): one name for all,
        or a mapping with the keys ``"exploit"``, ``"explore"`` and ``"escape"``.
    seed
        For the draws of policies that mix actions.
    margin
        Share of each budget that pays for ``delta``: promises are made for the budget
        less this, and the confidence δ0 = δ · margin · d (1 − γ)/c_max follows from it.
        Unused when nothing is estimated.
    reserve
        What actions other than the fallback's leave of the promise: this share of
        ``cost_max``, but at most a quarter of what the budget leaves above home.
    turn_home, recharge
        Shares of what the budget leaves above home: below the first the agent turns
        home, and there it waits for the second.  As long as it has had nothing of what
        it set out for, it goes on down to half of the first, and further after each
        rest (see :mod:`escapade.agent.patience`).
    refine
        Whether sampling goes on, after the quota, where the certificate is widest.
    replan_growth
        A pair whose visits have grown by this factor since the last plan calls for
        another.
    drift_window
        Visits of a pair after which what was learned of it is tested anew against its
        latest visits; ``None`` trusts the world not to change.  See
        :mod:`escapade.agent.drift`.
    drift_delta
        Probability with which such a test may ever raise a false alarm.
    planning_sweeps
        Most sweeps that any stage of a plan may take, and most policies and linear
        programs: a cap on the time that one step takes, in units that a replay repeats
        exactly.  What is not finished goes on from there in the next plan, and the
        certificate is not looked at along the way.  ``None`` sets no cap.
    paper
        What else ``mode="paper"`` may be told; a mapping becomes a
        :class:`~escapade.agent.paper.settings.PaperSettings`.
    path_deviations, path_deviation
        For constraints on single paths: promises are made for d_p = d − k S_C, with k
        and S_C these two; S_C is c_max/(2(1 − γ)) unless a smaller one is known.
    """

    mode: Mode = "ledger"
    epsilon: float = 1.0
    delta: float = 0.05
    known_after: int = 5
    planner: Planners = "auto"
    seed: int | None = 0
    margin: float = 0.005
    reserve: float = 0.5
    turn_home: float = 0.7
    recharge: float = 0.9
    refine: bool = True
    replan_growth: float = 1.5
    drift_window: int | None = None
    drift_delta: float = 0.01
    planning_sweeps: int | None = None
    paper: PaperSettings | Mapping[str, Any] | None = None
    path_deviations: float = 0.0
    path_deviation: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise refusal("mode", f"one of {list(get_args(Mode))}", repr(self.mode))
        planners = read_planners(self.planner)
        if self.mode == "paper" and "slack" in planners.values():
            raise refusal("planner", "a planner other than 'slack'", "mode='paper'")
        _between("epsilon", self.epsilon, 0.0, float("inf"))
        _between("delta", self.delta, 0.0, 1.0)
        read_count("known_after", self.known_after, least=1, most=_MOST_VISITS)
        _between("margin", self.margin, 0.0, 1.0)
        _between("reserve", self.reserve, 0.0, float("inf"), ends=True)
        _between("turn_home", self.turn_home, 0.0, 1.0, ends=True)
        _between("recharge", self.recharge, self.turn_home, 1.0)
        _between("replan_growth", self.replan_growth, 1.0, float("inf"))
        if self.seed is not None:
            read_count("seed", self.seed)
        _between("drift_delta", self.drift_delta, 0.0, 1.0)
        for name in ("drift_window", "planning_sweeps"):
            value = getattr(self, name)
            if value is not None:
                read_count(name, value, least=1)
                if self.mode == "paper":
                    raise refusal(name, "None in mode 'paper'", value)
        _between("path_deviations", self.path_deviations, 0.0, float("inf"), ends=True)
        if self.path_deviation is not None:
            _between(
                "path_deviation", self.path_deviation, 0.0, float("inf"), ends=True
            )
        self._read_paper()

    def _read_paper(self) -> None:
        given = self.paper
        if given is None or isinstance(given, PaperSettings):
            pass
        elif isinstance(given, Mapping):
            object.__setattr__(self, "paper", PaperSettings(**given))
        else:
            raise refusal("paper", "a PaperSettings", type(given).__name__)
        if given is not None and self.mode != "paper":
            raise refusal("paper", "None unless mode='paper'", "settings")

    @property
    def paper_settings(self) -> PaperSettings:
        """Settings of the paper's algorithm, those that are given or the defaults."""
        given = self.paper
        return given if isinstance(given, PaperSettings) else PaperSettings()


def _between(
    name: str, value: float, low: float, high: float, *, ends: bool = False
) -> None:
    number = read_number(name, value)
    if not (low < number < high or (ends and number in (low, high))):
        left, right = ("[", "]") if ends else ("(", ")")
        raise refusal(name, f"a number in {left}{low:g}, {high:g}{right}", number)
