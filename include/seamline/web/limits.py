"""What one caller may ask: so many requests a minute, so large, for so long."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import HTTPException, Request
from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seamline.lake.engine.time_limit import SECONDS, interrupt_after
from seamline.model.errors import BadRange, TooSlow
from seamline.serve.streamed import read_memory_setting

MOST_BYTES = 64 * 1024
RATE = "6000/minute"
AT_ONCE = 4
"""Answers in parts at a time, which share the memory of one: downloads, and pages as well."""
THREADS = max(2, os.cpu_count() or 2)
LOOKS = 16
"""Looks at a time: most of their time they wait for files, buckets or brokers."""
T = TypeVar("T")
P = ParamSpec("P")
waiting = threading.BoundedSemaphore(16)
threads = ThreadPoolExecutor(THREADS, thread_name_prefix="answers")
looks = ThreadPoolExecutor(LOOKS, thread_name_prefix="looks")
limiter = FixedWindowRateLimiter(MemoryStorage())


def enforce_rate_limit(user: GetUserDep) -> None:
    """Let a user ask so often (SEAMLINE_HTTP_RATE, by server process), then answer 429 and when to come again."""
    rate = rate_of(os.environ.get("SEAMLINE_HTTP_RATE", RATE))
    if not limiter.hit(rate, str(user.get_id())):
        raise HTTPException(429, f"More than {rate}.", headers={"Retry-After": str(rate.get_expiry())})


@cache
def rate_of(text: str) -> RateLimitItem:
    """Read how often a user may ask; BadRange for what is not a rate."""
    try:
        return parse(text)
    except ValueError:
        raise BadRange(f"SEAMLINE_HTTP_RATE={text!r} is not a rate.", hint='write "6000/minute".') from None


def read_memory_share() -> int:
    """Read how many bytes one answer in parts may take, of those at a time; SetupError for what is no size."""
    return read_memory_setting(os.environ) // AT_ONCE


def only_json(request: Request) -> None:
    """Refuse what a form of another site could send: 415."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON, with its content type.")


def run_with_time_limit(make: Callable[[], T], seconds: float = SECONDS, *, patience: float = 0) -> T:
    """Work out an answer in one of few threads, whose DuckDB is warm, and break it off after so long; TooSlow.

    A server has many threads, and each would begin with a DuckDB that knows no file. Where too many wait for one
    already, it is refused unless there is a place within the seconds of ``patience``.
    """
    if not waiting.acquire(timeout=patience):
        raise TooSlow("Server busy.", hint="retry later.")
    try:
        return run_in_time(threads, make, seconds)
    finally:
        waiting.release()


def look_with_time_limit(make: Callable[[], T], seconds: float = SECONDS) -> T:
    """Look at tables, streams and Kafka in threads of their own, and break it off after so long; TooSlow.

    A broker that does not answer keeps nobody from an answer.
    """
    return run_in_time(looks, make, seconds)


def run_in_time(pool: ThreadPoolExecutor, make: Callable[[], T], seconds: float) -> T:
    """Run something in a pool's thread; TooSlow after so long, or where it had no turn or no end after twice that."""

    def timed() -> T:
        with interrupt_after(seconds):
            return make()

    work = pool.submit(timed)
    try:
        return work.result(timeout=2 * seconds)
    except TimeoutError:
        work.cancel()
        raise TooSlow(
            f"There was no answer within {2 * seconds:g} s: other requests are being answered.",
            hint="retry later.",
        ) from None


def within_time_limit(answer: Callable[P, T]) -> Callable[P, T]:
    """Bound how long a route that looks at tables takes; TooSlow."""

    @wraps(answer)
    def bounded(*given: P.args, **named: P.kwargs) -> T:
        return look_with_time_limit(lambda: answer(*given, **named))

    return bounded


class Bounded:
    """Refuses large bodies before anything reads them whole."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in: what a caller sends, not what it says."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > MOST_BYTES:
                raise HTTPException(413, f"The body is larger than {MOST_BYTES} bytes.")
            return message

        await self.app(scope, counted, send)
