"""A registry of a test's own: it answers as Confluent's API does, and may be told to fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ABSENT = 404, {"error_code": 40403, "message": "Schema not found"}


class SmallRegistry:
    """Answers by path; what it has not is absent."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.url = ""

    def add(self, path: str, **answer: Any) -> None:
        """Answer a path by an object."""
        self.answers[path] = 200, answer

    @property
    def paths(self) -> list[str]:
        """The paths that were asked for, in their order."""
        return [path for path, _ in self.asked]


@contextmanager
def open_registry() -> Iterator[SmallRegistry]:
    """Run a registry on this machine."""
    made = SmallRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append((self.path, dict(self.headers)))
            code, answer = made.answers.get(self.path, ABSENT)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(code)
            if code == 302:
                self.send_header("Location", made.url + "/schemas/ids/1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
