"""Open pages are told what has changed: by ids that outlive the server, and no longer than anybody listens."""

from __future__ import annotations

import gc
import itertools
import re
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
from tests.unit.past import build
from tests.unit.shop import Sale

from seamline.model.errors import TooSlow
from seamline.runtime.deadline import in_time
from seamline.web import app as web
from seamline.web.glance import changes
from seamline.web.limits import looks, run_in_time

STREAM = "/pipelines/shop/changes"


class Listener:
    """A browser's side of one stream."""

    def __init__(self) -> None:
        self.head: dict[str, str] = {}
        self.status = 0
        self.text = ""
        self.ended = False
        self.gone = anyio.Event()
        self.came = anyio.Condition()

    async def receive(self) -> dict[str, object]:
        """Say that the browser has gone, once it has."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, object]) -> None:
        """Take what the application answers."""
        async with self.came:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.head = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.text += message.get("body", b"").decode()
                self.ended = not message.get("more_body", False)
            self.came.notify_all()

    async def wait_for(self, pattern: str) -> list[str]:
        """Wait until so much was said; return what it found."""
        with anyio.fail_after(60):
            async with self.came:
                while not (found := re.findall(pattern, self.text)):
                    await self.came.wait()
        return found


@asynccontextmanager
async def listening(path: str, **headers: str) -> AsyncIterator[Listener]:
    """Listen to a stream of the application, as uvicorn would let a browser, until the block ends."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("airflow", 80),
        "client": ("reader", 1),
    }
    listener = Listener()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(web.app, scope, listener.receive, listener.send)
        yield listener
        listener.gone.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """Let looks follow each other closely."""
    monkeypatch.setattr(changes, "EVERY", 0.01)
    monkeypatch.setattr(changes, "RARELY", 0.01)
    monkeypatch.setattr(changes, "listeners", changes.Listeners())


def seen_by(page: str) -> str:
    """Return the id of what a page shows."""
    return re.search(r'data-seen="(\w+)"', page)[1]


def test_a_page_is_told_of_what_comes_and_of_nothing_else(client, shop) -> None:
    """It says which id it shows; the id that the stream tells after an epoch is that of the page fetched then."""

    async def listen() -> None:
        page = asked(client, "/pipelines/shop/graph")
        async with listening(f"{STREAM}?seen={seen_by(page)}") as listener:
            await listener.wait_for("retry: 2000\n\n")
            assert listener.head["content-type"].startswith("text/event-stream")
            assert listener.head["x-accel-buffering"] == "no" and "content-security-policy" in listener.head
            shop.epoch([Sale(5, "a", 1)])
            [(last, told)] = await listener.wait_for(r"id: (\w+)\nevent: changed\ndata: (\w+)\n\n")
            assert last == told == seen_by(asked(client, "/pipelines/shop/graph")) != seen_by(page)
            assert await listener.wait_for(r"event: changed\s[^!]*?event: (\w+)") == ["alive"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "BEAT", 0.05)
        anyio.run(listen)


def asked(client, path: str) -> str:
    """Ask for a page from inside of a loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(client.get, path, headers={"Accept": "text/html"}).result().text


@pytest.mark.parametrize(
    "page",
    [
        "",
        *(f"pipelines/shop/{each}" for each in ("graph", "stream", "sinks", "questions", "plan", "imports")),
    ],
)
def test_each_page_listens_where_it_shows_from(page: str, client) -> None:
    """Its address is below ours, and the stream there has nothing to tell at first."""
    text = client.get(f"/{page}", headers={"Accept": "text/html"}).text
    address = re.search(r'data-changes="([^"]+)"', text)[1]

    async def listen() -> None:
        async with listening(f"{address}?seen={seen_by(text)}") as listener:
            await listener.wait_for("event: alive\n")
        assert "changed" not in listener.text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "BEAT", 0.05)
        anyio.run(listen)


def test_a_page_that_comes_back_is_told_what_it_has_missed(client, shop) -> None:
    """By the id that it heard last: the server need not have said it."""

    async def listen(last: str) -> str:
        async with listening(STREAM, last_event_id=last) as listener:
            return (await listener.wait_for(r"data: (\w+)"))[0]

    first = anyio.run(listen, "")
    build(shop, "h", cut=0)
    second = anyio.run(listen, first)
    assert second != first
    changes.listeners.looks.clear()

    async def again() -> None:
        async with listening(STREAM, last_event_id=second) as listener:
            await listener.wait_for("event: alive\n")
        assert "changed" not in listener.text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "BEAT", 0.05)
        anyio.run(again)


def test_listeners_share_one_look_and_leave_nothing_behind(client, monkeypatch) -> None:
    """Twenty pages of a pipeline cost what one does, and none once they are closed."""
    looks: list[str] = []
    monkeypatch.setattr(changes, "identify_requested_pipeline", lambda name: looks.append(name) or "one")
    monkeypatch.setattr(changes, "EVERY", 60.0)
    monkeypatch.setattr(changes, "RARELY", 60.0)

    async def listen() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(once)

    async def once() -> None:
        async with listening(STREAM) as listener:
            await listener.wait_for("data: one")

    anyio.run(listen)
    assert looks == ["shop"] and not changes.listeners.places


def test_listeners_who_came_at_different_times_share_looks_too(monkeypatch) -> None:
    """There is one every two seconds, whoever asks between: there was one a second."""
    now, looks = [100.0], []
    monkeypatch.setattr(changes, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def ask() -> None:
        for _ in range(8):
            await changes.find_id("it", lambda: looks.append(now[0]) or "id", 2.0)
            now[0] += 1

    anyio.run(ask)
    assert looks == [100, 102, 104, 106]


def test_a_look_that_takes_too_long_changes_nothing(client, monkeypatch) -> None:
    """The stream goes on, and tells what the next look finds: before, nothing had a limit."""
    answers = iter([True, False])

    def identify(_: str) -> str:
        if next(answers, False):
            for _ in in_time(itertools.count()):
                pass
        return "one"

    monkeypatch.setattr(changes, "identify_requested_pipeline", identify)
    monkeypatch.setattr(changes, "look_with_time_limit", lambda make: run_in_time(looks, make, 0.05))

    async def listen() -> None:
        async with listening(STREAM) as listener:
            assert await listener.wait_for(r"(?:id|data): (\w*)") == ["one", "one"]

    anyio.run(listen)


def test_there_is_an_end_to_how_many_may_listen(client, monkeypatch) -> None:
    """One more is refused, and looks for itself, until another has gone."""
    monkeypatch.setattr(changes, "MOST", 1)

    async def listen() -> None:
        async with listening(STREAM) as first:
            await first.wait_for("changed")
            async with listening(STREAM) as second:
                await second.wait_for("pages look for themselves")
            assert second.status == 503
        async with listening(STREAM) as third:
            await third.wait_for("changed")

    anyio.run(listen)


def test_a_stream_has_its_place_before_it_begins(monkeypatch) -> None:
    """Two that come at once are counted before either is begun; one that never begins leaves its place."""
    monkeypatch.setattr(changes, "MOST", 1)

    def stream() -> object:
        return changes.stream_changes("it", lambda: "id", "", 2.0)

    first = stream()
    with pytest.raises(TooSlow, match="1 pages listen"):
        stream()
    del first
    gc.collect()
    assert stream()


def test_a_stream_ends_with_its_server(client, monkeypatch) -> None:
    """Which waits for every answer to end; a stream ends by itself after a while."""

    class Server:
        """Uvicorn's, as far as it matters."""

        should_exit = False

        def handle_exit(self, *_: object) -> None:
            """Be told to end."""
            self.should_exit = True

    server = Server()
    monkeypatch.setattr(changes.signal, "getsignal", lambda _: server.handle_exit)

    async def listen() -> None:
        async with listening(STREAM) as listener:
            await listener.wait_for("changed")
            assert not listener.ended
            server.handle_exit(signal.SIGTERM)
            with anyio.fail_after(30):
                async with listener.came:
                    while not listener.ended:
                        await listener.came.wait()

    anyio.run(listen)
