"""What pages take with many pipelines that have many intervals: until a browser's load event, everything drawn.

    python -m benchmarks.wall [--pipelines 200] [--intervals 10000] [--loads 40]

Tables of one pipeline are written without its stream: days that are published and certified, the last twenty open. The
others are copies by another name. All pages are served by one process, as Airflow's API server does, which is let read
all pipelines once before (how long that takes is said); a browser then loads each page so many times.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import uvicorn
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.api_fastapi.core_api.security import get_user
from playwright.sync_api import sync_playwright
from tests.unit.shop import DAY, START, Sale, Shop, opened

from benchmarks.machine import chromium, machine, percentile
from benchmarks.results import Results
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.protocol.manifest import Act, Statement
from seamline.web import access, limits, pages, reports
from seamline.web import app as web

PAGES = (
    "",
    "pipelines/shop/graph",
    "pipelines/shop/completeness",
    "pipelines/shop/timeline",
    "pipelines/shop/stream",
    "pipelines/shop/views/sales",
    "query",
)
AT_ONCE, OPEN = 500, 20
CHECKS = ("rows", "contiguous", "states", "closed", "suite")
PORT = 8796


def main(argv: list[str]) -> int:
    """Write the tables, serve the pages, and load them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wall", description=__doc__)
    parser.add_argument("--pipelines", type=int, default=200)
    parser.add_argument("--intervals", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=40)
    options = parser.parse_args(argv)
    print(machine())
    with tempfile.TemporaryDirectory(prefix="wall") as home, pytest.MonkeyPatch.context() as patch:
        shop = opened(Path(home), patch, None)
        fill(shop, options.intervals)
        names = copy(shop, options.pipelines)
        figures = measure(names, options.loads)
    for name, each in figures.items():
        print(f"{name}: {', '.join(f'{word} {value:.0f} ms' for word, value in each.items())}")
    Results("wall").write(figures)
    return 0


def fill(shop: Shop, intervals: int) -> None:
    """Write a day for each interval: all but the last are published, each with its certificate."""
    for first in range(0, intervals, AT_ONCE):
        sales = [Sale(1440 * day, "a", 1) for day in range(first, min(first + AT_ONCE, intervals))]
        shop.epoch(sales, watermark=START + DAY * first)
    manifest, certificates = ManifestTable.ensure(shop.layout), Certificates.ensure(shop.layout)
    grid, now = shop.compiled.grid, datetime.now(UTC)
    closed = [(day, grid.of(START + DAY * day)) for day in range(intervals - OPEN)]
    for first in range(0, len(closed), AT_ONCE):
        run, some = f"scheduled__{first}", closed[first : first + AT_ONCE]
        manifest.read()
        manifest.commit(
            [
                Statement(
                    Act.PUBLISH,
                    shop.view.id,
                    epoch=day // AT_ONCE,
                    interval=each.id,
                    generation=f"g{day}",
                    rows=1,
                    certified=True,
                    run=run,
                    at=now,
                )
                for day, each in some
            ]
        )
        certificates.append(
            [
                Certificate(
                    shop.view.name,
                    shop.view.fingerprint,
                    f"g{day}",
                    each,
                    day // AT_ONCE,
                    run,
                    "never built",
                    now,
                    tuple(Check(name, True, "1") for name in CHECKS),
                )
                for day, each in some
            ]
        )


def copy(shop: Shop, count: int) -> list[str]:
    """Copy the pipeline so often, by other names; return all names."""
    tables, definition = Path(str(shop.layout.table(""))), definitions_folder() / "shop.py"
    names = [f"shop_{number:03}" for number in range(1, count)]
    for name in names:
        (definition.parent / f"{name}.py").write_text(definition.read_text().replace('"shop"', f'"{name}"'))
        shutil.copytree(tables, tables.parent / name)
    return ["shop", *names]


class Everything:
    """An auth manager that allows everything."""

    def is_authorized_dag(self, **_: object) -> bool:
        """Allow it."""
        return True


def measure(names: Sequence[str], loads: int) -> dict[str, dict[str, float]]:
    """Load each page so many times, once all is read."""
    asked = (
        access.may_read,
        access.may_build,
        access.may_steer,
        access.may_import,
        limits.enforce_rate_limit,
    )
    web.app.dependency_overrides |= {each: lambda: None for each in (*asked, reports.may_see.dependency)}
    web.app.dependency_overrides[get_user] = lambda: SimpleAuthManagerUser(username="ada", role="admin")
    access.get_auth_manager = Everything  # type: ignore[assignment]
    pages.list_readable_pipelines = lambda _: list(names)  # type: ignore[assignment]
    server = uvicorn.Server(uvicorn.Config(web.app, port=PORT, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        began, first = time.monotonic(), 0.0
        while "not read yet" in ask():
            first = first or time.monotonic() - began
            time.sleep(1)
        read = {"first page": 1000 * first, "until all were read": 1000 * (time.monotonic() - began)}
        return {"at the start": read} | {page or "overview": load(page, loads) for page in PAGES}
    finally:
        server.should_exit = True
        thread.join()


def ask() -> str:
    """Ask for the overview, as soon as the server answers."""
    while True:
        try:
            return httpx.get(f"http://127.0.0.1:{PORT}/", headers={"Accept": "text/html"}, timeout=60).text
        except httpx.ConnectError:
            time.sleep(0.1)


def load(page: str, loads: int) -> dict[str, float]:
    """Load a page in a browser; return what it takes in milliseconds."""
    took = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        seen = browser.new_page()
        for at in range(loads + 1):
            began = time.perf_counter()
            seen.goto(f"http://127.0.0.1:{PORT}/{page}", wait_until="load")
            # The first brings the scripts, which the browser keeps.
            took += [1000 * (time.perf_counter() - began)] if at else []
        browser.close()
    return {"p50": percentile(took, 0.5), "p95": percentile(took, 0.95)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
