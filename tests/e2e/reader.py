"""Somebody who reads the pages in a real browser, and keeps what was seen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from axe_playwright_python.sync_playwright import Axe
from benchmarks.machine import CHROMIUMS, chromium
from playwright.sync_api import Browser, Page, sync_playwright

from seamline.local.airflow import AirflowStandalone

SHOTS = Path(__file__).parents[2] / ".seamline" / "screenshots"
PATIENCE = 180_000.0
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Open the Chromium that is on PATH; a laptop without one skips, and continuous integration fails."""
    found = chromium()
    if found is None:
        said = f"No browser: none of {', '.join(CHROMIUMS)} is on PATH. `make browser` installs one."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@dataclass
class Reader:
    """A reader who is logged in; ``complaints`` are what the pages wrote on the console."""

    url: str
    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> Self:
        """Open one of our pages, and wait until all of it is there."""
        answer = self.page.goto(f"{self.url}/seamline/{path}")
        assert answer is not None and answer.ok, f"{path}: {answer and answer.status}"
        self.page.wait_for_function("!document.querySelector('[data-src]')")
        self.page.wait_for_function(
            "[...document.querySelectorAll('.chart')].every(each => each.querySelector('.main-svg'))"
        )
        wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert self.page.evaluate(wide), f"{path} is wider than its window"
        return self

    def barriers(self) -> list[str]:
        """List what keeps people from reading or working the page, as axe finds it: rules of WCAG 2.2, A and AA."""
        found = Axe().run(self.page, options={"runOnly": RULES}).response["violations"]
        return [
            f"{each['id']} ({each['impact']}): {node['html'][:200]}"
            for each in found
            for node in each["nodes"]
        ]

    def shot(self, name: str, *, whole: bool = True) -> None:
        """Keep what is seen: the whole page, or what its window shows."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{re.sub('[^a-z0-9]+', '-', name)}.png", full_page=whole)


@contextmanager
def reader(browser: Browser, airflow: AirflowStandalone, user: str, **looks: Any) -> Iterator[Reader]:
    """Log in by Airflow's own form, and read."""
    context = browser.new_context(viewport=looks.pop("viewport", {"width": 1280, "height": 900}), **looks)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    found = Reader(airflow.url, page)
    page.goto(f"{airflow.url}/auth/login")
    page.get_by_label(re.compile("username", re.IGNORECASE)).fill(user)
    page.locator("input[type=password]").fill(airflow.password)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "/auth/login" not in url)
    page.on(
        "console",
        lambda said: found.complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    try:
        yield found
    finally:
        context.close()
