"""What is asked over HTTP, on a real Airflow: points, pages in a browser, and an audit of a million offsets.

    python -m benchmarks.web [--minutes 10] [--offsets 1000000]

Minutes of epochs at a trigger of two seconds (`benchmarks.ageing`), then points at 1, 10 and 50 requests a second, sent
when they are due whatever became of those before: of tables in which nothing happens, and with an epoch committed
beside them every half second. Pages are timed until the browser's load event, charts included. The audit is of a topic
that a stream has drained, with the broker's own word on every offset.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

import httpx
from playwright.sync_api import sync_playwright

from benchmarks import ads
from benchmarks.ageing import KEPT_EVERY, TRIGGER, Life
from benchmarks.machine import CHROMIUMS, chromium, machine, percentile
from benchmarks.results import Results
from benchmarks.spine import broker
from benchmarks.views import ROOT
from seamline.kafka.connections import KafkaConnection
from seamline.local.airflow import AirflowStandalone
from seamline.local.stack import StreamStack
from seamline.model.compile.catalog import load_pipeline
from seamline.model.time.intervals import format_utc_instant
from seamline.supervisor.auditing import audit

RATES = {1: 30, 10: 200, 50: 1000}
"""Requests a second, and how many."""
VIEW = "views/ad_campaigns/views_by_campaign"
PAGES = (
    "",
    "pipelines/ad_campaigns/completeness",
    "pipelines/ad_campaigns/views/views_by_campaign",
    "pipelines/ad_campaigns/stream",
)
LOADS = 5
BESIDE = 0.5


def main(argv: list[str]) -> int:
    """Ask a real Airflow, then audit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.web", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--offsets", type=int, default=1_000_000)
    options = parser.parse_args(argv)
    print(machine(), flush=True)
    figures: dict[str, object] = {"machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        life = Life(home, 200)
        for number in range(int(options.minutes * 60 / TRIGGER.total_seconds())):
            life.epoch()
            if number % KEPT_EVERY == KEPT_EVERY - 1:
                life.upkeep()
        settings = {"SEAMLINE_PIPELINES": str(life.definitions), "SEAMLINE_WAREHOUSE": str(life.warehouse)}
        airflow = AirflowStandalone(home / "airflow", 28080, root=ROOT, env=settings)
        airflow.start()
        try:
            figures |= points(airflow, life)
            figures |= pages(airflow)
        finally:
            airflow.stop()
        with broker(home) as connection:
            figures |= audited(connection, home / "audited", options.offsets)
    Results("web").write(figures)
    return 0


def points(airflow: AirflowStandalone, life: Life) -> dict[str, float]:
    """Ask for one campaign's window, at each rate, with and without epochs beside."""
    last = life.at - timedelta(seconds=20)
    start = last.replace(second=last.second // 10 * 10)
    query = {
        "start": format_utc_instant(start),
        "end": format_utc_instant(start + timedelta(seconds=10)),
        "key.campaign": "7",
    }
    address = f"{airflow.url}/seamline/api/v1/{VIEW}?{urlencode(query)}"
    api = airflow.api
    api.log_in()
    headers = {"Authorization": f"Bearer {api.token}"}
    asyncio.run(asked(address, headers, 20, 5))
    found = {}
    for how in ("cached", "changed"):
        for rate, count in RATES.items():
            with epochs(life, on=how == "changed"):
                took = [each * 1e3 for each in asyncio.run(asked(address, headers, count, rate))]
            p50, p99 = percentile(took, 0.5), percentile(took, 0.99)
            print(f"point, {how}, {rate}/s: p50 {p50:.1f} ms, p99 {p99:.1f} ms", flush=True)
            found |= {f"point_{how}_{rate}_p50_ms": p50, f"point_{how}_{rate}_p99_ms": p99}
    return found


async def asked(address: str, headers: dict[str, str], count: int, rate: float) -> list[float]:
    """Send requests when they are due; give the seconds of each, from when it was due."""
    began = time.perf_counter()
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:

        async def one(number: int) -> float:
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            answer = await client.get(address)
            answer.raise_for_status()
            assert answer.json()["total"] == 1
            return time.perf_counter() - due

        return await asyncio.gather(*map(one, range(count)))


@contextmanager
def epochs(life: Life, *, on: bool) -> Iterator[None]:
    """Hold an epoch every half second, as long as the block runs."""
    stop = threading.Event()

    def stream() -> None:
        while not stop.wait(BESIDE):
            life.epoch()

    thread = threading.Thread(target=stream)
    if on:
        thread.start()
    yield
    stop.set()
    if on:
        thread.join()


def pages(airflow: AirflowStandalone) -> dict[str, float]:
    """Load pages in a browser that has been there before."""
    there = chromium()
    if there is None:
        print(
            f"No browser: none of {', '.join(CHROMIUMS)} is on PATH. `make browser` installs one. Left out: pages."
        )
        return {}
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=there, args=["--no-sandbox"])
        context = browser.new_context()
        api = airflow.api
        api.log_in()
        context.add_cookies([{"name": "_token", "value": api.token, "url": airflow.url}])
        page = context.new_page()
        for path in PAGES:
            took = []
            for _ in range(1 + LOADS):
                page.goto(f"{airflow.url}/seamline/{path}", wait_until="load")
                took.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            name = path.rpartition("/")[2] or "overview"
            print(f"page {name}: {median(took[1:]):.0f} ms, the first time {took[0]:.0f}", flush=True)
            found |= {f"page_{name}_ms": median(took[1:]), f"page_{name}_first_ms": took[0]}
        browser.close()
    return found


def audited(connection: KafkaConnection, home: Path, count: int) -> dict[str, float]:
    """Drain a topic, and audit every offset of it."""
    home.mkdir()
    ads.preload(connection, "audited", count)
    stack = StreamStack(home, ads.definition("audited", epoch=count // 4), connection, "ad_campaigns")
    stack.start()
    stack.drain(count, 600.0)
    stack.stop()
    pipeline = load_pipeline(Path(stack.settings["SEAMLINE_PIPELINES"]), "ad_campaigns")
    took = []
    for _ in range(3):
        began = time.perf_counter()
        found = audit(pipeline, stack.layout, env=stack.settings)
        took.append(time.perf_counter() - began)
        assert found.passed, found.findings
        assert sum(lane.records for lane in found.lanes) == count
    print(
        f"audit of {count:,} offsets: {median(took):.1f} s ({', '.join(f'{each:.1f}' for each in took)})",
        flush=True,
    )
    return {"audit_offsets": count, "audit_s": median(took)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
