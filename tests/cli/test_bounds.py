"""``escapade bounds``: the numbers of ``theory.bounds``, by options."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from escapade import theory
from escapade.cli import app

EXAMPLE_2 = ("--states", "100", "--actions", "5", "--discount", ".99", "--budget", "10")


@pytest.fixture
def run():
    def invoke(*words):
        return CliRunner().invoke(app, ["bounds", *words])

    return invoke


def values_of(answer):
    """Return the numbers of an answer; infinities are strings there."""
    values = [row["value"] for row in answer["numbers"]]
    return [float(value) if isinstance(value, str) else value for value in values]


def test_every_number_is_printed(run):
    done = run(*EXAMPLE_2)
    assert (done.exit_code, done.stderr) == (0, "")
    found = theory.bounds(n_states=100, n_actions=5, discount=0.99, budget=10.0)
    for row in found.numbers:
        assert row.group in done.stdout
        assert f"{row.value:.6g}" in done.stdout
        assert row.name in done.stdout
    for requirement in found.requirements:
        assert requirement.sentence in done.stdout
    assert f"({found.binding.name})" in done.stdout.splitlines()[-1]


def test_the_object_holds_every_number_exactly(run):
    done = run(*EXAMPLE_2, "--json")
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    found = theory.bounds(n_states=100, n_actions=5, discount=0.99, budget=10.0)
    assert values_of(answer) == [row.value for row in found.numbers]
    assert answer["inputs"] == dict(found.inputs)
    assert answer["holds"] is found.holds
    assert answer["binding"] == found.binding.name
    assert {r["name"] for r in answer["requirements"]} == {
        r.name for r in found.requirements
    }


def test_every_option_reaches_its_formula(run):
    given = {
        "epsilon": 0.5,
        "delta": 0.1,
        "reward_max": 2.0,
        "cost_max": 3.0,
        "escape_steps": 4.0,
        "safe_return_budget": 0.25,
        "known_budget": 1.5,
        "variance": 0.75,
    }
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    counts = ["--costs=2", "--visits=1000", "--spent=0.5", "--spent=0.125"]
    done = run(*EXAMPLE_2, *words, *counts, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    for name, value in given.items():
        assert answer["inputs"][name] == value
    assert answer["inputs"]["n_costs"] == 2
    assert answer["inputs"]["visits"] == 1000
    found = theory.bounds(
        n_states=100,
        n_actions=5,
        discount=0.99,
        budget=10.0,
        n_costs=2,
        visits=1000,
        costs=[0.5, 0.125],
        **given,
    )
    assert values_of(answer) == [row.value for row in found.numbers]


def test_infinite_numbers_are_strings(run):
    # no number of steps spends a budget above cost_max / (1 - discount)
    done = run(*EXAMPLE_2[:-1], "200", "--known-budget", "1", "--json")
    assert done.exit_code == 0, done.stderr
    values = [row["value"] for row in json.loads(done.stdout)["numbers"]]
    assert "Infinity" in values


@pytest.mark.parametrize(
    ("word", "value", "named"),
    [
        ("--discount", "1", "discount"),
        ("--discount", "nan", "discount"),
        ("--budget", "-1", "budget"),
        ("--states", "0", "n_states"),
        ("--states", "1.5", "--states"),
        ("--actions", "many", "--actions"),
        ("--epsilon", "inf", "epsilon"),
        ("--delta", "0", "delta"),
        ("--spent", "-1", "costs"),
    ],
)
def test_a_wrong_number_is_refused_by_name(run, word, value, named):
    done = run(*EXAMPLE_2, word, value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert named in done.stderr
    assert len(done.stderr.splitlines()) == 1
