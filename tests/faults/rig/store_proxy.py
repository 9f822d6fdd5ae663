"""A proxy in front of a server that speaks S3, which does to requests what networks and stores do.

It is a process of its own: clients of stores hold the interpreter's lock while they wait. Whatever it does is counted,
so that a trial can show that it was struck.
"""

from __future__ import annotations

import http.client
import json
import re
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SKIPPED = ("transfer-encoding", "connection", "content-length")
CONTROL = "/-/"
"""What a path begins with that is for the proxy itself: no bucket is called so."""
SOONER = 0.1
"""Seconds before a late request is done at which the last client is sent away."""
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
CONFLICT = b"<Error><Code>ConditionalRequestConflict</Code><Message>Try again.</Message></Error>"


class Trouble(StrEnum):
    """What befalls a request."""

    LOST_REPLY = "lost reply"
    """It is done, and nobody hears of it."""
    REFUSED = "refused"
    """The connection is closed before anything is done."""
    CONFLICT = "409"
    """The store says that another request is in the way, and does nothing."""
    SLOW_DOWN = "503"
    """The store is busy, and does nothing."""
    LATE = "late"
    """The client has given up when it is done."""
    TRUNCATED = "truncated"
    """The body ends too early."""
    STALLED = "stalled"
    """Nothing is done, and nobody says so."""


@dataclass
class Fault:
    """A trouble for the next ``times`` requests that are meant."""

    trouble: Trouble
    """What befalls them."""
    method: str
    """The method of those that are meant, as a regular expression."""
    path: str
    """What is found in their paths, likewise."""
    times: int
    """How often it strikes."""
    seconds: float
    """How late a late request is done, and how long a stalled one is kept."""
    held: bool = False
    """Whether the connection of a late request stays open until it is done, so that its client gives up by itself."""
    label: str = ""
    """By what it is counted, beside its trouble."""

    def is_meant(self, method: str, path: str) -> bool:
        """Return whether it may strike a request."""
        return bool(self.times and re.fullmatch(self.method, method) and re.search(self.path, path))


@dataclass
class Answer:
    """What the proxy answers itself to the next ``times`` requests that are meant, of which the store hears nothing."""

    status: int
    """The status."""
    body: str
    """The body."""
    headers: dict[str, str]
    """The headers."""
    method: str
    """The method of those that are meant, as a regular expression."""
    path: str
    """What is found in their paths, likewise."""
    times: int
    """How often it answers."""
    label: str = ""
    """By what it is counted, beside its status."""

    def is_meant(self, method: str, path: str) -> bool:
        """Return whether it may answer a request."""
        return bool(self.times and re.fullmatch(self.method, method) and re.search(self.path, path))


def describe_refusal(code: str, **more: str) -> str:
    """Write a refusal as S3 does."""
    fields = {"Code": code, "Message": f"{code}, in words.", **more}
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inner}</Error>'


@dataclass(frozen=True)
class StoreProxy:
    """The proxy as a test has it; ``port`` is where it listens on this machine."""

    port: int

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def strike(
        self,
        trouble: Trouble,
        path: str,
        *,
        method: str = ".*",
        times: int = 1,
        seconds: float = 1.0,
        held: bool = False,
        label: str = "",
    ) -> None:
        """Have a trouble befall the next requests that are meant."""
        self.ask("strike", **asdict(Fault(trouble, method, path, times, seconds, held, label)))

    def answer(
        self,
        status: int,
        body: str = "",
        path: str = "",
        *,
        method: str = ".*",
        headers: dict[str, str] | None = None,
        times: int = 1_000_000,
    ) -> None:
        """Answer the next requests that are meant in the store's place; by default all, until it is cleared."""
        self.ask("answer", **asdict(Answer(status, body, headers or {}, method, path, times)))

    def clear(self) -> None:
        """Leave requests alone from now on, and wait for what is done late."""
        self.ask("clear")

    def settle(self, path: str) -> None:
        """Wait for what is done late, of requests in whose path this text is."""
        self.ask("settle", path=path)

    def forget(self, label: str = "") -> None:
        """Leave alone the requests that nothing has befallen yet, or that nothing of a label has."""
        self.ask("forget", label=label)

    @property
    def struck(self) -> Counter[str]:
        """How often each trouble has befallen a request, and what has each label."""
        return Counter(self.ask("struck"))

    @property
    def seen(self) -> list[tuple[str, str]]:
        """Every request so far: its method and its path."""
        return [(method, path) for method, path in self.ask("seen")]

    def ask(self, what: str, **told: Any) -> Any:
        """Ask the proxy itself."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as proxy:
            proxy.request("POST", f"{CONTROL}{what}", json.dumps(told))
            return json.loads(proxy.getresponse().read())


@contextmanager
def proxy_before(upstream: int, *, delay: float = 0.0) -> Iterator[StoreProxy]:
    """Run a proxy before a port of this machine while the block runs; ``delay`` is added to each reply, in seconds."""
    command = [sys.executable, "-m", "tests.faults.rig.store_proxy", str(upstream), str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            yield StoreProxy(int(process.stdout.readline()))
        finally:
            # It ends with the end of its input, and so with whoever has started it.
            process.stdin.close()
            process.wait()


class Passing:
    """What the proxy's process does with requests."""

    def __init__(self, upstream: int, delay: float) -> None:
        self.upstream, self.delay = upstream, delay
        self.lock = threading.Lock()
        self.faults: list[Fault | Answer] = []
        self.struck: Counter[str] = Counter()
        self.seen: list[tuple[str, str]] = []
        self.later: list[tuple[str, threading.Thread]] = []

    def control(self, what: str, told: dict[str, Any]) -> object:
        """Do what a test asks of the proxy itself."""
        with self.lock:
            match what:
                case "strike":
                    self.faults.append(Fault(**{**told, "trouble": Trouble(told["trouble"])}))
                case "answer":
                    self.faults.append(Answer(**told))
                case "clear":
                    self.faults.clear()
                case "forget":
                    self.faults = [each for each in self.faults if told["label"] not in ("", each.label)]
                case "struck":
                    return dict(self.struck)
                case "seen":
                    return list(self.seen)
        for path, each in list(self.later) if what in ("clear", "settle") else ():
            if told.get("path", "") in path:
                each.join()
        return None

    def find_fault(self, method: str, path: str) -> Fault | Answer | None:
        """Take what befalls a request; None if it is left alone."""
        with self.lock:
            self.seen.append((method, path))
            for each in self.faults:
                if each.is_meant(method, path):
                    each.times -= 1
                    self.struck[str(each.status) if isinstance(each, Answer) else each.trouble] += 1
                    if each.label:
                        self.struck[each.label] += 1
                    return each
        return None

    def pass_on(self, handler: BaseHTTPRequestHandler) -> None:
        """Do what a request asks for, or what befalls it."""
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        if handler.path.startswith(CONTROL):
            found = self.control(handler.path.removeprefix(CONTROL), json.loads(body))
            reply(handler, 200, {}, json.dumps(found).encode())
            return
        time.sleep(self.delay)
        fault = self.find_fault(handler.command, handler.path)
        if isinstance(fault, Answer):
            reply(handler, fault.status, fault.headers, fault.body.encode())
            return
        asked = (handler.command, handler.path, dict(handler.headers), body)
        match fault.trouble if fault else None:
            case Trouble.CONFLICT:
                reply(handler, 409, {}, CONFLICT)
            case Trouble.SLOW_DOWN:
                reply(handler, 503, {}, SLOW_DOWN)
            case Trouble.TRUNCATED:
                status, headers, whole = self.send(*asked)
                reply(handler, status, headers, whole, cut=len(whole) // 2)
                handler.close_connection = True
            case None:
                reply(handler, *self.send(*asked))
            case silent:
                assert fault
                self.keep_silent(silent, fault, asked)
                if fault.held:
                    # Readable is a connection whose client has closed it: it sends nothing before it was answered.
                    select.select([handler.connection], [], [], max(0.0, fault.seconds - SOONER))
                handler.close_connection = True

    def keep_silent(self, trouble: Trouble, fault: Fault, asked: tuple[Any, ...]) -> None:
        """Do, or do not do, what is asked for, and answer nothing."""
        if trouble is Trouble.LOST_REPLY:
            self.send(*asked)
        elif trouble is Trouble.LATE:
            late = threading.Timer(fault.seconds, self.send, asked)
            late.daemon = True
            self.later.append((asked[1], late))
            late.start()
        elif trouble is Trouble.STALLED:
            time.sleep(fault.seconds)

    def send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask the server; its host is named as the client has named it, which is signed."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=30)) as server:
            server.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                server.putheader(name, value)
            server.endheaders(body or None)
            found = server.getresponse()
            return found.status, dict(found.getheaders()), found.read()


def reply(
    handler: BaseHTTPRequestHandler,
    status: int,
    headers: dict[str, str],
    body: bytes,
    *,
    cut: int | None = None,
) -> None:
    """Answer the client; ``cut`` says after how many bytes the answer breaks off."""
    handler.send_response_only(status)
    for name, value in headers.items():
        if name.lower() not in SKIPPED:
            handler.send_header(name, value)
    described = {name.lower(): value for name, value in headers.items()}.get("content-length", "0")
    handler.send_header("Content-Length", described if handler.command == "HEAD" else str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body if cut is None else body[:cut])


def serve(upstream: int, delay: float) -> None:
    """Pass requests on until the input ends; the port is the one line of output."""
    passing = Passing(upstream, delay)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # A reply is sent as it is written: its end would wait 40 ms for the client's word about its beginning.
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def do_GET(self) -> None:
            passing.pass_on(self)

        do_PUT = do_HEAD = do_DELETE = do_POST = do_GET  # noqa: N815

        def log_message(self, *told: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        # Many clients knock at once; whom the kernel turns away, no trial has struck.
        request_queue_size = 256
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
