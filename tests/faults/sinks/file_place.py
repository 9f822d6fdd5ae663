"""Files as strangers see them, in the drill of all kinds of sinks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.sinks.places import Row, Rows, read_row

from seamline.model.protocol.sinks.file_manifests import FileManifest
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.reading import list_current_files


@dataclass
class FilesPlace:
    """A folder of JSON files, of which merges keep every row."""

    folder: Path
    kind = "files"
    connection: dict[str, Any] = field(default_factory=dict)
    """None is needed."""

    @property
    def sink(self) -> str:
        """How a definition declares it."""
        return f'FileSink("sales", path="{self.folder}", format="json", history=True, name="out")'

    def list_manifests(self) -> list[int]:
        """List the numbers of the manifests."""
        return ManifestLog(self.folder, "").list_numbers()

    def read_changes(self) -> Iterator[tuple[int, tuple[str | None, str], Row | None]]:
        """Read all rows that count with the versions that showed them; None for one that is gone."""
        for path in list_current_files(str(self.folder)) if self.list_manifests() else ():
            for row in map(json.loads, Path(path).read_text().splitlines()):
                place, values = read_row(row)
                yield row["_version"], place, None if row["_deleted"] else values

    def read(self) -> Rows:
        """Read the newest row of each place."""
        held = {place: row for _, place, row in sorted(self.read_changes(), key=lambda each: each[0])}
        return {place: row for place, row in held.items() if row is not None}

    def position(self) -> SinkPosition | None:
        """Read the position in the newest manifest."""
        numbers = self.list_manifests()
        if not numbers:
            return None
        data = ManifestLog(self.folder, "").fetch(numbers[-1])
        return FileManifest.from_bytes(data, numbers[-1]).position

    def effects(self) -> str:
        """Return the files that are there, whether they count or not."""
        return str(sorted(each.name for each in self.folder.rglob("*.jsonl")))

    def check(self) -> None:
        """Each row must have changed what a reader held."""
        held: dict[Any, Row | None] = {}
        for _, place, row in sorted(self.read_changes(), key=lambda each: each[0]):
            assert held.get(place) != row, (place, row)
            held[place] = row

    def forget(self) -> None:
        """The folder is deleted with the test."""
