"""The page in a browser: it moves, complains of nothing, and asks nobody."""

from __future__ import annotations

from functools import partial

import pytest
from tests.report.conftest import HOSTILE

from escapade.report import write_comparison_page, write_page, write_sweep_page

pytestmark = pytest.mark.browser

DARKEST, LIGHTEST = 80, 200
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    return write_page(run, tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.fixture
def open_page(visit, address):
    return partial(visit, address)


def test_the_slider_moves_the_replay_by_keys_and_the_buttons_too(open_page, run):
    from playwright.sync_api import expect as shows

    page, trace = open_page(), run.trace()
    slider, readout = page.locator("#slider"), page.locator("#readout")

    def expect(step):
        assert readout.inner_text().startswith(
            f"Step {step + 1}: state {trace.states[step]}"
        )

    expect(0)
    places = set()
    slider.focus()
    for step in range(1, 30):
        page.keyboard.press("ArrowRight")
        expect(step)
        agent = page.locator("#agent")
        places.add(agent.get_attribute("transform"))
    assert len(places) == len(set(trace.states[1:30].tolist())) > 1
    page.locator("#back").press("Enter")
    expect(28)
    page.locator("#on").press("Enter")
    expect(29)
    page.locator("#play").press("Enter")
    shows(slider).not_to_have_value("29")
    page.locator("#play").press("Enter")
    assert page.locator("#play").inner_text() == "Play"

    assert page.locator("#arrow-layer > *").count() > 0
    page.locator("#arrows").uncheck()
    assert page.locator("#arrow-layer > *").count() == 0
    page.locator("#stretch").select_option(index=1)
    assert slider.input_value() == "0"


def test_steps_can_be_shown_by_their_logarithm(open_page):
    page = open_page()
    button = page.locator("button.scale").first
    axis = "document.getElementById('promise-0').layout.xaxis.type"
    before = page.evaluate(axis)
    button.press("Enter")
    assert page.evaluate(axis) != before
    assert button.get_attribute("aria-pressed") == str(before != "log").lower()


def test_it_fits_a_narrow_screen(open_page):
    page = open_page(width=380)
    assert page.evaluate(WIDTHS) == [380, 380]


@pytest.fixture(scope="module")
def side_by_side(compared, tmp_path_factory):
    place = tmp_path_factory.mktemp("page") / "comparison.html"
    return write_comparison_page(compared, place).as_uri()


def test_agents_side_by_side_fit_a_narrow_screen_and_keep_their_names(
    visit, side_by_side
):
    page = visit(side_by_side, width=380)
    assert page.evaluate(WIDTHS) == [380, 380]
    names = page.locator("table.grid tbody th").all_inner_texts()
    assert names == ["e4", HOSTILE, "careful", "oracle"]
    legend = page.locator("#tradeoff .legendtext").all_text_contents()
    assert legend == [
        "e4",
        HOSTILE,
        "oracle",
        "budget",
    ]  # as text, not as what it would be in HTML
    assert page.locator("#tradeoff a, img").count() == 0


def test_steps_of_a_comparison_can_be_shown_by_their_logarithm(visit, side_by_side):
    page = visit(side_by_side)
    page.locator("button.scale").first.press("Enter")
    axis = "document.getElementById('rewards').layout.xaxis.type"
    assert page.evaluate(axis) == "log"


@pytest.mark.parametrize("which", ["address", "side_by_side", "spread_out"])
@pytest.mark.parametrize(
    ("scheme", "dark"), [("light", False), ("dark", True)], ids=["light", "dark"]
)
def test_it_is_as_dark_as_asked_for(visit, request, which, scheme, dark):
    page = visit(request.getfixturevalue(which), scheme=scheme)
    grounds = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.main-svg')).backgroundColor]"
    )
    for ground in grounds:
        levels = [int(part) for part in ground.strip("rgb()").split(",")]
        assert max(levels) < DARKEST if dark else min(levels) > LIGHTEST


# -- a sweep -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spread_out(swept, tmp_path_factory):
    return write_sweep_page(
        swept, tmp_path_factory.mktemp("page") / "sweep.html"
    ).as_uri()


def test_a_sweep_is_drawn_along_the_axis_that_the_keys_choose(visit, spread_out):
    page = visit(spread_out)
    title = "document.getElementById('reward').layout.xaxis.title.text"
    assert page.evaluate(title) == "known_after"
    page.locator("#along").focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate(title) == "size"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(title) == "world"
    worlds = "document.getElementById('gap').layout.xaxis.title.text"
    assert page.evaluate(worlds) == "world"


def test_a_sweep_fits_a_narrow_screen_and_its_names_stay_text(visit, spread_out):
    page = visit(spread_out, width=380)
    assert page.evaluate(WIDTHS) == [380, 380]
    assert HOSTILE in page.locator("#failures").inner_text()
    assert page.locator("img").count() == 0
    # what is too wide is scrolled by keys
    grid = page.locator(".scrolled")
    grid.focus()
    for _ in range(100):
        page.keyboard.press("ArrowRight")
        if page.evaluate("document.querySelector('.scrolled').scrollLeft") > 0:
            break
    else:
        pytest.fail("the table does not move")
