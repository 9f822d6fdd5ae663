"""The version of the tables' format: on the manifest from its first commit, and brought up to date step by step.

A ``txn`` action carries it, which survives log clean-up. What was made before there were versions is of the first.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.claims_table import claim_intervals
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.manifest_table import APP, FORMAT, STAMP
from seamline.lake.tables.occupied_places import require_free_place, require_no_log_elsewhere
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.errors import NotFound, OtherFormat
from seamline.model.time.intervals import Interval
from seamline.runtime.processes import own_process_name

FIRST = 1
RENEWED_EVERY = 5.0
"""Seconds between two renewals of the stream's lease."""
ALWAYS = Interval(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))


@dataclass(frozen=True)
class Step:
    """A migration of a pipeline's tables by one format version."""

    to: int
    """The version after the step."""
    name: str
    """What it does, for the log."""
    do: Callable[[Layout], None]
    """May be interrupted and run again."""


STEPS: tuple[Step, ...] = ()
"""In their order, one for each version after the first."""


def format_of(layout: Layout) -> int | None:
    """Return the format of a pipeline's tables; None if it has none yet."""
    return read_cached_table(layout.table("manifest"), STAMP, lambda table: table.txn(STAMP) or FIRST)


def require_format(layout: Layout) -> Layout:
    """Return the tables' places if this release can use what is there; OtherFormat if not.

    SetupError if nothing is there, and the place is inside of a table that is somebody else's.
    """
    found = format_of(layout)
    if found is None:
        require_free_place(layout)
        require_no_log_elsewhere(layout)
        return layout
    if found == FORMAT:
        return layout
    newer = found > FORMAT
    raise OtherFormat(
        f"The tables of {layout.pipeline} have format {found}, but this release uses format {FORMAT}.",
        hint="use the release that wrote them, or a newer one."
        if newer
        else f"run `seamline migrate {layout.pipeline}`.",
    )


def migrate(layout: Layout, *, actor: str) -> list[str]:
    """Bring a pipeline's tables to this release's format; return the names of the steps that were done.

    Raises LeaseHeld while the stream runs and IntervalRunning while a build does, and keeps both from beginning;
    NotFound if there are no tables, OtherFormat if they are of a newer format. The version rises after each
    step, so one that is cut short is done again.
    """
    if (found := format_of(layout)) is None:
        raise NotFound(f"{layout.pipeline} has no tables yet.", hint="there is nothing to migrate.")
    if found > FORMAT:
        require_format(layout)
    control, run = ControlTable.ensure(layout), f"migrate-{uuid.uuid4().hex[:6]}"
    lease = control.take(f"{run} by {actor}", process=own_process_name(), now=datetime.now(UTC))
    beside = ControlTable.ensure(layout)
    try:
        with (
            keep_renewing(lambda: beside.try_renew(lease), RENEWED_EVERY),
            claim_intervals(layout, run, actor, [ALWAYS]),
        ):
            done = []
            for step in list_missing_steps(STEPS, found):
                control.renew(lease, now=datetime.now(UTC))
                step.do(layout)
                write_format_version(layout, step.to)
                done.append(step.name)
            return [*done, *stamp_unversioned_tables(layout)]
    finally:
        control.release(lease)


def list_missing_steps(steps: Sequence[Step], found: int) -> list[Step]:
    """List the steps that tables of a version lack."""
    return [step for step in steps if step.to > found]


def stamp_unversioned_tables(layout: Layout) -> list[str]:
    """Write the version on tables that were made before there were versions."""
    if Table.open(layout.table("manifest")).txn(STAMP) is not None:
        return []
    write_format_version(layout, FORMAT)
    return [f"the version {FORMAT} is written on the tables"]


def write_format_version(layout: Layout, version: int) -> None:
    """Write a version on the tables."""
    table = Table.open(layout.table("manifest"))
    table.append([], txns={STAMP: version, APP: table.version + 1})
