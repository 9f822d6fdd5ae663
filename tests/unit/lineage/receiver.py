"""A server that takes events of OpenLineage over HTTP, and reads each strictly by the official client's classes."""

from __future__ import annotations

import json
import threading
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attr
import jsonschema
from openlineage.client import facet_v2
from openlineage.client.event_v2 import RunEvent
from openlineage.client.generated.base import BaseFacet

from seamline.lineage import own_facets

SCHEMAS = Path(own_facets.__file__).parent / "schemas"
assert facet_v2


class Received:
    """The events that a server has taken, and how it answers the next."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self.answer: Callable[[], int] = lambda: 201
        self.port = 0

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def states(self) -> list[str]:
        """What each event says of its run."""
        return [each["eventType"] for each in self.events]

    def take(self, body: bytes) -> int:
        """Take an event, if it is to be taken; return the status."""
        status = self.answer()
        if status >= 400:
            return status
        try:
            event = json.loads(body)
            check_event(event)
            self.events.append(event)
        except Exception as error:  # noqa: BLE001 - a wrong event is what a test looks for
            self.problems.append(f"{type(error).__name__}: {error}")
        return status


@contextmanager
def receive() -> Iterator[Received]:
    """Serve on a port of its own; no event may be wrong."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/api/v1/lineage"
            self.send_response(received.take(body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield received
        assert not received.problems, received.problems
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def check_event(event: Mapping[str, Any]) -> None:
    """Read an event by the client's classes: no other field, none of another type, none that lacks."""
    read_strictly(RunEvent, event, "event")
    assert event["producer"].startswith("pkg:pypi/seamline@")


def read_strictly(form: Any, value: Any, place: str) -> Any:
    """Read a value as a type of the client's says; facets are of the class that has their schema's address."""
    origin, inner = typing.get_origin(form), typing.get_args(form)
    if origin in (types.UnionType, typing.Union):
        return read_strictly(next(each for each in inner if each is not type(None)), value, place)
    if origin is dict:
        assert isinstance(value, dict), f"{place} is no object"
        return {name: read_strictly(inner[1], each, f"{place}.{name}") for name, each in value.items()}
    if origin is list:
        assert isinstance(value, list), f"{place} is no list"
        return [read_strictly(inner[0], each, f"{place}[{at}]") for at, each in enumerate(value)]
    if not attr.has(form):
        if isinstance(form, type) and issubclass(form, Enum):
            return form(value)
        assert form is Any or isinstance(value, form), f"{place} is {value!r}, no {form}"
        return value
    return read_object(form, value, place)


def read_object(form: Any, value: Any, place: str) -> Any:
    """Read an object of one of the client's classes."""
    if issubclass(form, BaseFacet):
        known = {name_schema(each._get_schema()): each for each in list_classes(form)}
        url = name_schema(value["_schemaURL"])
        assert url in known, f"{place} is of {url}, which no {form.__name__} is"
        form = known[url]
        if url.startswith("seamline/lineage/schemas/"):
            schema = json.loads((SCHEMAS / Path(url).name).read_text())
            jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(value)
    hints = typing.get_type_hints(form)
    fields = {each.name: each for each in attr.fields(form)}
    assert value.keys() <= fields.keys(), f"{place} has {sorted(value.keys() - fields.keys())}"
    found = {name: read_strictly(hints[name], each, f"{place}.{name}") for name, each in value.items()}
    return form(**{fields[name].alias: each for name, each in found.items() if fields[name].init})


def name_schema(url: str) -> str:
    """Name a schema by its address; of ours the file alone, as an edited tree is of another version."""
    package, _, file = url.partition("#")
    return file if package.startswith("pkg:") else url


def list_classes(form: type) -> Iterator[Any]:
    """List a class and all that are made from it."""
    yield form
    for each in form.__subclasses__():
        yield from list_classes(each)
