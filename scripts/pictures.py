"""Take the pictures of a report that the README and the pages show.

``make pictures`` lives the demo and calls this with its directory.  A Chromium takes
the pictures: the machine's, or the one that Playwright brought.  They are kept as
lossless WebP, which is small.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from escapade.experiment import Run
from escapade.report import write_page

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WIDTH = 1000
STEP = 40
"""Of the stretch that the replay shows: the agent is on its way there."""


def main() -> None:
    """Take the pictures."""
    reader = argparse.ArgumentParser(description=main.__doc__)
    reader.add_argument("run", type=Path, help="the directory of a finished run")
    run = Run(reader.parse_args().run)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        address = write_page(run, Path(folder) / "report.html").as_uri()
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme, name in (("light", "report"), ("dark", "report-dark")):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 900}, color_scheme=scheme
            )
            page.goto(address)
            page.wait_for_selector(".figure .main-svg")
            last = page.locator("#figure-promise-0").bounding_box()
            assert last is not None
            keep(page, name, 0.0, last["y"] + last["height"])
            if scheme == "light":
                page.locator("#stretch").select_option(index=1)
                page.locator("#slider").focus()
                for _ in range(STEP):
                    page.keyboard.press("ArrowRight")
                page.evaluate("document.activeElement.blur()")
                replay = page.locator("#replay").bounding_box()
                assert replay is not None
                keep(page, "replay", replay["y"], replay["height"])
        browser.close()


def keep(page: Page, name: str, top: float, height: float) -> None:
    """Keep a part of a page as a picture."""
    scrolled = page.evaluate("window.scrollY")
    part = {"x": 0.0, "y": top + scrolled, "width": float(WIDTH), "height": height + 16}
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=part)))
    place = PICTURES / f"{name}.webp"
    taken.convert("RGB").save(place, lossless=True, quality=100, method=6)
    print(
        f"{place.name}: {taken.width} by {taken.height}, {place.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
