"""Rows of files as raw records: what a topic would have brought, had it had them.

The bytes of a record are those that a column has, or the row as JSON: fields in the order of the columns, names and
text as they are, instants and dates in ISO 8601 (UTC, microseconds), bytes in base64, numbers with their digits; NaN
and infinities are texts, for JSON has no such numbers. The same row has the same bytes in every release.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.engine.duckdb_scans import quote_literal
from seamline.lake.engine.states import quote_identifier
from seamline.lake.imports.import_options import KEY, OFFSET, PARTITION, SPECIAL, TIME, VALUE, ImportOptions
from seamline.lake.storage.arrow_types import INSTANT
from seamline.lake.storage.parquet_files import to_utc_type
from seamline.lake.store.locations import parse_location
from seamline.lake.store.ranged_files import open_ranged_file
from seamline.model.errors import BadRange, SeamlineError
from seamline.model.time.intervals import format_utc_instant
from seamline.plan.stream.import_plan import FileRows

RAW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", INSTANT),
        ("headers", pa.string()),
    ]
)
"""The columns of raw records as the kernel takes them."""
BARE = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null"
"""Text that is JSON as it is."""
CHUNK = 50_000
"""Rows that are turned into records at once."""
UNREADABLE = "Rows of a file cannot be read:"
"""What an error begins with that is a file's."""
PLACE = "_seamline_place"
"""The column of rows' offsets in the import's lane."""


def read_history_records(
    con: duckdb.DuckDBPyConnection, rows: FileRows, options: ImportOptions, at: datetime
) -> Iterator[pa.RecordBatch]:
    """Read a run of a file's rows as raw records, in order.

    ``at`` is the time of a record of which no column says one. BadRange, which begins with ``UNREADABLE``, where the
    file, and none of its records, is to blame: it is not the one that was planned, or cannot be read.
    """
    try:
        offset = rows.offset
        for table in read_rows(rows):
            places = pa.arange(offset, offset + table.num_rows)
            offset += table.num_rows
            wide = table.append_column(PLACE, places)
            for name, value in rows.file.values:
                wide = wide.append_column(name, pa.repeat(pa.scalar(json.loads(value)), table.num_rows))
            yield from make_records(con, wide, options, at)
    except (duckdb.OutOfMemoryException, MemoryError):
        raise
    except (OSError, SeamlineError, pa.ArrowException, duckdb.Error, ValueError, TypeError) as error:
        said = error.message if isinstance(error, SeamlineError) else str(error).splitlines()[0]
        raise BadRange(
            f"{UNREADABLE} {rows.file.path!r}, rows {rows.first} to {rows.last - 1}: {said}",
            hint="cancel the import by `seamline imports cancel`, correct the file, and import again.",
        ) from None


def read_rows(rows: FileRows) -> Iterator[pa.Table]:
    """Read a run of a file's rows as they are, some at a time."""
    with (
        open_ranged_file(parse_location(rows.file.path)) as opened,
        pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as file,
    ):
        if file.metadata.num_rows < rows.last:
            raise BadRange(
                f"{rows.file.path!r} has {file.metadata.num_rows} rows; {rows.file.rows} were planned.",
                hint="it was replaced: put the planned file back, or cancel the import and import again.",
            )
        begins = 0
        for group in range(file.num_row_groups):
            ends = begins + file.metadata.row_group(group).num_rows
            if begins < rows.last and rows.first < ends:
                at = begins
                for batch in file.iter_batches(CHUNK, row_groups=[group], use_threads=False):
                    low, high = max(rows.first - at, 0), min(rows.last - at, batch.num_rows)
                    at += batch.num_rows
                    if low < high:
                        yield pa.Table.from_batches([batch.slice(low, high - low)])
            begins = ends


def make_records(
    con: duckdb.DuckDBPyConnection, rows: pa.Table, options: ImportOptions, at: datetime
) -> Iterator[pa.RecordBatch]:
    """Make raw records of rows that have their ``PLACE``; those that the topic has are left out."""
    for _, column in options.columns:
        # A file may be older than a column.
        if column not in rows.column_names:
            rows = rows.append_column(column, pa.nulls(rows.num_rows, pa.string()))
    rows = rows.cast(
        pa.schema([field.with_type(to_plain_type(to_utc_type(field.type))) for field in rows.schema])
    )
    chosen = records_sql(rows.schema, options, at)
    with con.cursor() as own:
        own.register("history", rows)
        made = own.sql(
            f"SELECT {chosen} FROM history WHERE {kept_sql(rows.schema, options)} ORDER BY {PLACE}"
        )
        yield from made.to_arrow_table().cast(RAW).to_batches()


def to_plain_type(type: pa.DataType) -> pa.DataType:
    """Return a type with lists of any length, and without dictionaries, in whatever they are."""
    if pa.types.is_fixed_size_list(type) or pa.types.is_list(type) or pa.types.is_large_list(type):
        return pa.list_(to_plain_type(type.value_type))
    if pa.types.is_dictionary(type):
        return to_plain_type(type.value_type)
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(to_plain_type(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(to_plain_type(type.key_type), to_plain_type(type.item_type))
    return type


def records_sql(schema: pa.Schema, options: ImportOptions, at: datetime) -> str:
    """Write what makes a raw record of a row."""
    known = {field.name: field.type for field in schema}
    key, value = (take_column(name, options, known) for name in (KEY, VALUE))
    parts = {
        "key": bytes_sql(key, known) if key else "NULL::BLOB",
        "value": bytes_sql(value, known) if value else f"encode({row_sql(known, options)})",
        "topic": quote_literal(options.topic),
        "partition": "0",
        "offset": PLACE,
        "timestamp": time_sql(known, options, at),
        "headers": "NULL::VARCHAR",
    }
    return ", ".join(f"{sql} AS {quote_identifier(name)}" for name, sql in parts.items())


def take_column(name: str, options: ImportOptions, known: Mapping[str, pa.DataType]) -> str:
    """Return the column that something is taken from; empty if none was named, BadRange if it is not there."""
    column = options.named.get(name, "")
    if column and column not in known:
        raise BadRange(
            f"The rows have no column {column!r} (--map {name}={column}).",
            hint=f"their columns are {', '.join(each for each in known if each != PLACE)}.",
        )
    return column


def time_sql(known: Mapping[str, pa.DataType], options: ImportOptions, at: datetime) -> str:
    """Write the instant of a record: that of Kafka where a column has it, else its event time, else the import's.

    An event time that is ahead of the import stands for none: as in a record of the topic, it is too far ahead then.
    """
    now = f"{quote_literal(format_utc_instant(at))}::TIMESTAMPTZ"
    stated = take_column(TIME, options, known)
    found = [instant_sql(stated, known[stated])] if stated in known else []
    event = options.named.get(options.event_time, options.event_time)
    events = [instant_sql(event, known[event])] if event in known else []
    if (value := take_column(VALUE, options, known)) and options.event_time:
        path = quote_literal(f'$."{options.event_time}"')
        member = f"json_extract_string(decode({bytes_sql(value, known)}), {path})"
        events.append(f"TRY_CAST(TRY({member}) AS TIMESTAMPTZ)")
    # Of a NULL and an instant DuckDB's least is the instant.
    event_time = [f"least(coalesce({', '.join(events)}), {now})"] if events else []
    return f"coalesce({', '.join([*found, *event_time, now])})"


def instant_sql(name: str, type: pa.DataType) -> str:
    """Write a column as an instant, NULL where it is none."""
    column = quote_identifier(name)
    if pa.types.is_temporal(type) or is_text(type):
        return f"TRY_CAST({column} AS TIMESTAMPTZ)"
    return "NULL::TIMESTAMPTZ"


def bytes_sql(name: str, known: Mapping[str, pa.DataType]) -> str:
    """Write a column as bytes."""
    column, type = quote_identifier(name), known[name]
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return column
    return f"encode(CAST({column} AS VARCHAR))"


def kept_sql(schema: pa.Schema, options: ImportOptions) -> str:
    """Write the condition of rows that the topic does not have; one without a partition or an offset it has not."""
    if not options.border:
        return "true"
    known = {field.name: field.type for field in schema}
    partition, offset = (quote_identifier(take_column(name, options, known)) for name in (PARTITION, OFFSET))
    place, at = (f"CAST({each} AS BIGINT)" for each in (partition, offset))
    left = " OR ".join(f"({place} = {id} AND {at} >= {first})" for id, first in options.border)
    return f"({left}) IS NOT TRUE"


def row_sql(known: Mapping[str, pa.DataType], options: ImportOptions) -> str:
    """Write a row as JSON text: every column, under the names that were mapped."""
    taken: dict[str, list[str]] = {}
    for ours, theirs in options.columns:
        if ours not in SPECIAL:
            taken.setdefault(theirs, []).append(ours)
    fields = [
        (ours, name, type)
        for name, type in known.items()
        if name != PLACE
        for ours in taken.get(name, [name])
    ]
    bare = {ours for ours, _, type in fields if ours in options.bare and is_text(type)}
    if not bare:
        parts = (
            f"{quote_identifier(ours)} := {json_sql(quote_identifier(name), type)}"
            for ours, name, type in fields
        )
        return f"CAST(to_json(struct_pack({', '.join(parts)})) AS VARCHAR)"
    # DuckDB would make doubles of the numbers in a JSON value: they are put in as the text that they are.
    members = (
        f"{quote_literal(json.dumps(ours, ensure_ascii=False) + ':')}, "
        + (bare_sql(quote_identifier(name)) if ours in bare else member_sql(quote_identifier(name), type))
        for ours, name, type in fields
    )
    inside = ", ',', ".join(members)
    return f"concat('{{', {inside}, '}}')"


def is_text(type: pa.DataType) -> bool:
    """Return whether values are text."""
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type))


def member_sql(column: str, type: pa.DataType) -> str:
    """Write a value as JSON text."""
    return f"coalesce(CAST(to_json({json_sql(column, type)}) AS VARCHAR), 'null')"


def bare_sql(column: str) -> str:
    """Write text of a field that is no text: as it is where it is a number, a truth value, or JSON with members."""
    inner = f"(regexp_matches({column}, '^\\s*[\\[{{]') AND json_valid({column}))"
    plain = f"(regexp_full_match({column}, {quote_literal(BARE)}) OR {inner})"
    return f"coalesce(CASE WHEN {plain} THEN {column} ELSE CAST(to_json({column}) AS VARCHAR) END, 'null')"


def json_sql(value: str, type: pa.DataType) -> str:
    """Write a value as what ``to_json`` writes rightly; ``value`` is SQL."""
    if pa.types.is_timestamp(type):
        utc = value if type.tz is None else f"({value} AT TIME ZONE 'UTC')"
        return f"strftime({utc}, '%Y-%m-%dT%H:%M:%S.%fZ')"
    if pa.types.is_binary(type) or pa.types.is_large_binary(type) or pa.types.is_fixed_size_binary(type):
        return f"base64({value})"
    if pa.types.is_floating(type):
        # Of a REAL the double with its own digits: 1.1, and not what is nearest to it.
        real = f"CAST(CAST({value} AS VARCHAR) AS DOUBLE)" if pa.types.is_float32(type) else value
        odd = f"CASE WHEN isnan({value}) THEN 'NaN' WHEN {value} > 0 THEN 'Infinity' ELSE '-Infinity' END"
        return f"CASE WHEN isfinite({value}) THEN to_json({real}) WHEN {value} IS NOT NULL THEN to_json({odd}) END"
    if pa.types.is_struct(type):
        fields = ", ".join(
            f"{quote_identifier(each.name)} := {json_sql(f'{value}.{quote_identifier(each.name)}', each.type)}"
            for each in type
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({fields}) END"
    if pa.types.is_list(type):
        return f"list_transform({value}, lambda each: {json_sql('each', type.value_type)})"
    if pa.types.is_map(type):
        pair = f"struct_pack(k := CAST(each.key AS VARCHAR), v := {json_sql('each.value', type.item_type)})"
        return f"map_from_entries(list_transform(map_entries({value}), lambda each: {pair}))"
    if pa.types.is_date(type) or pa.types.is_time(type):
        return f"CAST({value} AS VARCHAR)"
    return value
