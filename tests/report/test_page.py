"""What stands in a page, without a browser."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.conftest import HOSTILE, lived

import escapade as ep
from escapade.environments import World
from escapade.experiment import Event, RunSpec, open_plant
from escapade.experiment.store import PlantRun, Run
from escapade.report import build_page, write_page
from escapade.report.encoding import number, script_json
from escapade.report.material import gather
from escapade.report.verdict import judge

MOST_BYTES = 6_000_000


class Tags(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = []
        self.scripts = []
        self._inside = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text.append(data)


def parsed(page):
    found = Tags()
    found.feed(page)
    found.close()
    return found


def data_of(page):
    return json.loads(parsed(page).scripts[0], parse_constant=pytest.fail)


def downloads(page):
    return {
        attributes["download"]: base64.b64decode(
            attributes["href"].partition("base64,")[2]
        ).decode()
        for tag, attributes in parsed(page).tags
        if tag == "a" and "download" in attributes
    }


def test_the_verdict_comes_first_and_in_words(run, page):
    text = " ".join(parsed(page).text)
    assert "The promise was kept at every step." in text
    assert run.summary["verdict"] in text
    assert run.summary["assumption"] in text
    assert text.index(run.summary["verdict"]) < text.index("What the agent promised")
    for heading in ("Replay", "Conditions", "Data", "Value against the oracle"):
        assert re.search(rf"<h2>{heading}</h2>", page)


def test_it_loads_nothing_and_is_small_enough(page):
    assert len(page.encode()) < MOST_BYTES
    found = parsed(page)
    for tag, attributes in found.tags:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            address = attributes.get(name)
            inside = address is None or address.startswith(("data:", "#"))
            assert inside, (tag, name)
    assert "@import" not in page.partition("</style>")[0]
    assert "default-src 'none'" in page
    # the data, Plotly once, and ours; nothing ends a script early
    assert len(found.scripts) == 3
    assert page.count("plotly.js v") == 1


def test_the_same_run_gives_the_same_bytes_elsewhere(run, page, tmp_path):
    assert build_page(lived(tmp_path / "again")) == page
    assert str(run.directory) not in page
    other = tmp_path / "page.html"
    assert write_page(run, other) == other
    assert other.read_text("utf-8") == page


def test_the_figures_hold_the_extremes_of_the_trace(run, page):
    figures = {figure["id"]: figure for figure in data_of(page)["figures"]}
    assert {"promise-0", "known", "earned", "value", "predicted-0"} == set(figures)
    trace = run.trace()
    lines = {line["name"]: line for line in figures["predicted-0"]["data"]}
    to_go = trace.cost_to_go()
    most = max(lines["realised, most in the bin"]["y"])
    assert most == pytest.approx(to_go.max(), rel=1e-6)
    predicted = np.array(lines["predicted: the promise"]["y"])
    paid = np.array(lines["realised from that step on"]["y"])
    nearest = (trace.promise - to_go).min()
    assert (predicted - paid).min() == pytest.approx(nearest, abs=1e-5)
    names = {line["name"]: line for line in figures["promise-0"]["data"]}
    least = min(names["promise, least to most"]["y"])
    assert least == pytest.approx(trace.promise.min(), rel=1e-6)
    symbols = {
        entry["marker"]["symbol"]
        for entry in figures["promise-0"]["data"]
        if entry["mode"] == "markers"
    }
    assert len(symbols) == 6  # phases are told apart without their colours


def test_the_replay_is_the_trace(run, page):
    told, trace = data_of(page)["replay"], run.trace()
    for stretch in told["stretches"]:
        first, count = stretch["first"], len(stretch["states"])
        assert stretch["states"] == trace.states[first : first + count].tolist()
        assert stretch["phases"] == trace.phases[first : first + count].tolist()
    assert len(told["goals"]) == run.world.cmdp.n_states
    assert all(-1 <= goal < run.world.cmdp.n_states for goal in told["goals"])


def test_the_data_can_be_taken_along(run, page):
    files = downloads(page)
    told = {key: value for key, value in run.summary.items() if key != "files"}
    assert json.loads(files["summary.json"]) == told
    assert RunSpec.from_toml(files["spec.toml"]) == run.spec
    rows = list(csv.DictReader(io.StringIO(files["steps.csv"])))
    assert sum(int(row["steps"]) for row in rows) == 1200
    assert sum(int(row["explore"]) for row in rows) == run.summary["phases"]["explore"]
    costs = sum(float(row["cost"]) for row in rows)
    assert costs == pytest.approx(run.summary["realised"]["cost"][0])
    assert "downsampled" in page


def test_hostile_names_stay_text(run, monkeypatch):
    world = run.world
    cmdp = world.cmdp.replace(
        state_names=[f"{HOSTILE}{k}" for k in range(world.cmdp.n_states)],
        action_names=[f"{HOSTILE}{k}" for k in range(world.cmdp.n_actions)],
    )
    hostile = World(
        name=HOSTILE, description=HOSTILE, cmdp=cmdp, told=lambda: world.knowledge
    )
    again = Run(run.directory)
    monkeypatch.setitem(again.__dict__, "world", hostile)
    events = [Event(step=3, kind="break", content={"what": HOSTILE})]
    monkeypatch.setattr(Run, "events", lambda self, *kinds: events)
    page = build_page(again)
    found = parsed(page)
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert len(found.scripts) == 3
    assert HOSTILE in "".join(found.text)
    assert data_of(page)["replay"]["states"][0] == f"{HOSTILE}0"


def test_a_broken_promise_is_the_headline(run):
    material = gather(run)
    summary = {**run.summary, "promise_kept": False}
    verdict = judge(replace(material, summary=summary))
    assert verdict.outcome == "broken"
    assert verdict.headline == "The promise was not kept."
    assert "✗" in verdict.html()
    broken = {**summary, "breaks": ["row 3"], "assumption": "no promise: it broke"}
    verdict = judge(replace(material, summary=broken))
    assert verdict.headline == "An assumption broke, and the fallback was played."
    assert "No promise: it broke." in verdict.sentences


@pytest.mark.compiled
def test_what_was_paid_beyond_a_promise_is_marked_for_each_budget(tmp_path):
    run = lived(
        tmp_path / "run",
        world="battery",
        parameters={},
        settings={},
        steps=1500,
        seed=0,
    )
    found = run.summary["realised"]
    assert found["steps_over_budget"] > 1  # with this seed
    page = build_page(run)
    assert f"over budget from {found['steps_over_budget']:,} steps" in page
    assert "one life may cost more than that by chance" in page
    figures = {figure["id"]: figure for figure in data_of(page)["figures"]}
    assert {"promise-0", "promise-1", "predicted-0", "predicted-1"} <= set(figures)
    (marks,) = (
        entry
        for entry in figures["predicted-0"]["data"]
        if entry["name"] == "realised above its promise"
    )
    trace = run.trace()
    excess = trace.cost_to_go()[:, 0] - trace.promise[:, 0]
    at = int(np.argmax(excess))
    worst = pytest.approx(trace.cost_to_go()[at, 0], rel=1e-6)
    assert excess[at] > 0
    assert any(y == worst for y in marks["y"])  # of a bin the worst step is marked


def test_numbers_are_read_by_people():
    assert [number(x) for x in (1234.0, -2e-31, 0.25, float("nan"))] == [
        "1,234",
        "0",
        "0.25",
        "none",
    ]
    assert number(float("inf")) == "inf"


def test_json_in_a_script_cannot_end_it():
    text = script_json({"a": "</script>\u2028<!--", "b": [float("nan"), np.inf]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script>\u2028<!--", "b": [None, None]}


def test_a_world_without_a_map_says_so(tmp_path):
    run = lived(
        tmp_path / "run", world="inventory", parameters={}, settings={}, steps=30
    )
    assert run.world.cmdp.coordinates is None
    page = build_page(run)
    assert "the states of this world have no coordinates" in page
    assert data_of(page)["replay"] is None


def test_values_are_shown_as_the_problem_counts_and_the_map_is_stated(tmp_path):
    run = lived(
        tmp_path / "run", world="inventory", parameters={}, settings={}, steps=30
    )
    material, told = gather(run), run.world.knowledge
    own, found = run.summary["own_units"], run.summary["certificate"]
    assert own["map"] == told.reward_map
    assert own["value_lower"] == run.world.raw_value(found["value_lower"])
    # what stands on the page is turned back, and nothing else is beside it
    page = build_page(run)
    text = " ".join(parsed(page).text)
    gap = f"{own['gap']:.4g}"
    assert own["gap"] > 2 * found["gap"]
    assert re.search(rf"certificate gap\s+{re.escape(gap)}", text)
    assert f"known to within {gap} only" in run.summary["verdict"]
    assert "in the problem's own units" in run.summary["verdict"]
    oracle = material.oracle
    assert f"earns {number(run.world.raw_value(oracle.value))}, within" in text
    assert f"earns {number(run.world.raw_value(oracle.best))} from" in text
    assert text.count(told.reward_map) == 4  # verdict, two figures, conditions
    figures = {figure["id"]: figure for figure in data_of(page)["figures"]}
    shown = {trace["name"]: trace["x"] for trace in figures["value"]["data"]}
    assert shown["oracle: best in budget"] == pytest.approx(
        [run.world.raw_value(oracle.best)], rel=1e-6
    )
    rates = figures["earned"]["data"][0]["y"]
    paid = told.reward_scale * material.trace.rewards + told.reward_offset
    assert rates == pytest.approx(paid.tolist(), rel=1e-6)
    assert told.reward_map in figures["value"]["words"]


def test_a_foreign_plant_states_its_map(tmp_path):
    cliff = ep.environments.from_gymnasium(
        "CliffWalking-v1",
        cost=lambda s, a, t, info: s == 24 and a == 2,
        discount=0.9,
        budget=10.0,
        reward_range=(-100.0, 0.0),
        free=np.ones((48, 4), dtype=bool),
    )
    place = tmp_path / "plant"
    with open_plant(place, knowledge=cliff.knowledge) as agent:
        state, _ = cliff.env.reset(seed=1)
        decision = agent.ask(state)
        state, reward, _, _, info = cliff.env.step(decision.action)
        agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    page = build_page(PlantRun(place))
    assert cliff.knowledge.reward_map == (
        "a reward r of the agent's is r - 100, a value v is v - 1000"
    )
    assert cliff.raw_value(990.0) == pytest.approx(-10.0)
    assert "is r - 100, a value v" in " ".join(parsed(page).text)
    (rate,) = {f["id"]: f for f in data_of(page)["figures"]}["earned"]["data"][0]["y"]
    assert rate == info["raw_reward"]


def test_a_life_beside_a_plant_is_shown_as_far_as_it_got(tmp_path):
    world = ep.environments.wall_cycle(size=3)
    plant = world.make_env()
    state, _ = plant.reset(seed=1)
    place = tmp_path / "plant"
    settings = ep.E4Settings(known_after=5)
    with open_plant(place, knowledge=world.knowledge, settings=settings) as agent:
        for _ in range(20):
            decision = agent.ask(state)
            state, reward, _, _, info = plant.step(decision.action)
            agent.tell(decision, reward=reward, cost=info["cost"], next_state=state)
    page = build_page(PlantRun(place))
    assert "20 steps so far." in page
    assert "a life beside a plant has no map" in page
    assert json.loads(downloads(page)["summary.json"])["steps"] == 20


def test_a_run_that_was_not_begun_is_refused(tmp_path):
    spec = RunSpec(world="wall-cycle", parameters={"size": 3}, steps=10)
    with pytest.raises(ValueError, match="run: expected one that has lived at least"):
        build_page(Run.create(tmp_path / "run", spec))


def test_costs_that_nobody_knows_count_as_the_most_they_can_be(tmp_path):
    world = ep.environments.wall_cycle(size=3)
    plant = world.make_env()
    state, _ = plant.reset(seed=1)
    place = tmp_path / "plant"
    with open_plant(place, knowledge=world.knowledge) as agent:
        for step in range(8):
            decision = agent.ask(state)
            state, reward, _, _, info = plant.step(decision.action)
            cost = None if step in (2, 5) else info["cost"]
            agent.tell(decision, reward=reward, cost=cost, next_state=state)
            if step == 5:
                waiting, paid = decision, info["cost"]
    run = PlantRun(place)
    page = build_page(run)
    assert "where 2 unknown costs are counted as cost_max" in page
    assert "realised cost at most, 2 unknown counted as cost_max" in page
    assert "was none at most" not in page
    material = gather(run)
    costs = np.where(
        np.isnan(material.trace.costs), world.knowledge.cost_max, material.trace.costs
    )
    discounts = world.knowledge.discount ** np.arange(8)
    assert material.to_go[0] == pytest.approx(discounts @ costs)
    told = json.loads(downloads(page)["summary.json"], parse_constant=pytest.fail)
    assert told["realised"]["unknown_costs"] == 2
    with open_plant(place) as agent:
        agent.tell_cost(waiting, paid)
    assert "where 1 unknown cost is counted as cost_max" in build_page(run)
