"""Pictures of policies: an arrow where each state is, and only where there is room."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import escapade as ep
from escapade.cli.pictures import can_draw, draw_policy, policy_lines


def star(size=3):
    """Return a field where every state, such as 4 in the middle, can go anywhere."""
    n = size**2
    P = np.zeros((n, n, n))
    P[:, np.arange(n), np.arange(n)] = 1.0  # action a leads to state a
    x, y = np.arange(n) % size, np.arange(n) // size
    return ep.CMDP(
        P,
        np.zeros((n, n)),
        np.zeros((n, n)),
        discount=0.5,
        budget=0.0,
        coordinates=np.stack([x, y], axis=1),
    )


@pytest.mark.parametrize(
    ("goal", "arrow", "plain"),
    [
        (0, "↙", "/"),
        (1, "↓", "v"),
        (2, "↘", "\\"),
        (3, "←", "<"),
        (4, "·", "."),
        (5, "→", ">"),
        (6, "↖", "\\"),
        (7, "↑", "^"),
        (8, "↗", "/"),
    ],
)
def test_an_arrow_points_to_where_the_policy_goes(goal, arrow, plain):
    field = star()
    policy = ep.Policy.deterministic(np.full(9, goal), 9)
    middle = policy_lines(field, policy)[1].split()[1]
    assert middle == arrow
    assert policy_lines(field, policy, ascii_only=True)[1].split()[1] == plain


def test_a_jump_is_a_star():
    policy = ep.Policy.deterministic(np.full(9, 8), 9)
    lines = policy_lines(star(), policy)  # north is on top
    assert [line.split() for line in lines] == [
        ["*", "→", "·"],
        ["*", "↗", "↑"],
        ["*", "*", "*"],
    ]


def test_the_likeliest_action_and_successor_count():
    field = star()
    chances = np.zeros((9, 9))
    chances[:, 3], chances[:, 5] = 0.4, 0.6
    assert policy_lines(field, ep.Policy(chances))[1].split()[1] == "→"


def test_only_maps_that_fit_are_drawn():
    field = star()
    assert can_draw(field)
    assert not can_draw(field.replace(coordinates=None))
    assert not can_draw(field.replace(coordinates=np.zeros((9, 2))))
    assert not can_draw(field.replace(coordinates=np.arange(9.0)[:, np.newaxis]))
    assert not can_draw(ep.environments.wall_cycle(size=39).cmdp)
    assert can_draw(ep.environments.wall_cycle(size=38).cmdp)


def test_a_stream_without_arrows_gets_plain_signs(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    draw_policy(star(), ep.Policy.deterministic(np.full(9, 5), 9), np.ones(9))
    sys.stdout.flush()
    assert raw.getvalue().decode().split("\n")[1].split() == ["*", ">", "."]


def test_a_terminal_sees_where_the_policy_is_often(monkeypatch):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    visits = np.zeros(9)
    visits[4] = 2.0
    draw_policy(star(), ep.Policy.deterministic(np.full(9, 5), 9), visits)
    shown = sys.stdout.getvalue()
    assert "\x1b[1;32m→\x1b[0m" in shown  # the middle alone
    assert shown.count("\x1b[1;32m") == 1
    plain = (
        shown.replace("\x1b[1;32m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    )
    assert plain.splitlines()[1].split() == ["*", "→", "·"]
