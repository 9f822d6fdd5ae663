"""Where rows of files and Delta tables are from: the file, or version, and the number of the row in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamline.lake.imports.import_plans import ImportPlan, load_plan
from seamline.lake.read.originals import TOPIC_ID
from seamline.lake.storage.layout import Layout
from seamline.model.errors import NotFound
from seamline.model.protocol.imported.table_rows import find_row
from seamline.model.protocol.offsets import IMPORTED, OF_TABLE
from seamline.plan.stream.import_plan import find_file_rows

FILE, ROW = "_file", "_row"


class ImportedPlaces:
    """The plans of a pipeline's imports, each loaded once; where one is gone nobody knows where its rows are from."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.plans: dict[str, ImportPlan | None] = {}

    def find(self, topic_id: str, offset: int) -> tuple[str, int] | None:
        """Find the file, or a table's version, of a row, and its number in it from 1; None for a record of a topic."""
        if topic_id.startswith(OF_TABLE):
            at = find_row(offset)
            return f"version {at.version}{' whole' * at.whole}", at.row + 1
        if not topic_id.startswith(IMPORTED):
            return None
        plan = self._load(topic_id.removeprefix(IMPORTED))
        found = find_file_rows(plan.files, offset, offset + 1) if plan else []
        return (found[0].file.name, found[0].first + 1) if found else None

    def _load(self, id: str) -> ImportPlan | None:
        if id not in self.plans:
            try:
                self.plans[id] = load_plan(self.layout, id)
            except NotFound:
                self.plans[id] = None
        return self.plans[id]


def name_imported_rows(layout: Layout, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give rows that were imported their file and number, in place of a partition and an offset."""
    places = ImportedPlaces(layout)
    known = [
        places.find(str(row.get(TOPIC_ID, "")), row["_offset"]) if TOPIC_ID in row else None for row in rows
    ]
    named = []
    for row, place in zip(rows, known, strict=True):
        found: dict[str, Any] = {name: value for name, value in row.items() if name != TOPIC_ID}
        if any(known):
            found |= {FILE: None, ROW: None}
        if place:
            found |= {FILE: place[0], ROW: place[1], "_partition": None, "_offset": None}
        named.append(found)
    return named
