"""An open page in a browser: a number that has changed arrives without a reload, and nothing is asked for till then."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import uvicorn
from playwright.sync_api import Page, Route
from tests.e2e.reader import opened_browser
from tests.ports import free_ports
from tests.unit.shop import Sale

from seamline.web import app as web
from seamline.web import pages
from seamline.web.glance import changes

pytestmark = pytest.mark.faults
GRAPH, PLAN = "/pipelines/shop/graph", "/pipelines/shop/plan"


class Server:
    """A server of the pages."""

    def __init__(self) -> None:
        self.port = free_ports()
        self.start()

    def start(self) -> None:
        """Start it, at the port where it was."""
        self.server = uvicorn.Server(uvicorn.Config(web.app, port=self.port, log_level="warning"))
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()

    def end(self) -> None:
        """End it, whatever is open."""
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(60)


class Watched:
    """An open page, what it asks for, and what it complains about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.asked: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.asked.append(request.url.removeprefix(url).partition("?")[0]))
        page.on("console", lambda message: self.complaints.append(message.text))
        with page.expect_request("**/changes?*"):
            page.goto(url + GRAPH)

    def wait_for(self, text: str) -> None:
        """Wait until the page says something."""
        self.page.locator("[data-part=graph]").get_by_text(text).first.wait_for(timeout=60_000)


@pytest.fixture
def watched(client) -> Iterator[tuple[Watched, Server]]:
    """A reader's graph of the shop."""
    server = Server()
    try:
        with opened_browser() as browser:
            yield Watched(browser.new_page(), f"http://127.0.0.1:{server.port}"), server
    finally:
        server.end()


def test_a_number_that_has_changed_arrives_without_a_reload(watched, shop) -> None:
    """The page is fetched once for it."""
    page, _ = watched
    page.page.evaluate("window.kept = true")
    assert page.asked.count(GRAPH) == 1
    shop.epoch([Sale(5, "a", 1)])
    page.wait_for("1 interval to build")
    assert page.page.evaluate("window.kept")
    assert page.asked.count(GRAPH) == 2
    assert page.complaints == []


def test_a_server_that_takes_long_is_asked_once(watched, shop) -> None:
    """However much it says meanwhile; what has come since is fetched after that."""
    page, _ = watched
    held: list[Route] = []
    page.page.route(f"**{GRAPH}", lambda route: held.append(route), times=1)
    page.page.evaluate(
        """address => {
          window.told = 0;
          new EventSource(address).addEventListener("changed", () => { window.told += 1; });
        }""",
        f"{GRAPH.removesuffix('graph')}changes",
    )
    shop.epoch([Sale(5, "a", 1)])
    with page.page.expect_request(f"**{GRAPH}", timeout=60_000):
        pass
    before = page.page.evaluate("window.told")
    shop.epoch([Sale(6, "a", 1)])
    page.page.wait_for_function("before => window.told > before", arg=before, timeout=60_000)
    page.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    # A task of the page that is due after those of its timers.
    page.page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    assert page.asked.count(GRAPH) == 2
    [route] = held
    route.continue_()
    page.wait_for("1 interval to build")


def test_a_page_without_a_stream_looks_for_itself(watched, shop, monkeypatch) -> None:
    """As when there are too many that listen."""
    page, _ = watched
    monkeypatch.setattr(changes, "MOST", 0)
    monkeypatch.setattr(changes, "LASTS", 0.0)
    with page.page.expect_response(lambda answer: answer.status == 503, timeout=90_000):
        pass
    shop.epoch([Sale(5, "a", 1)])
    page.wait_for("1 interval to build")


def test_a_page_outlives_its_server(watched, shop) -> None:
    """It listens again to the next one on the port, and is told of what came in between."""
    page, server = watched
    server.end()
    shop.epoch([Sale(5, "a", 1)])
    with page.page.expect_request("**/changes?*", timeout=60_000):
        server.start()
    page.wait_for("1 interval to build")


def test_a_page_without_ids_looks_for_itself_until_it_has_one(watched, monkeypatch) -> None:
    """No table says how far Airflow is with a backfill; once it is done the page is told of changes."""
    each = {
        "id": 1,
        "dag_id": "shop__batch",
        "from_date": "2013-01-01",
        "to_date": "2013-01-02",
        "completed_at": None,
        "is_paused": False,
    }
    runs = {"queued": 2}
    airflow = SimpleNamespace(backfills=lambda _: [each], run_states=lambda *_: runs)
    monkeypatch.setattr(pages.InsideAirflow, "of", lambda request: airflow)
    page, _ = watched
    page.page.goto(page.page.url.replace(GRAPH, PLAN))
    page.asked.clear()
    runs["queued"] = 1
    page.page.locator("[data-part=backfills]").get_by_text("1 queued").wait_for(timeout=60_000)
    assert not any(address.endswith("/changes") for address in page.asked)
    each["completed_at"] = "2013-01-03"
    with page.page.expect_request("**/changes?*", timeout=60_000):
        pass
    assert page.complaints == []


def test_a_button_is_followed_by_a_look(watched, monkeypatch) -> None:
    """Whatever comes of it is shown, also what has no id."""
    page, _ = watched
    page.page.route(
        "**/api/v1/runs/shop", lambda route: route.fulfill(json={"run_id": "r", "dag_id": "shop__batch"})
    )
    with page.page.expect_request("**/changes?*"):
        page.page.goto(page.page.url.replace(GRAPH, PLAN))
    page.asked.clear()
    page.page.get_by_role("button", name="Run it").click()
    with page.page.expect_request(f"**{PLAN}", timeout=30_000):
        page.page.get_by_role("button", name="Do it").click()
    assert page.complaints == []
