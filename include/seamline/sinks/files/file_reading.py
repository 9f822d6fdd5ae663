"""A sink's files read back, as one manifest counts them: a snapshot, whatever is written and merged meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location
from seamline.lake.store.present_files import hold_files
from seamline.model.errors import ReadUnstable
from seamline.model.protocol.sinks.file_manifests import DataFile, FileManifest, list_counting_files
from seamline.model.protocol.sinks.marks import Mark, split_marks
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.files.folder_spans import may_start_in
from seamline.sinks.files.held_files import HeldFiles
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.merging import MEMORY


class FileReading:
    """The files of a sink as of its newest manifest when this was opened."""

    def __init__(
        self, root: Location, called: str, held: HeldFiles, buckets: Sequence[str], form: str
    ) -> None:
        self._root, self._called, self._held = root, called, held
        self._newest, self._files = self._read_newest()
        # Of folders that were made by other buckets names do not tell.
        self._buckets = buckets if has_form(self.find_position(), form) else ()
        self._damage: dict[str, str] = {}

    def find_position(self) -> SinkPosition | None:
        """Return the position of that manifest; later ones are of files that are not read."""
        return self._newest.position if self._newest else None

    def read_rows(self, span: StartRange) -> Iterator[pa.Table]:
        """Read the rows of windows that start in a range, those of one place in the order of their versions."""
        # After the manifest: what it names was there before.
        there = list_found_files(self._root)
        asked = [each for each in self._files.values() if may_start_in(each.bucket, self._buckets, span)]
        for each in asked:
            if each.file not in there:
                self._damage[each.file] = "it was deleted"
            elif there[each.file].size != each.bytes:
                said = f"it has {there[each.file].size:,} bytes, and was written with {each.bytes:,}"
                self._damage[each.file] = said
        sound = sorted((each.bucket, each.file) for each in asked if each.file in there)
        with open_beside(1) as con:
            con.execute(f"SET memory_limit = '{MEMORY}'")
            for _, some in groupby(sound, key=lambda each: each[0]):
                with hold_files(self._root, {name: there[name] for _, name in some}) as paths:
                    yield from self._held.read(con, paths, span, self._damage.__setitem__)

    def read_row(self, row: pa.Table) -> pa.Table | None:
        """Return None: to find one row, all files of its bucket would have to be read."""
        return None

    def list_damage(self) -> Mapping[str, str]:
        """List the files that are not as they were written, each with what is wrong with it.

        ReadUnstable if some of them have been replaced while others were read: they may have been deleted since.
        """
        if self._damage:
            replaced = self._damage.keys() - self._read_newest()[1].keys()
            if replaced:
                raise ReadUnstable(
                    f"{len(replaced)} files of {self._root} were replaced by others before they were read.",
                    hint="audit it again, or a range: --from and --to.",
                )
        return self._damage

    def _read_newest(self) -> tuple[FileManifest | None, dict[str, DataFile]]:
        """Read the newest manifest, and which files count."""
        log = ManifestLog(self._root, self._called)
        newest = log.find_newest(log.list_numbers())
        return newest, list_counting_files(log.read_chain(newest)) if newest else {}


def has_form(position: SinkPosition | None, form: str) -> bool:
    """Return whether a target shows rows of a form alone; false where nobody can tell."""
    marks = split_marks(position.fingerprint) if position else ()
    with suppress(ValueError):
        return all(Mark.parse(each).form == form for each in marks if each)
    return False
