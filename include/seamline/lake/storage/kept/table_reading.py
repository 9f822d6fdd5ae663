"""Several tables that somebody reads one after the other: in a bucket they are asked for their news side by side.

What is read later must be as of no earlier than what was read before it had landed (rule 11). Each table says when
somebody began to ask it for news and found none (``asked``), and by when the version that is seen had landed
(``moved``). So a table that was asked after what was read before it had landed need not be asked again, and tables that
are asked at once, and have nothing new, are as of one instant.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from deltalake.exceptions import DeltaError

from seamline.lake.storage.kept.cached_table import ALWAYS, CachedTable, find_cached_table, is_known_since
from seamline.lake.storage.log_follower import since_boot
from seamline.lake.storage.synced_log import locate_table_file
from seamline.lake.store.fetched_files import fetch_ahead
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.lake.store.side_by_side import Threads
from seamline.model.errors import SeamlineError
from seamline.model.recent import Recent

ROUNDS = 4
"""How often tables are asked side by side while some of them move; after that one by one."""
AHEAD = frozenset({"slices"})
"""Tables of which whoever reads them needs what is new: its files are fetched while the others are asked."""
SMALL, MANY = 1 << 20, 16
"""Bytes of such a file, and how many of one commit."""
ASKING = Threads("ask", 16)


@dataclass
class Reading:
    """What somebody who reads expects of the next table, and what was read so far."""

    since: float
    """What had landed by this instant is seen, in seconds since the machine was started."""
    before: Collection[Location] = ()
    """Tables that the same question was answered from before."""
    read: set[Location] = field(default_factory=set)
    """Tables so far, and those that were not there."""
    held: set[Location] = field(default_factory=set)
    """Those of them that were there."""
    asked: float = ALWAYS
    """When the one of them that was asked longest ago was asked for news; those on disk are asked by each look."""

    def note(self, held: CachedTable) -> None:
        """Expect of the tables that follow that they are as of no earlier than what was read of this one."""
        self.read.add(held.table.root)
        self.held.add(held.table.root)
        self.since = max(self.since, held.moved)
        if not is_asking_free(held.table.root):
            self.asked = min(self.asked, held.asked)

    @property
    def seen_at(self) -> datetime | None:
        """The instant of ``asked``, by the clock on the wall; None where nothing is in a bucket."""
        if self.asked == ALWAYS:
            return None
        return datetime.now(UTC) - timedelta(seconds=since_boot() - self.asked)

    def ask(self) -> None:
        """Ask the tables of before for their news side by side, again while some of them move."""
        for _ in range(ROUNDS):
            due = [root for root in self.before if not is_known_since(root, self.since)]
            if not due:
                return
            found = ASKING.map(ask_table, due)
            since = max([self.since, *(held.moved for held in found if held)])
            if since == self.since:
                return
            self.since = since


_current: ContextVar[Reading | None] = ContextVar("reading", default=None)
_before: Recent[Hashable, frozenset[Location]] = Recent(1_024)
"""By question, the tables in a bucket that it was answered from."""


def current_reading() -> Reading | None:
    """Return what this thread reads; None where it reads a table alone, at its newest version."""
    return _current.get()


def ask_table(root: Location) -> CachedTable | None:
    """Ask a table for its next version; what is wrong with it is said where it is read."""
    with suppress(DeltaError, OSError, SeamlineError):
        held = find_cached_table(root)
        if held is not None:
            news = held.ask_next()
            if news and root.name in AHEAD:
                small = [add["path"] for add in news.adds if add["size"] <= SMALL]
                fetch_ahead(locate_table_file(root, name) for name in small[:MANY])
        return held
    return None


@contextmanager
def read_side_by_side(question: Hashable, *, max_age: float = 0.0) -> Iterator[Reading]:
    """Have the block see what had landed when it began, or ``max_age`` seconds before that, and maybe more.

    The tables of the last time that the same question was asked are asked at once. Within such a block it is that one.
    """
    if (outer := _current.get()) is not None:
        yield outer
        return
    reading = Reading(since_boot() - max_age, _before.get(question) or ())
    reset = _current.set(reading)
    try:
        reading.ask()
        yield reading
        if found := frozenset(root for root in reading.read if not is_asking_free(root)):
            _before[question] = found
    finally:
        _current.reset(reset)


def expect_news() -> None:
    """Have what this thread reads be as of now: what was seen so far did not fit together."""
    if (reading := _current.get()) is not None:
        reading.since = since_boot()
