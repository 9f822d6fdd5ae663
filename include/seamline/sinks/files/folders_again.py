"""Folders of a sink's files written anew from what is served: of what is there nothing has to be readable (rule 34)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from seamline.lake.engine.duckdb_connections import Connection, open_beside
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.sinks.served_changes import BATCH
from seamline.lake.read.sinks.shown_rows import ShownRows, StartRange
from seamline.model.definition.sinks.file_sink import PARQUET
from seamline.model.definition.sinks.sink_base import CHANGE
from seamline.model.protocol.sinks.file_manifests import DataFile
from seamline.model.types.exact_json import dump_finite_json
from seamline.sinks.files.bucket_names import name_buckets
from seamline.sinks.files.encoded_rows import DELETED, VERSION, encode_objects, mark, mark_batch
from seamline.sinks.files.folder_spans import find_folder_span, may_start_in
from seamline.sinks.files.held_files import HeldFiles, sort_out_damaged
from seamline.sinks.files.merging import (
    LINES,
    MEMORY,
    PLACE,
    Merging,
    Naming,
    as_types,
    common_schema,
    read_lines,
)
from seamline.sinks.target import ChangeBatch

log = logging.getLogger("seamline.sinks")
BUCKET, SENT = "_bucket", "_sent"
"""Columns that rows have here beside those of files."""
AT_ONCE, FOLDERS_AT_ONCE = 40_000, 1_000
"""Rows of one commit but for those of its last folder, and folders."""


class FoldersAgain:
    """What one version of a serving table shows of some folders, to be written in place of what they have."""

    def __init__(
        self, con: Connection, merging: Merging, buckets: Sequence[str], version: int, *, keeps: bool
    ) -> None:
        self.con, self.merging, self.buckets, self.version = con, merging, buckets, version
        self.form, self.shape, self.keeps = merging.form, merging.shape, keeps
        """Whether a folder has rows that the version does not tell: earlier values, or those that are not sent now."""
        self.schema = LINES
        identity = [PLACE] if self.form != PARQUET else self.shape.identity
        self.identity = [*map(quote_identifier, identity)]

    @property
    def order(self) -> str:
        """What tells rows apart, in a query."""
        return ", ".join(self.identity)

    def take_in(self, shown: ShownRows) -> None:
        """Take in the rows of whole folders in which windows of a range start."""
        whole = ShownRows(shown.version, shown.when, find_folder_span(shown.span, self.buckets))
        nothing = shown.version.schema.empty_table()
        if self.form == PARQUET:
            self.schema = mark(nothing.select(self.shape.names), 0, deleted=False).schema
        first = self.spell(nothing, pa.chunked_array([], pa.bool_()))
        self.con.register("part", first)
        self.con.execute("CREATE TABLE served AS SELECT * FROM part")
        for rows, sent in whole.iterate_all():
            self.con.register("part", self.spell(rows, sent))
            self.con.execute("INSERT INTO served SELECT * FROM part")

    def spell(self, rows: pa.Table, sent: pa.ChunkedArray) -> pa.Table:
        """Write rows as files have them, with the folder of each and whether it is sent."""
        made = mark(rows.select(self.shape.names), self.version, deleted=False)
        if self.form != PARQUET:
            places = encode_objects(rows.select(list(self.shape.identity)))
            lines = encode_objects(made).cast(pa.binary())
            stripped = pa.array([each[1:-1] for each in places.to_pylist()], pa.string())
            made = pa.table([stripped, made[VERSION], made[DELETED], lines], schema=LINES)
        return made.append_column(BUCKET, name_buckets(rows, self.buckets)).append_column(SENT, sent)

    def list_folders(self, there: Iterable[str], span: StartRange) -> list[tuple[str, int]]:
        """List the folders to be written in their order, each with how many rows it shall have of the version."""
        counted = self.con.execute(f"SELECT {BUCKET}, count(*) FILTER ({SENT}) FROM served GROUP BY ALL")
        found: dict[str, int] = {str(bucket): int(count) for bucket, count in counted.fetchall()}
        for bucket in there:
            if may_start_in(bucket, self.buckets, span):
                found.setdefault(bucket, 0)
        return sorted(found.items())

    def write(
        self, bucket: str, files: Mapping[str, DataFile], name: Naming, now: float
    ) -> Iterator[DataFile]:
        """Write the files that a folder shall have in place of those that it has."""
        chosen = ", ".join(map(quote_identifier, self.schema.names))
        query = f"SELECT {chosen} FROM served WHERE {BUCKET} = {quote_literal(bucket)} AND {SENT}"
        yield from self.put(f"{query} ORDER BY {self.order}", self.schema, name, now)
        if self.keeps:
            yield from self.write_kept(files, name, now)

    def put(self, query: str, types: pa.Schema | None, name: Naming, now: float) -> Iterator[DataFile]:
        """Write what a query finds."""
        with self.con.sql(query).to_arrow_reader(BATCH) as reader:
            yield from self.merging.write_files(as_types(reader, types), name, now)

    def write_kept(self, files: Mapping[str, DataFile], name: Naming, now: float) -> Iterator[DataFile]:
        """Write what is to stay of the files of a folder, as far as they can be read."""
        with self.hold_sound(files) as paths:
            if not paths:
                return
            source, types = "lines", LINES
            if self.form == PARQUET:
                source, types = read_parquet_sql(paths, uneven=True), common_schema(paths)
            else:
                lines = pa.RecordBatchReader.from_batches(LINES, read_lines(paths, self.shape))
                self.con.register(source, lines)
            self.con.execute(f"CREATE OR REPLACE TABLE old AS SELECT * FROM {source}")
        unsent, own = f"coalesce(NOT s.{SENT}, false)", ", ".join(f"old.{each}" for each in self.identity)
        same = " AND ".join(f"old.{each} IS NOT DISTINCT FROM s.{each}" for each in self.identity)
        numbered = f"row_number() OVER (PARTITION BY {own} ORDER BY old.{VERSION} DESC) = 1"
        earlier = f"old.{VERSION} < {self.version}"
        history = self.merging.history
        stays = f"WHERE {earlier} OR {unsent}" if history else f"WHERE {unsent} QUALIFY {numbered}"
        joined = f"FROM old LEFT JOIN served s ON {same}"
        yield from self.put(f"SELECT old.* {joined} {stays} ORDER BY {own}, old.{VERSION}", types, name, now)
        if history:
            gone = (
                f"SELECT {own}, old.{DELETED} {joined} WHERE {earlier} AND s.{SENT} IS NULL "
                f"QUALIFY {numbered}"
            )
            yield from self.write_gone(f"SELECT {self.order} FROM ({gone}) WHERE NOT {DELETED}", name, now)

    def write_gone(self, query: str, name: Naming, now: float) -> Iterator[DataFile]:
        """Say of rows that are not served that they are gone, where earlier values of them stay."""
        with self.con.sql(query).to_arrow_reader(BATCH) as reader:
            tables = (self.mark_gone(pa.Table.from_batches([each])) for each in reader if each.num_rows)
            yield from self.merging.write_files(tables, name, now)

    def mark_gone(self, places: pa.Table) -> pa.Table:
        """Write rows that say that others are gone."""
        if self.form == PARQUET:
            nothing = self.schema.empty_table().select(self.shape.names)
            marked = mark_batch(ChangeBatch(nothing, places, None), self.shape, self.version)
            return pa.concat_tables(marked).cast(self.schema)
        nulls = [
            f"{dump_finite_json(each)}: null" for each in self.shape.names if each not in self.shape.identity
        ]
        marks = f'{{"{VERSION}": {self.version}, "{DELETED}": true'
        texts = places[PLACE].to_pylist()
        lines = [", ".join([marks, each, *nulls]).encode() + b"}" for each in texts]
        deleted = [True] * len(texts)
        return pa.table([texts, [self.version] * len(texts), deleted, lines], schema=LINES)

    @contextmanager
    def hold_sound(self, files: Mapping[str, DataFile]) -> Iterator[list[str]]:
        """Hold on this machine the files of a folder that are as they were written, as far as anybody can see."""
        root, held = self.merging.root, HeldFiles(self.form, self.shape)
        with sort_out_damaged(self.con, root, files.values(), held) as (paths, damage):
            for name, why in damage.items():
                log.warning("%s: %s; what it alone had of earlier rows is lost", root / name, why)
            yield [*paths.values()]


def group_by_bucket(files: Iterable[DataFile]) -> dict[str, dict[str, DataFile]]:
    """Group files by the folder that each is in, by name there."""
    found: dict[str, dict[str, DataFile]] = {}
    for each in files:
        found.setdefault(each.bucket, {})[each.file] = each
    return found


def skip_written(folders: Iterable[tuple[str, int]], done: int) -> Iterator[tuple[str, int]]:
    """Leave out the folders whose rows, in their order, have been written; one without rows is not told by them."""
    passed = 0
    for bucket, count in folders:
        passed += count
        if count == 0 or passed > done:
            yield bucket, count


def gather_folders(folders: Iterable[tuple[str, int]]) -> Iterator[list[tuple[str, int]]]:
    """Gather folders into what one commit takes; one without any where there are none."""
    some: list[tuple[str, int]] = []
    given, rows = False, 0
    for each in folders:
        some.append(each)
        rows += each[1]
        if rows >= AT_ONCE or len(some) >= FOLDERS_AT_ONCE:
            yield some
            some, given, rows = [], True, 0
    if some or not given:
        yield some


@contextmanager
def open_folders_again(merging: Merging, buckets: Sequence[str], shown: ShownRows) -> Iterator[FoldersAgain]:
    """Take in what is to be written of whole folders; it is on disk where it is much."""
    with open_beside(1) as con:
        con.execute(f"SET memory_limit = '{MEMORY}'")
        keeps = merging.history or shown.when != CHANGE
        again = FoldersAgain(con, merging, buckets, shown.version.number, keeps=keeps)
        again.take_in(shown)
        yield again
