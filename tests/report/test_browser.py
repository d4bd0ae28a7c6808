"""The page in a browser: it moves, complains of nothing, and asks nobody."""

from __future__ import annotations

import pytest

from escapade.report import write_page

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DARKEST, LIGHTEST = 80, 200


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=ARGUMENTS
        )
        yield found
        found.close()


@pytest.fixture
def open_page(browser, run, tmp_path):
    address = write_page(run, tmp_path / "report.html").as_uri()
    contexts, wrong = [], []

    def meet(route):
        if route.request.url == address:
            route.continue_()
        elif not route.request.url.startswith(("data:", "blob:")):
            wrong.append(route.request.url)
            route.abort()

    def opened(*, width=1100, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        contexts.append(context)
        context.route("**/*", meet)
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
    widths = "[document.documentElement.scrollWidth, window.innerWidth]"
    assert page.evaluate(widths) == [380, 380]


@pytest.mark.parametrize(
    ("scheme", "dark"), [("light", False), ("dark", True)], ids=["light", "dark"]
)
def test_it_is_as_dark_as_asked_for(open_page, scheme, dark):
    page = open_page(scheme=scheme)
    grounds = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('.main-svg')).backgroundColor]"
    )
    for ground in grounds:
        levels = [int(part) for part in ground.strip("rgb()").split(",")]
        assert max(levels) < DARKEST if dark else min(levels) > LIGHTEST
