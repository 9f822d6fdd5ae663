"""Threads for what an epoch commits: a view's slices beside another's, and in a bucket what no rule puts in a row."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, ParamSpec, TypeVar

from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.lake.store.side_by_side import commits_at_once

P = ParamSpec("P")
T = TypeVar("T")


class CommitThreads:
    """The threads of one writer into one warehouse."""

    def __init__(self, warehouse: Location) -> None:
        self.early = not is_asking_free(warehouse)
        self.pool = ThreadPoolExecutor(commits_at_once(warehouse), thread_name_prefix="commit")
        self.begun: list[Future[Any]] = []

    def submit(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do something beside what follows."""
        return self.pool.submit(act, *args, **kwargs)

    def begin(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        """Begin something beside what follows where it waits for a store; what is returned ends it.

        On disk it is done by then, and not before: threads would cost more than they gain.
        """
        if not self.early:
            return lambda: act(*args, **kwargs)
        self.begun.append(self.pool.submit(act, *args, **kwargs))
        return self.begun[-1].result

    def settle(self) -> None:
        """Wait until all that was begun has come to an end: nothing may land once tables are looked at again."""
        wait(self.begun)
        self.begun.clear()

    def close(self) -> None:
        """Wait until all that was begun has come to an end, and end the threads."""
        self.pool.shutdown()
