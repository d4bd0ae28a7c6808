"""Runs to be shown."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from escapade.experiment import (
    Comparison,
    Contestant,
    Run,
    RunSpec,
    Sweep,
    SweepSpec,
    live,
)
from escapade.experiment.sweeps.table import TableWriter, columns, results, row_of
from escapade.report import build_page

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'<a href='http://x'>$x_$"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def lived(directory, **changes):
    spec = RunSpec(
        **{
            "world": "wall-cycle",
            "parameters": {"size": 3},
            "settings": {"known_after": 5},
            "steps": 1200,
            "seed": 5,
            **changes,
        }
    )
    run = Run.create(directory, spec)
    assert live(run) is not None
    return run


@pytest.fixture(scope="package")
def run(tmp_path_factory):
    return lived(tmp_path_factory.mktemp("shown") / "run")


@pytest.fixture(scope="package")
def page(run):
    return build_page(run)


def contestant(name, *, share=0.5, cost=(5.0, 1.0), note="", **more):
    parts = 0 if note else 50
    return Contestant(
        **{
            "name": name,
            "reward": 0.6 * share,
            "share": share,
            "worst_cost": np.array(cost),
            "over": 0.25,
            "steps_over": float(cost[0] > 10.0),
            "steps_to_oracle": None,
            "seconds": 1.5,
            "rewards": np.linspace(0.0, 0.6 * share, parts),
            "costs": np.linspace(cost, 0.0, parts),
            "note": note,
            **more,
        }
    )


@pytest.fixture(scope="package")
def compared():
    """Three who lived, one by a name that would do harm, and one who did not."""
    return Comparison(
        world="small",
        description="A world made up.",
        steps=1000,
        lifetimes=2,
        seed=3,
        judged=800,
        budget=np.array([10.0, 2.0]),
        contestants=(
            contestant("e4"),
            contestant(HOSTILE, share=1.2, cost=(25.0, 3.0), steps_to_oracle=1200),
            contestant(
                "careful", share=np.nan, cost=(np.nan, np.nan), note="It can't."
            ),
            contestant("oracle", share=1.0, cost=(9.0, 1.5)),
        ),
        versions={"escapade": "0"},
    )


@pytest.fixture(scope="package")
def swept(tmp_path_factory):
    """Two worlds, of which one has a size; two quotas, two seeds; and some failed."""
    spec = SweepSpec(
        worlds=[
            {"name": "wall-cycle", "parameters": {"size": [3, 4]}},
            "queue",
            "wandering-gamble",
        ],
        settings={"known_after": [3, 6]},
        seeds=2,
        steps=400,
    )
    found = Sweep.take(tmp_path_factory.mktemp("swept") / "sweep", spec)
    names, rows = columns(spec), []
    for run in spec.runs:
        if run.world == "wandering-gamble":
            rows.append(row_of(run, names, {"error": HOSTILE}))
        else:
            rows.append(row_of(run, names, results(live(found.runs.take(run)))))
    TableWriter(found.results_path, names).replace_all(rows)
    return found


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=ARGUMENTS
        )
        yield found
        found.close()


@pytest.fixture
def visit(browser):
    """Open pages, which may ask for nothing and complain of nothing."""
    contexts, wrong = [], []

    def meet(route, address):
        if route.request.url == address:
            route.continue_()
        elif not route.request.url.startswith(("data:", "blob:")):
            wrong.append(route.request.url)
            route.abort()

    def opened(address, *, width=1100, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        context.route("**/*", partial(meet, address=address))
        page = context.new_page()
        page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        page.wait_for_selector(".figure .main-svg")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
