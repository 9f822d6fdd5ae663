"""Calls side by side, each by its name: what hangs holds up none of the others, and is not called again meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial


class SideCalls:
    """Threads of what others have written. They end with the process: nobody can end a thread that hangs."""

    def __init__(self) -> None:
        self.running: set[Hashable] = set()

    def is_running(self, name: Hashable) -> bool:
        """Return whether the last call by a name has not returned."""
        return name in self.running

    def start(self, name: Hashable, call: Callable[[], object]) -> Future[None]:
        """Call something in a thread, with the caller's context variables."""
        done = Future[None]()
        self.running.add(name)
        run = partial(self.run, name, partial(copy_context().run, call), done)
        threading.Thread(target=run, name=str(name), daemon=True).start()
        return done

    def run(self, name: Hashable, call: Callable[[], object], done: Future[None]) -> None:
        """Call, and hand on how it ended."""
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - it is raised where the call is waited for
            self.running.discard(name)
            done.set_exception(error)
        else:
            self.running.discard(name)
            done.set_result(None)
