"""``escapade solve FILE``: plants in files, answers in lines and objects."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

import escapade as ep
from escapade.cli import app
from escapade.cli.solve import solver_names
from escapade.model.description import read_description, write_description

PUMP = """
about = "A pump that may be run gently or hard."
discount = 0.95
budget = 0.5
transitions = [
  ["good",   "gentle", {good = 0.95, worn = "rest"},   0.6],
  ["good",   "hard",   {good = 0.7, worn = "rest"},    1.0],
  ["worn",   "gentle", {worn = 0.9, broken = "rest"},  0.5],
  ["worn",   "hard",   {worn = 0.6, broken = "rest"},  0.9],
  ["worn",   "repair", {good = 0.2, worn = "rest"}],
  ["broken", "repair", {good = "1/2", broken = "rest"}, 0.0, 1.0],
]
"""
TWO_COSTS = """
discount = 0.5
budget = {noise = 1.0, heat = 0.25}
transitions = [
  ["on", "idle", "on", 0.0],
  ["on", "work", "on", 1.0, {noise = 1.0, heat = 0.5}],
]
"""


@pytest.fixture
def run():
    def invoke(*words):
        return CliRunner().invoke(app, ["solve", *map(str, words)])

    return invoke


@pytest.fixture
def pump(tmp_path):
    path = tmp_path / "pump.toml"
    path.write_text(PUMP, "utf-8")
    return path


def solved(done):
    assert done.stderr == ""
    return json.loads(done.stdout, parse_constant=pytest.fail)


def policy_of(answer, cmdp):
    states = cmdp.state_names or [str(s) for s in range(cmdp.n_states)]
    actions = cmdp.action_names or [str(a) for a in range(cmdp.n_actions)]
    return ep.Policy(
        [[answer["policy"][s].get(a, 0.0) for a in actions] for s in states]
    )


# -- answers -------------------------------------------------------------------------


def test_a_plant_is_solved(run, pump):
    done = run(pump)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "A pump that may be run gently or hard." in done.stdout
    assert "cost    0.5 of a budget of 0.5" in done.stdout
    assert "\nworn    " in done.stdout


def test_the_object_carries_a_policy_that_earns_what_it_says(run, pump):
    done = run(pump, "--json")
    assert done.exit_code == 0
    answer = solved(done)
    cmdp = read_description(pump).cmdp
    policy = policy_of(answer, cmdp)
    result = ep.evaluate(cmdp, policy)
    assert result.start_value == pytest.approx(answer["value"], abs=1e-6)
    assert result.start_costs[0] == pytest.approx(answer["costs"][0], abs=1e-6)
    assert answer["lower"] <= answer["upper"] + 1e-12
    assert answer["upper"] - answer["lower"] < 1e-5
    assert answer["costs"][0] <= 0.5 + 1e-8
    assert answer["problem"]["states"] == 3
    assert answer["least_costs"] is None


@pytest.mark.parametrize("ending", ["npz", "NPZ", "json", "toml"])
def test_every_kind_of_file_gives_the_same_answer(run, pump, tmp_path, ending):
    cmdp = read_description(pump).cmdp
    path = tmp_path / f"same.{ending}"
    if ending.lower() == "npz":
        cmdp.save(path)
    else:
        write_description(cmdp, path)
    first, second = solved(run(pump, "--json")), solved(run(path, "--json"))
    for key in ("problem", "value", "policy", "lower", "upper", "costs"):
        assert first[key] == second[key]


@pytest.mark.parametrize("solver", ["OccupationLP", "DualLP", "ColumnGeneration"])
def test_the_solver_may_be_named(run, pump, solver):
    answer = solved(run(pump, "--solver", solver, "--json"))
    assert answer["solver"] == solver
    assert answer["value"] == pytest.approx(
        solved(run(pump, "--json"))["value"], rel=1e-6
    )


def test_costs_go_by_their_names(run, tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TWO_COSTS, "utf-8")
    answer = solved(run(path, "--json"))
    assert answer["cost_names"] == ["noise", "heat"]
    assert answer["budget"] == [1.0, 0.25]
    assert answer["value"] == pytest.approx(0.5)  # heat binds: half a unit of work
    shown = run(path).stdout
    assert "cost noise  0.5 of a budget of 1\n" in shown
    assert "cost heat   0.25 of a budget of 0.25\n" in shown
    assert "idle 0.7500, work 0.2500" in shown


def test_another_budget_can_be_asked_for(run, pump):
    values = [
        solved(run(pump, "--budget", budget, "--json"))["value"]
        for budget in (0.1, 0.5, 2.0, 100.0)
    ]
    assert values == sorted(values)
    assert values[0] < values[-1]


# -- robust answers -------------------------------------------------------------------


def test_costs_are_kept_for_all_transitions_within_a_radius(run, pump):
    answer = solved(run(pump, "--l1-radius", "0.1", "--json"))
    assert answer["l1_radius"] == 0.1
    cmdp = read_description(pump).cmdp
    sets = ep.uncertainty.L1Ball(cmdp, radius=0.1)
    worst = ep.robust_evaluate(cmdp, policy_of(answer, cmdp), sets)
    assert worst.costs_upper[0, 0] <= 0.5 + 1e-6
    assert worst.costs_upper[0, 0] == pytest.approx(answer["costs"][0], abs=1e-6)


def test_certainty_has_no_price_and_doubt_has_one(run, pump):
    exact = solved(run(pump, "--json"))["value"]
    values = [
        solved(run(pump, "--l1-radius", radius, "--solver", "RobustLP", "--json"))
        for radius in (0.0, 0.1)
    ]
    assert values[0]["value"] == pytest.approx(exact, rel=1e-5)
    assert values[1]["value"] < exact
    assert {answer["solver"] for answer in values} == {"RobustLP"}


def test_the_lines_say_that_costs_are_the_worst(run, pump):
    done = run(pump, "--l1-radius", "0.1", "--solver", "SlackDP")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Costs are the worst within L1 distance 0.1 of each row." in done.stdout


def test_a_policy_with_a_memory_is_named(run, pump):
    words = (pump, "--budget=2", "--l1-radius=0.01", "--solver=SlackDP")
    answer = solved(run(*words, "--json"))
    assert answer["feasible"] is True
    assert answer["policy"] is None
    assert answer["memory_nodes"] >= 3
    assert f"in {answer['memory_nodes']} nodes" in run(*words).stdout


def test_every_solver_of_the_library_can_be_named():
    exact, robust = solver_names(robust=False), solver_names(robust=True)
    assert {"OccupationLP", "DualLP", "ColumnGeneration"} <= set(exact)
    assert {"RobustLP", "SlackDP", "PromiseDP", "LagrangianRobustDP"} <= set(robust)
    solvers = {
        name
        for name in ep.planning.__all__
        if hasattr(getattr(ep.planning, name), "solve")
    }
    assert {*exact, *robust} == solvers


# -- "no" is an answer ---------------------------------------------------------------


@pytest.fixture
def impossible(tmp_path):
    path = tmp_path / "impossible.json"
    rows = [["s", "a", "s", 1, 2], ["s", "b", "s", 0, 1]]
    path.write_text(json.dumps({"discount": 0.5, "budget": 1, "transitions": rows}))
    return path


def test_a_budget_that_cannot_be_kept_ends_with_1(run, impossible):
    done = run(impossible)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "infeasible" in done.stdout
    table = [line.split() for line in done.stdout.splitlines()]
    assert ["0", "1", "2"] in table  # the cost, its budget, the least possible


def test_the_object_of_an_infeasible_problem_is_json(run, impossible):
    done = run(impossible, "--json")
    assert done.exit_code == 1
    answer = solved(done)
    assert answer["status"] == "infeasible"
    assert answer["feasible"] is False
    assert answer["policy"] is None
    assert answer["value"] is None
    assert (answer["lower"], answer["upper"]) == ("-Infinity", "-Infinity")
    assert answer["least_costs"] == [pytest.approx(2.0)]


# -- pictures and tables -------------------------------------------------------------


def test_a_plant_with_coordinates_is_drawn(run, tmp_path):
    path = tmp_path / "toll.npz"
    ep.environments.toll_cycle(size=5).cmdp.save(path)
    shown = run(path).stdout
    assert "↓ ← ← ← ←" in shown
    assert "mixes in 1 state:" in shown


def test_a_long_policy_is_cut_short_for_people_only(run, tmp_path):
    n = 30
    cmdp = ep.CMDP(
        np.tile(np.eye(n)[:, np.newaxis], (1, 2, 1)),
        np.tile([1.0, 0.0], (n, 1)),
        np.tile([1.0, 0.0], (n, 1)),
        discount=0.5,
        budget=1.0,
        start=np.full(n, 1.0 / n),
    )
    path = tmp_path / "many.npz"
    cmdp.save(path)
    done = run(path)
    assert "in each of" in done.stdout
    assert len(solved(run(path, "--json"))["policy"]) == n


def test_equal_names_give_way_to_numbers(run, pump, tmp_path):
    path = tmp_path / "equal.npz"
    cmdp = read_description(pump).cmdp
    cmdp.replace(state_names=["same"] * 3).save(path)
    assert set(solved(run(path, "--json"))["policy"]) == {"0", "1", "2"}


def test_names_cannot_write_on_the_terminal(run, pump, tmp_path):
    path = tmp_path / "odd.npz"
    cmdp = read_description(pump).cmdp
    cmdp.replace(state_names=["\x1b[2J", "a\nb", "[bold]c"]).save(path)
    shown = run(path).stdout
    assert "\x1b" not in shown
    assert r"\x1b[2J" in shown
    assert r"a\nb" in shown
    assert "[bold]c" in shown


# -- wrong input ---------------------------------------------------------------------


def refused(done, *words):
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    return True


@pytest.mark.parametrize("ending", ["npz", "toml", "json"])
def test_a_missing_file_is_refused(run, tmp_path, ending):
    assert refused(run(tmp_path / f"none.{ending}"), f"none.{ending}")


@pytest.mark.parametrize("ending", ["npz", "toml", "json"])
def test_a_directory_is_refused(run, tmp_path, ending):
    path = tmp_path / f"folder.{ending}"
    path.mkdir()
    assert refused(run(path), f"folder.{ending}")


@pytest.mark.parametrize("name", ["plant", "plant.csv", "plant.npz.gz", "."])
def test_an_unknown_kind_of_file_is_refused(run, tmp_path, name):
    assert refused(run(tmp_path / name), "expected a name that ends in")


def damaged_archives(whole):
    yield b""
    yield b"PK"
    yield b"not an archive at all"
    yield whole[: len(whole) // 2]
    yield whole[:-1]
    for place in range(40, len(whole), max(1, len(whole) // 40)):
        yield whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :]


def test_a_damaged_npz_is_refused_or_harmless(run, pump, tmp_path):
    cmdp = read_description(pump).cmdp
    path = tmp_path / "pump.npz"
    cmdp.save(path)
    whole = path.read_bytes()
    sound = solved(run(path, "--json"))["problem"]["fingerprint"]
    refusals = 0
    for damaged in damaged_archives(whole):
        path.write_bytes(damaged)
        done = run(path, "--json")
        if done.exit_code == 0:  # a bit that carries nothing, such as a time stamp
            assert json.loads(done.stdout)["problem"]["fingerprint"] == sound
        else:
            assert done.exit_code == 2, done.stderr
            assert len(done.stderr.splitlines()) == 1
            refusals += 1
    assert refusals > 20


def test_an_npz_of_something_else_is_refused(run, tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, a=np.arange(3))
    assert refused(run(path), "other.npz")
    np.savez(path, header=np.array([{"an": "object"}], dtype=object))
    assert refused(run(path), "other.npz")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert refused(run(path), "other.npz")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("discount = 0.95", "discount 0.95", ["TOML"]),
        ("budget = 0.5", "budgte = 0.5", ["budgte", "did you mean 'budget'"]),
        ("budget = 0.5", 'budget = "much"', ["budget"]),
        ("budget = 0.5", "budget = -1", ["budget", "-1"]),
        ("budget = 0.5", "budget = nan", ["budget"]),
        ("budget = 0.5", "", ["budget"]),
        ("discount = 0.95", "discount = 1.0", ["discount"]),
        ("good = 0.95", "good = 1.95", ["transitions[0].next"]),
        ('"good",   "hard"', '"good",   "gentle"', ["transitions[1]"]),
        ("{good = 0.7", "{goof = 0.7", ["transitions[1].next", "goof"]),
        ("transitions = [", "transitions = 3 # [", ["TOML"]),
    ],
)
def test_a_wrong_description_is_refused_by_key(run, tmp_path, old, new, words):
    assert old in PUMP
    path = tmp_path / "wrong.toml"
    path.write_text(PUMP.replace(old, new, 1), "utf-8")
    assert refused(run(path), "wrong.toml", *words)


@pytest.mark.parametrize(
    "content", [b"", b"[", b"[]", b"7", b'{"discount": NaN}', b"\xff\xfe", b"{" * 9999]
)
def test_wrong_json_is_refused(run, tmp_path, content):
    path = tmp_path / "wrong.json"
    path.write_bytes(content)
    assert refused(run(path), "wrong.json")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--budget", "-1"], "budget"),
        (["--budget", "nan"], "budget"),
        (["--budget", "much"], "--budget"),
        (["--budget", "1", "--budget", "2"], "--budget"),
        (["--solver", "Simplex"], "--solver"),
        (["--solver", "SlackDP"], "--l1-radius"),
        (["--solver", "OccupationLP", "--l1-radius", "0.1"], "--l1-radius"),
        (["--solver", "CMDP"], "--solver"),
        (["--l1-radius", "-1"], "radius"),
        (["--l1-radius", "nan"], "radius"),
        (["extra"], "extra"),
    ],
)
def test_wrong_options_are_refused_by_name(run, pump, words, named):
    assert refused(run(pump, *words), named)
