"""Parts of a page that are kept: what was never read comes first, and a request reads no longer than it may."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seamline.model.errors import TooSlow
from seamline.web.glance.kept_parts import LOOKED_AT, WITHIN, KeptParts, Part


class Clock:
    """Time that passes as reads take it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def reading(clock: Clock, took: float) -> tuple[KeptParts[str, int], list[str]]:
    """Make parts whose reads take so long, and the list of what was read; the thread is not started."""
    read: list[str] = []

    def load(key: str, before: int | None) -> int:
        clock.now += took
        read.append(key)
        return len(read)

    kept = KeptParts(load, lambda key: 5.0, clock)
    kept.go_on = lambda: None  # type: ignore[method-assign]
    return kept, read


def test_a_request_reads_what_is_missing_for_so_long_only() -> None:
    """What it has no time for is missing from the answer, and the first of the next."""
    clock = Clock()
    kept, read = reading(clock, WITHIN / 2)
    assert [*kept.show("abcd")] == ["a", "b"]
    assert [*kept.show("abcd")] == ["a", "b", "c", "d"]
    assert read == ["a", "b", "c", "d"]


def test_a_thread_that_ends_just_now_is_not_at_work() -> None:
    """It takes itself away between two looks at it: a request that came then was answered 500."""

    class Ending(KeptParts[str, int]):
        """One whose thread is gone at the second look."""

        @property
        def thread(self) -> threading.Thread | None:
            self.looks += 1
            return threading.Thread() if self.looks == 1 else None

        @thread.setter
        def thread(self, _: object) -> None:
            self.looks = 0

    assert not Ending(lambda key, before: 1, lambda key: 5.0).is_at_work


def test_what_is_new_is_not_read_again() -> None:
    """Until it is due; then the oldest is read first."""
    clock = Clock()
    kept, read = reading(clock, 0.1)
    kept.show("ab")
    clock.now += 4
    kept.show("ab")
    assert read == ["a", "b"]
    clock.now += 3
    assert kept.show("ab")["a"].value == 3
    assert read == ["a", "b", "a", "b"]


def test_what_nobody_looks_at_is_forgotten() -> None:
    """Pages that are closed cost nothing."""
    clock = Clock()
    kept, _ = reading(clock, 0.01)
    kept.show("ab")
    clock.now += LOOKED_AT / 2
    kept.show("b")
    assert kept.list_looked_at() == ["a", "b"]
    clock.now += LOOKED_AT * 0.6
    assert kept.list_looked_at() == ["b"]
    assert [*kept.parts] == ["b"]
    clock.now += LOOKED_AT
    assert kept.list_looked_at() == [] and not kept.parts


def test_a_thread_reads_the_rest_and_ends() -> None:
    """It goes on after the request, until nobody looks any more."""
    clock, done = Clock(), threading.Event()

    def load(key: str, before: str | None) -> str:
        clock.now += WITHIN * 2
        if key == "c":
            # Nobody looks from now on.
            clock.now += 2 * LOOKED_AT
            done.set()
        return key

    kept = KeptParts(load, lambda key: 1000.0, clock, lambda _: None)
    assert [*kept.show("abc")] == ["a"]
    assert done.wait(30)
    if (thread := kept.thread) is not None:
        thread.join(30)
    assert not kept.parts and kept.thread is None


def test_a_request_leaves_what_takes_long_to_the_thread() -> None:
    """Once it is known to: a page that somebody looks at would wait for it each time."""
    clock = Clock()
    kept, read = reading(clock, WITHIN * 2)
    kept.show("a")
    clock.now += 60
    began = clock.now
    assert kept.show("a")["a"].value == 1
    assert (read, clock.now) == (["a"], began)
    assert kept.find_overdue("a") == "a"


def test_what_takes_longer_than_a_request_may_keeps_nobody_from_the_page() -> None:
    """It is left to the thread, which has the time: as the first of the next request it would be broken off again."""
    clock, read = Clock(), threading.Event()
    requests = threading.current_thread()

    def load(key: str, _: str | None) -> str:
        if key == "slow" and threading.current_thread() is requests:
            raise TooSlow("There was no answer within 30 s.", hint="retry later.")
        if key == "slow":
            clock.now += 2 * LOOKED_AT
            read.set()
        return key

    kept = KeptParts(load, lambda key: 1000.0, clock, lambda _: None)
    assert not kept.show(["slow", "quick"])
    assert read.wait(30)
    if (thread := kept.thread) is not None:
        thread.join(30)
    assert kept.thread is None


def test_requests_read_nothing_while_the_thread_reads_by_another() -> None:
    """The reader is opened for the thread alone, and closed once nobody looks."""
    clock, asked, go, closed = Clock(), threading.Event(), threading.Event(), threading.Event()

    @contextmanager
    def open_reader() -> Iterator[Callable[[str, str | None], str]]:
        yield read
        closed.set()

    def read(key: str, before: str | None) -> str:
        asked.set()
        assert go.wait(30)
        clock.now += 2 * LOOKED_AT
        return f"another's {key}"

    def load(key: str, before: str | None) -> str:
        clock.now += WITHIN * 2
        return f"own {key}"

    kept = KeptParts(load, lambda key: 1000.0, clock, lambda _: None, open_reader)
    assert kept.show("ab") == {"a": Part("own a", 100.0, WITHIN * 2)}
    assert asked.wait(30)
    assert [*kept.show("abc")] == ["a"]
    go.set()
    assert closed.wait(30)
