"""Requests and replies of HTTP/1.1 with bodies of JSON, as far as a small service needs them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

LONGEST = 1 << 24
"""Bytes of the longest body that is read."""


class Unreadable(Exception):
    """What a client has sent is no request that this service reads."""


@dataclass(frozen=True)
class Request:
    """What a client has sent."""

    method: str
    """Such as ``POST``."""
    path: str
    """Such as ``/score``, without a query."""
    body: bytes
    """What follows the head."""
    keeps_open: bool
    """Whether another request may follow."""

    def read_json(self) -> Any:
        """Read the body; Unreadable where it is no JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"the body is no JSON: {error}") from None


@dataclass(frozen=True)
class Reply:
    """What a client gets."""

    content: Any
    """What is written as JSON."""
    status: HTTPStatus = HTTPStatus.OK
    """The status."""

    def to_bytes(self, *, keeps_open: bool) -> bytes:
        """Write it as HTTP does."""
        body = json.dumps(self.content).encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"Connection: {'keep-alive' if keeps_open else 'close'}\r\n\r\n"
        )
        return head.encode() + body


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read the next request; None where the client has gone. Unreadable for what is none, or too long."""
    try:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}
        method, target, version = read_first_line(first)
        body = await reader.readexactly(read_length(headers))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise Unreadable("the head is too long") from None
    wish = headers.get("connection", "keep-alive" if version == "HTTP/1.1" else "close").lower()
    return Request(method, target.partition("?")[0], body, wish == "keep-alive")


def read_first_line(line: str) -> tuple[str, str, str]:
    """Split the first line of a request; Unreadable where it is of another protocol."""
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise Unreadable("the first line is none of HTTP/1.1")
    return parts[0], parts[1], parts[2]


def read_length(headers: dict[str, str]) -> int:
    """Return the length of a body, 0 if there is none; Unreadable where nothing says it, or it is too long."""
    said = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (said.isascii() and said.isdigit()):
        raise Unreadable("a body needs a Content-Length")
    if len(said) > 12 or int(said) > LONGEST:
        raise Unreadable(f"the body has more than {LONGEST} bytes")
    return int(said)
