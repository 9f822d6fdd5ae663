"""Answers of any size over HTTP: streamed from one state of the tables, a batch at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from threading import BoundedSemaphore
from typing import Annotated, Any, Literal
from weakref import finalize

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from seamline.lake.read.streamed_answer import StreamedAnswer
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.model.errors import TooSlow
from seamline.model.types.exact_json import dump_exact_json
from seamline.serve.answer_age import read_within_age
from seamline.serve.answer_request import MEDIA, key_condition_sql, list_asked_keys
from seamline.serve.streamed import encode_answer_stream, stream_answer
from seamline.web.access import readers
from seamline.web.api import ANSWERS, ReadQuery
from seamline.web.limits import AT_ONCE, enforce_rate_limit, read_memory_share, run_with_time_limit
from seamline.web.requested_pipeline import open_requested_pipeline

BROKEN_ARROW = b"\xff\xff\xff\xff\xff\xff\xff\x7f"
"""The beginning of a message of an Arrow stream, of which two gigabytes are to follow."""
PATIENCE = 30.0
"""Seconds that a download which has begun waits for its turn, where others are refused."""
LINES = {**MEDIA, "json": "application/x-ndjson"}
MADE: dict[int | str, dict[str, Any]] = {200: {"content": {kind: {} for kind in LINES.values()}}}
router = APIRouter(prefix="/api/v1", dependencies=[Depends(enforce_rate_limit)], responses=ANSWERS)
running = BoundedSemaphore(AT_ONCE)


class DownloadQuery(ReadQuery):
    """The query of a download."""

    format: Literal["json", "csv", "arrow", "parquet"] = "arrow"


@router.get("/views/{pipeline}/{view}/rows", dependencies=[readers], responses=MADE)
def download(
    pipeline: str, view: str, request: Request, asked: Annotated[DownloadQuery, Query()]
) -> StreamingResponse:
    """Stream all rows of a view's answer, in JSON an object a line; ``key.NAME=VALUE`` keeps rows of a key."""
    keys = list_asked_keys(request.query_params.multi_items())
    with read_within_age(("shown", pipeline, view)):
        compiled, layout = open_requested_pipeline(pipeline)
        _, shown = find_served_version(compiled, layout, find_view(compiled, layout, view), asked.version)
    place = running
    if not place.acquire(blocking=False):
        raise TooSlow(f"{AT_ONCE} downloads are running.", hint="retry later.")
    try:
        where = key_condition_sql(shown, keys, asked.null)
        memory = read_memory_share()
        stream = run_with_time_limit(
            lambda: stream_answer(f"{pipeline}.{view}", where, memory=memory, **asked.options())
        )
    except BaseException:
        place.release()
        raise
    pieces = encode_answer_stream(stream, asked.format)
    # A body that nobody asks for is never begun, and so never ended.
    end = finalize(pieces, end_download, stream, place)
    first = stream.first
    headers = {
        "Cache-Control": "private, no-store",
        "Content-Disposition": f'attachment; filename="{pipeline}.{view}.{asked.format}"',
        "Seamline-State": f"{first.version}/{first.epoch}/{first.manifest_version}",
    }
    body = give_pieces(pieces, asked.format, end)
    return StreamingResponse(body, media_type=LINES[asked.format], headers=headers)


def spoil_end(format: str, error: Exception) -> bytes:
    """Return bytes by which a reader of a format finds that an answer is not whole; a Parquet file has no footer."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    match format:
        case "arrow":
            return BROKEN_ARROW
        case "json":
            return f"{dump_exact_json({'broken_off': said})}\n".encode()
        case "csv":
            return f"BROKEN OFF: {said}\n".encode()
    return b""


def end_download(stream: StreamedAnswer, place: BoundedSemaphore) -> None:
    """Let go of an answer, and give its place to the next."""
    try:
        stream.close()
    finally:
        place.release()


async def give_pieces(
    pieces: Iterator[bytes], format: str, end: Callable[[], object]
) -> AsyncIterator[bytes]:
    """Give the body as it is made: each piece within the time of an answer, and what is broken off is never ended.

    A proxy, or a middleware of the server that mounts us, may end it all the same: its last bytes are ``spoil_end``.
    """
    make = partial(run_with_time_limit, lambda: next(pieces, None), patience=PATIENCE)
    try:
        while (piece := await run_in_threadpool(make)) is not None:
            if piece:
                yield piece
    except Exception as error:
        yield spoil_end(format, error)
        raise
    finally:
        end()
