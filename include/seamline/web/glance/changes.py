"""What open pages are told: the id of what they show, each time that it is another, by server-sent events.

Ids are made of what is shown alone. So a page that comes back, to another server process or after a restart, is told
whether it has missed something. A stream ends after a while, and the page asks for the next one: whoever is logged out
by then is told nothing more.
"""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated
from weakref import WeakSet

import anyio
from airflow.api_fastapi.core_api.security import GetUserDep
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse

from seamline.lake.store.promises import is_asking_free
from seamline.model.errors import TooSlow
from seamline.model.recent import Recent
from seamline.web.access import list_readable_pipelines, readers
from seamline.web.glance.overview import load_pipeline_cards
from seamline.web.glance.shown_ids import identify_cards, identify_requested_pipeline
from seamline.web.limits import enforce_rate_limit, look_with_time_limit
from seamline.web.requested_pipeline import open_requested_pipeline

MOST = 100
"""Streams at a time of a server process; a page that gets none looks for itself."""
LASTS, BEAT, RETRY = 60.0, 15.0, 2.0
"""Seconds that a stream lasts, after which it says that it is there, and after which a page comes back."""
EVERY, RARELY = 2.0, 5.0
"""Seconds between two looks; the longer where each costs requests to a bucket."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
router = APIRouter(dependencies=[Depends(enforce_rate_limit)], include_in_schema=False)
Id = Annotated[str, Query(max_length=40)]
LastId = Annotated[str, Header(alias="last-event-id", max_length=40)]


@dataclass
class Look:
    """What was found at the last look at something; all who listen share it."""

    id: str = ""
    """The id; empty until there was one."""
    at: float = float("-inf")
    """When it was looked for, by the monotonic clock."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Taken by whoever looks."""


class Place:
    """The place of one stream; it is free again once nothing holds it."""


@dataclass
class Listeners:
    """Who listens to a server process."""

    places: WeakSet[Place] = field(default_factory=WeakSet)
    """Of all streams, from when each is promised: a body that nobody asks for is never begun, and so never ended."""
    looks: Recent[object, Look] = field(default_factory=lambda: Recent(MOST))
    """What they look at."""


listeners = Listeners()


@router.get("/changes")
async def list_changes(user: GetUserDep, seen: Id = "", last_event_id: LastId = "") -> StreamingResponse:
    """Tell when what the page of all pipelines shows is another."""
    names = await run_sync(list_readable_pipelines, user)
    subject = ("", *names)
    return stream_changes(
        subject, lambda: identify_cards(load_pipeline_cards(names)), last_event_id or seen, EVERY
    )


@router.get("/pipelines/{pipeline}/changes", dependencies=[readers])
async def list_pipeline_changes(
    pipeline: str, seen: Id = "", last_event_id: LastId = ""
) -> StreamingResponse:
    """Tell when what a pipeline's graph, stream or sinks show is another."""
    _, layout = await run_sync(open_requested_pipeline, pipeline)
    every = EVERY if is_asking_free(layout.table("")) else RARELY
    subject = ("pipeline", layout.table(""), pipeline)
    return stream_changes(
        subject, lambda: identify_requested_pipeline(pipeline), last_event_id or seen, every
    )


def stream_changes(
    subject: object, identify: Callable[[], str], seen: str, every: float
) -> StreamingResponse:
    """Answer with a stream; TooSlow where there are enough of them."""
    if len(listeners.places) >= MOST:
        raise TooSlow(f"{MOST} pages listen to this process.", hint="pages look for themselves meanwhile.")
    listeners.places.add(place := Place())
    return StreamingResponse(
        tell(subject, identify, seen, every, place), media_type="text/event-stream", headers=HEADERS
    )


async def tell(
    subject: object, identify: Callable[[], str], seen: str, every: float, place: Place
) -> AsyncIterator[str]:
    """Tell each id that is another than the one ``seen``, and now and then that the stream is there."""
    try:
        began = said = time.monotonic()
        yield f"retry: {RETRY * 1000:.0f}\n\n"
        while time.monotonic() - began < LASTS and not is_server_ending():
            found = await find_id(subject, identify, every)
            if found not in ("", seen):
                seen, said = found, time.monotonic()
                yield f"id: {found}\nevent: changed\ndata: {found}\n\n"
            elif time.monotonic() - said >= BEAT:
                said = time.monotonic()
                yield "event: alive\ndata:\n\n"
            await anyio.sleep(every)
    finally:
        listeners.places.discard(place)


async def find_id(subject: object, identify: Callable[[], str], every: float) -> str:
    """Look, unless another listener has just done so."""
    if (look := listeners.looks.get(subject)) is None:
        look = listeners.looks[subject] = Look()
    async with look.lock:
        if time.monotonic() - look.at >= every:
            look.at = time.monotonic()
            # What has no answer in time is as it was, as far as anybody knows.
            with suppress(TooSlow):
                look.id = await run_sync(look_with_time_limit, identify)
    return look.id


def is_server_ending() -> bool:
    """Return whether uvicorn was told to end, which waits for every answer to end first."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
