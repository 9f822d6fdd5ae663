"""Where rows are from that were imported: the file and the number of the row in it, as people look for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seamline.lake.imports.import_plans import ImportPlan, load_plan
from seamline.lake.read.originals import TOPIC_ID
from seamline.lake.storage.layout import Layout
from seamline.model.errors import NotFound
from seamline.model.protocol.offsets import IMPORTED
from seamline.plan.stream.import_plan import find_file_rows

FILE, ROW = "_file", "_row"


def name_imported_rows(layout: Layout, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give rows that were imported their file and their number in it, from 1, in place of a partition and an offset.

    Where a plan is gone nobody knows them: then the row keeps its place in the import.
    """
    plans: dict[str, ImportPlan] = {}
    named = []
    any_imported = any(str(row.get(TOPIC_ID, "")).startswith(IMPORTED) for row in rows)
    for row in rows:
        lane = str(row.get(TOPIC_ID, ""))
        found: dict[str, Any] = {name: value for name, value in row.items() if name != TOPIC_ID}
        if any_imported:
            found |= {FILE: None, ROW: None}
        if lane.startswith(IMPORTED):
            with suppress(NotFound):
                plan = plans.setdefault(lane, load_plan(layout, lane.removeprefix(IMPORTED)))
                [place] = find_file_rows(plan.files, row["_offset"], row["_offset"] + 1)
                found |= {FILE: place.file.name, ROW: place.first + 1, "_partition": None, "_offset": None}
        named.append(found)
    return named
