"""What is asked of a store: requests by kind, counted as the code sends them, and their price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

from benchmarks.scale.units import Units
from seamline.lake.storage.table_settings import CHECKPOINT_EVERY, SETTINGS
from seamline.lake.store.fetched_files import FETCHING
from seamline.lake.store.side_by_side import IN_BUCKET

Requests = Mapping[str, float]
CHECKPOINT = int(SETTINGS[CHECKPOINT_EVERY])
MONTH = 30.4 * 86_400
PAGE = 1000
"""Names that a store lists at once."""
WRITING_KINDS = ("PUT", "LIST", "POST")
TABLES_OF_AN_ANSWER = 6
"""Master, ledger, slices, manifest, generations, and the control table: each is asked for its next version."""
TRIPS_TO_READERS = 3
"""A slice's file, its commit, the master's commit: one after another, whatever the number of views."""


def epoch_tables(views: int) -> int:
    """Count the tables that an epoch commits to: slices of each view, the master, the ledger."""
    return views + 2


def count_epoch(views: int, tasks: int, units: Units, *, refused: bool = False) -> Requests:
    """Count an epoch's requests with its share of checkpoints: a file and a commit of each table."""
    tables = epoch_tables(views)
    commits = tables + refused
    files = views + 1 + tasks + tasks * refused
    share = commits / CHECKPOINT
    return {
        "PUT": commits + files + share * 2,
        "GET": share * units["checkpoint.gets"],
        "LIST": share * 2,
        "HEAD": share,
    }


def count_beside(views: int, serve_every: float, units: Units) -> Requests:
    """Count the requests of a second that a stream sends whether it reads or not; serving tables are among them."""
    found: Counter[str] = Counter()
    for name, every in (("lease", 5.0), ("words", 5.0), ("look", 5.0), ("watch", 15.0)):
        for kind in ("GET", "PUT"):
            found[kind] += units[f"{name}.{kind.lower()}"] / every
    for kind in ("GET", "PUT", "LIST", "HEAD"):
        found[kind] += views * units[f"serving.{kind.lower()}"] / serve_every
    return found


def commit_trips(views: int) -> int:
    """Count the round trips in a row from an epoch's states to its readers: threads take so many views at once."""
    return 2 * ceil(views / IN_BUCKET) + (TRIPS_TO_READERS - 2)


def listing_trips(entries: float) -> int:
    """Count the requests in a row that list a log."""
    return max(1, ceil(entries / PAGE))


def fetching_trips(files: float) -> int:
    """Count the turns in which threads fetch files."""
    return ceil(files / FETCHING.at_once)


def dollars_a_month(per_second: Requests, units: Units) -> float:
    """Price the requests of a second for a month, at list prices; to delete costs nothing."""
    writing = sum(per_second.get(kind, 0.0) for kind in WRITING_KINDS)
    reading = sum(per_second.get(kind, 0.0) for kind in ("GET", "HEAD"))
    return MONTH * (writing * units["price.put"] + reading * units["price.get"]) / 1e6
