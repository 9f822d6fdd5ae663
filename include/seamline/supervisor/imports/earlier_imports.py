"""What earlier imports have taken, and what a plan of another one should say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from seamline.lake.imports.history_facts import History
from seamline.lake.imports.import_plans import (
    ImportPlan,
    load_plans,
)
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.imported.imports import (
    Import,
    find_taken_places,
    list_open_imports,
)
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.import_plan import (
    list_taken_rows,
)


@dataclass(frozen=True)
class EarlierImports:
    """The imports that there were when one was planned."""

    log: Sequence[Epoch]
    """The log, condensed."""
    known: tuple[Import, ...]
    """The imports that are listed."""
    plans: tuple[ImportPlan, ...]
    """The plans of all whose rows are or will be read."""
    rows: Mapping[tuple[str, str], int]
    """How many rows of each file these are, by the file's identity."""

    @property
    def done(self) -> tuple[str, ...]:
        """The ids of the listed imports of which nothing is left to be done."""
        open_ = {each.id for each in list_open_imports(self.log, self.known)}
        return tuple(each.id for each in self.known if each.id not in open_)


def read_earlier_imports(layout: Layout) -> EarlierImports:
    """Read what the log, the control table and the plans say of imports.

    BadRange while a cancelled one is not closed, NotFound if a plan is lost.
    """
    known, log = ControlTable.ensure(layout).read().imports, read_condensed_log(layout)
    taken = find_taken_places(log, known)
    plans = load_plans(layout, taken)
    rows = list_taken_rows({id: plan.files for id, plan in plans.items()}, taken)
    return EarlierImports(log, known, tuple(plans.values()), rows)


def list_plan_notes(history: History, plans: Iterable[ImportPlan], until: datetime | None) -> Iterator[str]:
    """Say which files another import has read under another name, and what earlier ones have left to the topic."""
    mine = {each.mark: each.name for each in history.files}
    for each in history.gone:
        yield f"{each.path} was deleted: those of its rows that a cancelled import has left cannot be imported any more"
    for plan in plans:
        theirs = {each.file.mark: each.file.name for each in plan.files}
        again = sorted(mine[mark] for mark in mine.keys() & theirs.keys() if mine[mark] != theirs[mark])
        if again:
            others = f" and {len(again) - 1} other files" if len(again) > 1 else ""
            yield (
                f"{again[0]}{others}: import {plan.id} has read the same content as "
                f"{theirs[find_mark(mine, again[0])]}; without an event id these rows will count twice"
            )
        same = (history.table_id and plan.table_id == history.table_id) or mine.keys() & theirs.keys()
        if same and plan.options.until and (until is None or until > plan.options.until):
            at = format_utc_instant(plan.options.until)
            yield f"rows of {at} and later, which import {plan.id} has left to the topic, stay with the topic"


def find_mark(names: Mapping[str, str], name: str) -> str:
    """Find by which mark a file is known."""
    return next(mark for mark, each in names.items() if each == name)
