"""A wire between clients and a server, with a delay: each reply arrives so much later, and requests are counted.

    python -m benchmarks.store_wire PORT

It is a process of its own. It copies bytes and looks at the beginning of each piece that a client sends, and so costs a
tenth of a millisecond a request. A number on its input, in seconds, is the delay from then on; an empty line asks for
the requests since the last one, as JSON: how many by kind, and as ROW how many were at most sent one after the reply to
another. So many delays are waited for, whatever else the machine does meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

ROW = "ROW"
REQUEST = re.compile(rb"(GET|PUT|HEAD|DELETE|POST) (\S+) HTTP/1\.1\r\n")
PIECE = 1 << 18


@dataclass(frozen=True)
class Wire:
    """The wire as a benchmark has it; ``port`` is where it listens on this machine."""

    port: int
    process: subprocess.Popen[str]

    def delay(self, seconds: float) -> None:
        """Let each reply arrive so much later from now on."""
        self.tell(str(seconds))

    def take_counts(self) -> Counter[str]:
        """Take the requests since the last call, by kind, and as ROW how many were in a row."""
        return Counter(json.loads(self.tell("")))

    def tell(self, line: str) -> str:
        """Tell the wire something; it says when it is done."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


@contextmanager
def wire_before(upstream: int) -> Iterator[Wire]:
    """Run a wire before a port of this machine while the block runs."""
    command = [sys.executable, "-m", "benchmarks.store_wire", str(upstream)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        try:
            yield Wire(int(process.stdout.readline()), process)
        finally:
            # It ends with the end of its input, and so with whoever has started it.
            process.stdin.close()


class Copying:
    """What the wire's process does."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.delay = 0.0
        self.counts: Counter[str] = Counter()
        self.row = 0

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy between a client and the server until both have ended."""
        line = Line(self, reader, writer, *await asyncio.open_connection("127.0.0.1", self.upstream))
        await asyncio.gather(line.copy_requests(), line.copy_replies(), line.send_when_due())

    def obey(self, line: str) -> str:
        """Do what a line of input says, and answer it."""
        if line.strip():
            self.delay = float(line)
            return ""
        taken = {**self.counts, ROW: self.row}
        self.counts, self.row = Counter(), 0
        return json.dumps(taken)


class Line:
    """One connection of a client's."""

    def __init__(
        self,
        wire: Copying,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        self.wire = wire
        self.client, self.to_client, self.server, self.to_server = client, to_client, server, to_server
        self.place = 0
        self.pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def copy_requests(self) -> None:
        """Copy what the client sends, and count what begins a request."""
        with suppress(ConnectionError):
            while data := await self.client.read(PIECE):
                if found := REQUEST.match(data):
                    kind = "LIST" if found[1] == b"GET" and b"list-type" in found[2] else found[1].decode()
                    self.wire.counts[kind] += 1
                    self.place = self.wire.row + 1
                self.to_server.write(data)
                await self.to_server.drain()
        self.to_server.close()

    async def copy_replies(self) -> None:
        """Keep what the server sends until it is due."""
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while data := await self.server.read(PIECE):
                self.pieces.put_nowait((loop.time() + self.wire.delay, data))
        self.pieces.put_nowait((0.0, b""))

    async def send_when_due(self) -> None:
        """Send replies in order, each when it is due."""
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            while (piece := await self.pieces.get())[1]:
                if (wait := piece[0] - loop.time()) > 0:
                    await asyncio.sleep(wait)
                self.wire.row = max(self.wire.row, self.place)
                self.to_client.write(piece[1])
                await self.to_client.drain()
        self.to_client.close()


async def serve(upstream: int) -> None:
    """Copy until the input ends; the port is the first line of output."""
    copying = Copying(upstream)
    server = await asyncio.start_server(copying.connect, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(copying.obey(line), flush=True)
    # Connections that are still open end with it.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
