"""Files that count, read in the order of versions; those that cannot be read are left out, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seamline.lake.engine.duckdb_connections import UNREADABLE, Connection
from seamline.lake.engine.duckdb_scans import read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.read.sinks.row_comparison import HELD, HELD_AT_ONCE
from seamline.lake.read.sinks.served_changes import UNCOMPARED
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location
from seamline.lake.store.present_files import hold_files
from seamline.model.definition.sinks.file_sink import PARQUET
from seamline.model.protocol.sinks.file_manifests import DataFile
from seamline.plan.maintain.transfers import FoundFile
from seamline.sinks.files.encoded_rows import DELETED, OURS, VERSION, encode_objects
from seamline.sinks.files.merging import LINE, LINES, PLACE, read_lines
from seamline.sinks.json_values import read_starts
from seamline.sinks.row_shape import RowShape

TORN = (*UNREADABLE, pa.ArrowException, OSError, ValueError, LookupError, TypeError)
"""What reading a file may raise that somebody has changed."""
BEGINNING = rf'^\{{"{VERSION}": \d+, "{DELETED}": (true|false), '
Paths = dict[str, str]
"""Where each file is on this machine, by its name."""


class HeldFiles:
    """The rows of files of one format."""

    def __init__(self, form: str, shape: RowShape) -> None:
        self.form, self.shape = form, shape

    def read(
        self, con: Connection, paths: Paths, span: StartRange, tell: Callable[[str, str], None]
    ) -> Iterator[pa.Table]:
        """Read the files of one bucket as HELD has them, older rows of a place before newer ones.

        ``tell`` is given each file that cannot be read, and why. Rows may come twice then, in their order each time.
        """
        try:
            yield from self.read_sound(con, [*paths.values()], span)
        except Exception:
            damage = {name: why for name, path in paths.items() if (why := self.find_damage(con, path))}
            if not damage:
                raise
            for name, why in damage.items():
                tell(name, why)
            yield from self.read_sound(con, [paths[name] for name in paths if name not in damage], span)

    def read_sound(self, con: Connection, paths: Sequence[str], span: StartRange) -> Iterator[pa.Table]:
        """Read files of which each can be read."""
        if not paths:
            return
        order = f"ORDER BY {VERSION}" if len(paths) > 1 else ""
        if self.form == PARQUET:
            query = (
                f"SELECT {', '.join(self.list_columns(paths))} FROM {read_parquet_sql(paths, uneven=True)} "
                f"WHERE {span.condition_sql()} {order}"
            )
        else:
            con.register("lines", pa.RecordBatchReader.from_batches(LINES, read_lines(paths, self.shape)))
            query = f"SELECT * FROM lines {order}"
        make = self.make_from_rows if self.form == PARQUET else make_from_lines
        with con.sql(query).to_arrow_reader(HELD_AT_ONCE) as reader:
            for batch in reader:
                yield make(pa.Table.from_batches([batch]))

    def list_columns(self, paths: Sequence[str]) -> list[str]:
        """List the columns that any file has, with the types that they have in the view; the others are NULL.

        Of a column that one file has as text DuckDB would make texts in all of them.
        """
        there = {name for path in paths for name in pq.read_schema(path).names}
        shown = [
            field for field in self.shape.columns if field.name in there and field.name not in UNCOMPARED
        ]
        told = [name for name in (*OURS, *UNCOMPARED) if name in there]
        casts = (
            f"CAST({quote_identifier(each.name)} AS {each.type.duckdb}) AS {quote_identifier(each.name)}"
            for each in shown
        )
        return [*map(quote_identifier, told), *casts]

    def make_from_rows(self, rows: pa.Table) -> pa.Table:
        """Make what is held of rows of Parquet."""
        there = set(rows.column_names)
        columns = [
            rows[name] if name in there else pa.nulls(rows.num_rows, pa.string()) for name in self.shape.names
        ]
        values = encode_objects(pa.table(columns, names=self.shape.names))
        places = encode_objects(rows.select(list(self.shape.identity)))
        return make_held(places, rows["window_start"].cast(INSTANT), values, rows[DELETED])

    def find_damage(self, con: Connection, path: str) -> str:
        """Return why a file cannot be read; empty if it can be."""
        try:
            if self.form == PARQUET:
                lacking = {*OURS, *self.shape.identity} - {*pq.read_schema(path).names}
                if lacking:
                    return f"it has no {', '.join(sorted(lacking))}"
                for _ in self.read_sound(con, [path], StartRange()):
                    pass
            else:
                for _ in read_lines([path], self.shape):
                    pass
        except FileNotFoundError:
            return "it was deleted"
        except TORN as error:
            return f"it cannot be read: {error}"
        return ""


@contextmanager
def sort_out_damaged(
    con: Connection, root: Location, files: Iterable[DataFile], held: HeldFiles
) -> Iterator[tuple[Paths, Paths]]:
    """Hold on this machine the files that are as they were written; beside them those that are not, each with why."""
    there, whole = list_found_files(root), dict[str, FoundFile]()
    damage = {}
    for each in files:
        if each.file not in there:
            damage[each.file] = "it was deleted"
        elif there[each.file].size != each.bytes:
            damage[each.file] = "it has another size"
        else:
            whole[each.file] = there[each.file]
    with hold_files(root, whole) as paths:
        damage |= {name: why for name, path in paths.items() if (why := held.find_damage(con, path))}
        yield {name: path for name, path in paths.items() if name not in damage}, damage


def make_from_lines(rows: pa.Table) -> pa.Table:
    """Make what is held of lines of JSON."""
    places = pc.binary_join_element_wise("{", rows[PLACE], "}", "")
    values = pc.replace_substring_regex(rows[LINE].cast(pa.string()), BEGINNING, "{", max_replacements=1)
    return make_held(places, read_starts(places.combine_chunks()), values, rows[DELETED])


def make_held(places: pa.Array, starts: pa.Array, values: pa.Array, deleted: pa.ChunkedArray) -> pa.Table:
    """Make rows as HELD has them; one that is gone has no value."""
    handles = pa.array([""] * len(places), pa.string())
    there = pc.if_else(pc.fill_null(deleted, False), pa.scalar(None, pa.string()), values)
    return pa.table([places, handles, starts, there], schema=HELD)
