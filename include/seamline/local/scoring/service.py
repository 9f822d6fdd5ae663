"""The scoring service, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from threading import Thread
from typing import Any, Self

from seamline.local.scoring.counts import Counts
from seamline.local.scoring.exchange import Reply, Request, Unreadable, read_request
from seamline.local.scoring.manners import Asked, Manners
from seamline.model.errors import BadRange

HOST = "127.0.0.1"


class ScoringService:
    """Answers over HTTP while a ``with`` statement lasts, or from ``start`` to ``stop``.

    ``POST /score`` takes a list of ``{"user": "ada", "amount": "12.50"}`` and answers with a list of ``{"risk": 0.37}``
    or ``{"refused": "why"}``; ``GET`` and ``POST /manners`` show its manners and change those that are named; ``GET
    /counts`` shows how often it was asked.
    """

    def __init__(self, manners: Manners | None = None, *, host: str = HOST, port: int = 0) -> None:
        self.manners, self.counts = manners or Manners(), Counts()
        self.host, self.port = host, port
        self.talks: set[asyncio.Task[None]] = set()
        self.thread: Thread | None = None

    @property
    def url(self) -> str:
        """Where it is, once it is there: a port of 0 has become a free one by then."""
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        """Begin to answer; OSError where the port is taken."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Answer no more."""
        self.stop()

    def start(self) -> None:
        """Begin to answer, after a stop at the port of before; OSError where that is taken."""
        started: Future[Callable[[], object]] = Future()
        thread = Thread(target=lambda: asyncio.run(self.serve(started)), name="scoring", daemon=True)
        thread.start()
        self.end = started.result()
        self.thread = thread

    def stop(self) -> None:
        """Close all connections, those that wait for an answer among them; nothing where it has stopped already."""
        if self.thread:
            self.end()
            self.thread.join()
            self.thread = None

    async def serve(self, started: Future[Callable[[], object]]) -> None:
        """Answer until what ``started`` gets is called."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = await asyncio.start_server(self.meet, self.host, self.port, backlog=1024)
        except OSError as error:
            return started.set_exception(error)
        self.port = server.sockets[0].getsockname()[1]
        started.set_result(lambda: loop.call_soon_threadsafe(over.set))
        await over.wait()
        server.close()
        for each in self.talks:
            each.cancel()
        await asyncio.gather(*self.talks, return_exceptions=True)
        return None

    def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk with a client."""
        talk = asyncio.get_running_loop().create_task(self.talk(reader, writer))
        self.talks.add(talk)
        talk.add_done_callback(self.talks.discard)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        goes_on = True
        try:
            while goes_on and (request := await read_request(reader)):
                reply = await self.answer(request)
                goes_on = reply is not None and request.keeps_open
                if reply is not None:
                    writer.write(reply.to_bytes(keeps_open=goes_on))
                    await writer.drain()
        except Unreadable as error:
            writer.write(refuse(error).to_bytes(keeps_open=False))
        except ConnectionError:
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def answer(self, request: Request) -> Reply | None:
        """Answer a request; None leaves it without an answer."""
        try:
            match request.method, request.path:
                case "POST", "/score":
                    return await self.score(read_asked(request.read_json()))
                case "GET", "/counts":
                    return Reply(self.counts.to_dict())
                case "POST", "/manners":
                    self.manners = self.manners.changed_by(read_settings(request.read_json()))
                    return Reply(asdict(self.manners))
                case "GET", "/manners":
                    return Reply(asdict(self.manners))
        except (Unreadable, BadRange) as error:
            return refuse(error)
        return Reply({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)

    async def score(self, requests: list[Asked]) -> Reply | None:
        """Answer a call after its time, with the manners that it began with; None while the service is away."""
        manners = self.manners
        if manners.away:
            return None
        self.counts.add(requests)
        fails = self.counts.fails(requests, manners)
        await asyncio.sleep(manners.seconds(requests))
        if self.manners.away:
            return None
        if fails:
            return Reply({"error": "try again"}, HTTPStatus.SERVICE_UNAVAILABLE)
        return Reply([manners.answer(each) for each in requests])


def refuse(error: Exception) -> Reply:
    """Return the reply to what cannot be read."""
    return Reply({"error": str(error)}, HTTPStatus.BAD_REQUEST)


def read_asked(said: Any) -> list[Asked]:
    """Return the requests of a call; Unreadable where one has no ``user`` and no ``amount`` of text."""
    if not isinstance(said, list):
        raise Unreadable("the body is no list of requests")
    for each in said:
        if not (
            isinstance(each, dict) and all(isinstance(each.get(name), str) for name in ("user", "amount"))
        ):
            raise Unreadable(f"a request needs a user and an amount, as text: {each!r}")
    return [Asked(each["user"], each["amount"]) for each in said]


def read_settings(said: Any) -> dict[str, Any]:
    """Return settings by name; Unreadable where they are not."""
    if not isinstance(said, dict):
        raise Unreadable("the body is no object of settings")
    return said
