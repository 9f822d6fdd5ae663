"""What imports there are, how far each is, and what stops one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seamline.lake.imports.import_plans import load_hindrances, load_plan, require_planned_files
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.decided import list_imports
from seamline.model.errors import SeamlineError
from seamline.model.protocol.imported.imports import (
    Import,
    count_imported_places,
    find_closed_places,
    list_open_imports,
)
from seamline.model.time.intervals import format_utc_instant

WAITING, READING, DONE, CLOSING, CLOSED = "waiting", "importing", "done", "being cancelled", "cancelled"


@dataclass(frozen=True)
class ImportState:
    """How far an import is."""

    decision: Import
    """The import."""
    state: str
    """A word for people."""
    done: int
    """Rows that were read; of one that is cancelled, those that were read before."""
    wrong: str = ""
    """Why it cannot go on, empty where nothing is known to stop it."""


def list_import_states(layout: Layout) -> list[ImportState]:
    """Return how far each import is, oldest first."""
    log, asked = read_condensed_log(layout), list_imports(layout)
    done, closed = count_imported_places(log, asked), find_closed_places(log)
    open_ = {each.id for each in list_open_imports(log, asked)}
    found, told = [], load_hindrances(layout)
    for each in asked:
        count = done[each.id]
        if each.id in open_:
            state = CLOSING if each.cancelled else READING if count else WAITING
            wrong = "" if each.cancelled else told.get(each.id) or find_hindrance(layout, each, count)
            found.append(ImportState(each, state, count, wrong))
        else:
            found.append(
                ImportState(each, CLOSED if each.lane in closed else DONE, closed.get(each.lane, count))
            )
    return found


def find_hindrance(layout: Layout, each: Import, done: int) -> str:
    """Say why the next row of an import cannot be read; empty where it can."""
    try:
        require_planned_files(load_plan(layout, each.id), done, min(done + 1, each.end))
    except SeamlineError as error:
        return f"{error.message} Hint: {error.hint}"
    return ""


def describe_import_state(state: ImportState) -> dict[str, Any]:
    """Return an import and how far it is, as plain data: ``rows``, ``rows_read``, ``overlap``, ``blocked_by``, ..."""
    row = state.decision.to_row()
    return {
        **{name: value for name, value in row.items() if name not in ("end", "border")},
        "state": state.state,
        "rows": state.decision.end,
        "rows_read": state.done,
        "overlap": state.decision.border,
        "blocked_by": state.wrong,
    }


def list_import_lines(layout: Layout) -> list[str]:
    """Return how far each import is, in lines."""
    lines: list[str] = []
    for each in list_import_states(layout):
        decision = each.decision
        lines.append(
            f"{decision.id}  {each.state}, {each.done} of {decision.end} rows of {decision.origin}; "
            f"{format_utc_instant(decision.at)} by {decision.actor}"
            + (f": {decision.reason}" if decision.reason else "")
        )
        lines += [f"  {decision.border}"] if decision.border else []
        lines += [f"  {each.wrong}"] if each.wrong else []
        lines += [f"  cancelled by {decision.cancelled}"] if decision.cancelled else []
    return lines


def list_open_ids(layout: Layout, origin: str = "") -> list[str]:
    """List the ids of imports of which something is to be done: those from one place, or all."""
    found = list_open_imports(read_condensed_log(layout), list_imports(layout))
    return [each.id for each in found if origin in ("", each.origin)]


def list_cancelled_ids(layout: Layout) -> list[str]:
    """List the ids of cancelled imports that are not closed yet: no other is planned before."""
    found = list_open_imports(read_condensed_log(layout), list_imports(layout))
    return [each.id for each in found if each.cancelled]
