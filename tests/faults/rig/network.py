"""A network between clients and one server, which can be cut: then nothing arrives, and nobody is told."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from types import TracebackType

CHUNK = 65_536


class Network:
    """Carries every connection to ``port`` on to ``server`` on the loopback, but while it is ``cut``."""

    def __init__(self, port: int, server: int) -> None:
        self.server = server
        self.whole = threading.Event()
        self.whole.set()
        self.held_back = 0
        self.over = False
        self.listener = socket.create_server(("127.0.0.1", port), backlog=64)

    def __enter__(self) -> Network:
        threading.Thread(target=self._accept, name="network", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over = True
        self.whole.set()
        self.listener.close()

    def cut(self) -> None:
        """Let nothing through from now on; connections stay open at both ends, as after a cable was pulled."""
        self.held_back = 0
        self.whole.clear()

    def mend(self) -> None:
        """Let everything through again, what has waited too."""
        self.whole.set()

    def _accept(self) -> None:
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            self._wait()
            with socket.create_connection(("127.0.0.1", self.server)) as server:
                ways = {client: server, server: client}
                while not self.over:
                    for source in select.select(list(ways), [], [], 1.0)[0]:
                        self._wait()
                        data = source.recv(CHUNK)
                        if not data:
                            return
                        self._wait()
                        ways[source].sendall(data)

    def _wait(self) -> None:
        if not self.whole.is_set():
            self.held_back += 1
            self.whole.wait()


def wait_out(seconds: float) -> None:
    """Let a fault last: the time itself is the fault."""
    time.sleep(seconds)
