"""A folder of files as a sink's target: files are put there, and a manifest makes them count, all at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.read.sinks.shown_rows import ShownRows
from seamline.lake.storage.durability import sync_file, sync_folders
from seamline.lake.store.locations import Location, parse_location, replace_file
from seamline.lake.store.promises import is_asking_free
from seamline.lake.store.side_by_side import Threads
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.definition.sinks.file_sink import FileSink
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.file_manifests import DataFile
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.files.bucket_names import name_buckets
from seamline.sinks.files.encoded_rows import DELETED, ENDS, encode_file, encode_objects, mark_changes
from seamline.sinks.files.file_reading import FileReading
from seamline.sinks.files.file_upkeep import FileUpkeep
from seamline.sinks.files.folders_again import (
    gather_folders,
    group_by_bucket,
    open_folders_again,
    skip_written,
)
from seamline.sinks.files.held_files import HeldFiles
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.merging import Merging
from seamline.sinks.lasts import with_last
from seamline.sinks.row_shape import RowShape
from seamline.sinks.target import ChangeBatch
from seamline.sinks.target_errors import TargetUnavailable

log = logging.getLogger("seamline.sinks")
PUTTING = Threads("put", 8)
MEGABYTE = 1 << 20


class FileTarget:
    """The files of one sink, for one version of its view; a flip is taken over by another target."""

    def __init__(self, sink: FileSink, view: CompiledView, clock: Callable[[], float] = time.time) -> None:
        self._sink, self._shape, self._clock = sink, RowShape.of(view), clock
        self._called = f"{view.pipeline}.{sink.id}"
        self._root: Location = parse_location(sink.path)
        columns = self._shape.columns if sink.fixes_types else ()
        self._types = {each.name: each.type.duckdb for each in columns}
        self._log: ManifestLog | None = None
        self._upkeep: FileUpkeep | None = None
        self._written = 0

    def take_over(self) -> SinkPosition | None:
        """Fence earlier writers by a manifest of our own, and return what the newest one says.

        None where a column has another type in files that are there. SetupError where there are files of somebody else,
        or manifests that are not as they were.
        """
        newest = self._open(anew=False).newest
        held = dict(newest.types if newest else ())
        other = [name for name, type in self._types.items() if held.get(name, type) != type]
        if other:
            log.info("%s is written anew: files have %s with another type", self._called, ", ".join(other))
            self.clear()
            return None
        return newest.position if newest else None

    def write(self, batches: Iterable[ChangeBatch], position: SinkPosition) -> None:
        """Put files of changes, and make them count with the position by one manifest."""
        manifests = self._require_log()
        version = position.version if position.toward is None else position.toward
        with self._explained():
            hit_failpoint("sink_begun")
            rows = mark_changes(batches, self._shape, version)
            files = self._put_all(rows) if rows is not None else []
            manifests.commit(position, files)
            hit_failpoint("sink_written")
        self._require_upkeep().count(files)

    def write_again(self, shown: ShownRows, position: SinkPosition) -> Iterator[tuple[int, SinkPosition]]:
        """Write folders anew in which windows of a range start, some at a time; what they had does not count then."""
        manifests, upkeep = self._require_log(), self._require_upkeep()
        assert position.again is not None
        with self._explained(), open_folders_again(upkeep.merging, self._sink.buckets, shown) as again:
            folders = group_by_bucket(upkeep.read_files().values())
            due = skip_written(again.list_folders(folders, shown.span), position.again.done)
            for some, last in with_last(gather_folders(due)):
                hit_failpoint("sink_begun")
                rows, added, removed = 0, list[DataFile](), list[str]()
                for bucket, count in some:
                    there = folders.get(bucket, {})
                    added += again.write(bucket, there, partial(self._name_file, bucket), self._clock())
                    hit_failpoint("sink_half")
                    rows, removed = rows + count, [*removed, *there]
                hit_failpoint("sink_rows")
                position = position.send_again(rows, whole=last)
                manifests.commit(position, added, removed)
                hit_failpoint("sink_written")
                upkeep.count(added, removed)
                yield rows, position

    def clear(self) -> None:
        """Let no file count any more, by one manifest; upkeep deletes them once nobody reads by an earlier one."""
        with self._explained():
            manifests = self._log or self._open_to_clear()
            manifests.commit_whole(None, [])
        self._require_upkeep().forget()

    @contextmanager
    def open_reading(self) -> Iterator[FileReading]:
        """Read the files that count, beside who writes them."""
        with self._explained():
            held = HeldFiles(self._sink.format, self._shape)
            reading = FileReading(self._root, self._called, held, self._sink.buckets, self._sink.form)
        yield reading

    def spell_places(self, rows: pa.Table) -> pa.Array:
        """Write what tells rows apart as JSON."""
        return encode_objects(rows.select(list(self._shape.identity)))

    def spell_values(self, rows: pa.Table) -> pa.Array:
        """Write rows as a line of JSON has them, without the marks."""
        return encode_objects(rows.select(self._shape.names))

    def tidy(self, stopping: Callable[[], bool]) -> None:
        """Do a piece of upkeep, if one is due: nothing is written meanwhile."""
        with self._explained():
            self._require_upkeep().tidy(stopping)

    def close(self) -> None:
        """Let go of the folder."""
        self._log = self._upkeep = None

    def _open(self, *, anew: bool) -> ManifestLog:
        self.close()
        manifests = ManifestLog(self._root, self._called, self._clock)
        with self._explained():
            manifests.take_over(anew=anew)
        manifests.types = self._types
        form, size = self._sink.format, self._sink.roll_megabytes * MEGABYTE
        merging = Merging(self._root, form, self._shape, size, history=self._sink.history)
        self._log, self._upkeep = manifests, FileUpkeep(manifests, merging, self._name_file)
        return manifests

    def _open_to_clear(self) -> ManifestLog:
        """Take over what could not be gone on with; what is another sink's stays refused."""
        try:
            return self._open(anew=False)
        except SetupError:
            if ManifestLog(self._root, self._called).read_owner() not in ("", self._called):
                raise
            return self._open(anew=True)

    def _put_all(self, rows: pa.Table) -> list[DataFile]:
        """Put the files of rows, one for each bucket."""
        names = name_buckets(rows, self._sink.buckets)
        parts = [
            (self._name_file(bucket), rows.filter(pc.equal(names, bucket)))
            for bucket in names.unique().to_pylist()
        ]
        some = [self._put(parts[0])]
        hit_failpoint("sink_half")
        if len(parts) > 1:
            put = (
                map(self._put, parts[1:]) if is_asking_free(self._root) else PUTTING.map(self._put, parts[1:])
            )
            some += put
        places = {(self._root / each.file).parent for each in some}
        sync_folders(places, above=self._root)
        hit_failpoint("sink_rows")
        return some

    def _put(self, part: tuple[str, pa.Table]) -> DataFile:
        """Put one file, whole or not at all."""
        way, rows = part
        data = encode_file(rows, self._sink.format)
        replace_file(self._root / way, data, before=sync_file)
        gone = pc.sum(rows[DELETED]).as_py() or 0
        return DataFile(way, rows.num_rows, gone, len(data), self._clock())

    def _name_file(self, bucket: str) -> str:
        """Name the next file of a bucket: no other writer gives that name."""
        manifests = self._require_log()
        self._written += 1
        name = f"{manifests.claim:010d}-{manifests.token}-{self._written:06d}{ENDS[self._sink.format]}"
        return f"{bucket}/{name}" if bucket else name

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what it means that this user may not write there."""
        try:
            yield
        except (PermissionError, NotADirectoryError, IsADirectoryError) as error:
            raise SetupError(
                f"Sink {self._called} cannot use {self._root}: {error.strerror or error}.",
                hint="let the user of the stream's supervisor write there, or name another path.",
            ) from error

    def _require_log(self) -> ManifestLog:
        if self._log is None:
            raise TargetUnavailable(
                f"{self._root} was let go of.", hint="the sink takes over again by itself."
            )
        return self._log

    def _require_upkeep(self) -> FileUpkeep:
        self._require_log()
        assert self._upkeep is not None
        return self._upkeep
