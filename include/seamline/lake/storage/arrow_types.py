"""Arrow types and table schemas by the Spark types of a definition."""

from __future__ import annotations

import pyarrow as pa

from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.time.window_arithmetic import Gaps
from seamline.model.types.schema import SqlType, TypeKind, parse_type

INSTANT = pa.timestamp("us", tz="UTC")
ARROW = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": INSTANT,
    "BINARY": pa.binary(),
}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
COORDINATES = pa.schema(
    [
        ("_topic", pa.string()),
        ("_topic_id", pa.string()),
        ("_partition", pa.int32()),
        ("_offset", pa.int64()),
        ("_kafka_timestamp", INSTANT),
        ("_key", pa.binary()),
        ("_value", pa.binary()),
        ("_headers", HEADERS),
        ("_epoch", pa.int64()),
        ("_record_version", pa.string()),
    ]
)


def arrow_type(spark: str) -> pa.DataType:
    """Return the Arrow type of a Spark type."""
    return ARROW.get(spark) or arrow_of(parse_type(spark, ""))


def arrow_of(type: SqlType) -> pa.DataType:
    """Return the Arrow type of a type, part by part."""
    match type.kind:
        case TypeKind.DECIMAL:
            return pa.decimal128(type.precision, type.scale)
        case TypeKind.STRUCT:
            return pa.struct([(field.name, arrow_of(field.type)) for field in type.fields])
        case TypeKind.ARRAY:
            assert type.element is not None
            return pa.list_(arrow_of(type.element))
        case TypeKind.MAP:
            assert type.element is not None
            return pa.map_(pa.string(), arrow_of(type.element))
    return ARROW[type.kind.value]


def master_schema(pipeline: CompiledPipeline) -> pa.Schema:
    """Return the master's columns: coordinates, event time, where the row belongs, parsed and derived columns."""
    own = [*pipeline.record.flags, *pipeline.schema.fields]
    columns = [pa.field(field.name, arrow_type(field.type.spark)) for field in own]
    return pa.schema([*COORDINATES, pa.field("_event_time", INSTANT), *columns])


QUARANTINE = pa.schema([*COORDINATES, pa.field("_reason", pa.string()), pa.field("_detail", pa.string())])


def state_fields(view: CompiledView) -> list[pa.Field]:
    """List the state columns of a view."""
    return [pa.field(part.name, arrow_type(part.type)) for part in view.parts]


def late_names(view: CompiledView) -> list[str]:
    """List the state columns that earlier releases kept none of."""
    return [part.name for part in view.parts if part.late]


def key_fields(view: CompiledView) -> list[pa.Field]:
    """List the key columns of a view."""
    return [pa.field(key.name, arrow_type(key.type.spark)) for key in view.keys]


def decoration_fields(view: CompiledView) -> list[pa.Field]:
    """List the columns of look-ups that a view's presented rows have."""
    shown = (field for join in view.decorations for _, field in join.columns)
    return [pa.field(field.name, arrow_type(field.type.spark)) for field in shown]


def partial_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of partial states before an epoch owns them: keys, pane, rows, states.

    Of a partial session ``pane`` is the first instant, and ``_last`` the last.
    """
    places = ["pane", "_last"] if isinstance(view.windows, Gaps) else ["pane"]
    instants = [pa.field(name, INSTANT) for name in places]
    return pa.schema([*key_fields(view), *instants, pa.field("rows", pa.int64()), *state_fields(view)])


def slices_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of a view's slices."""
    span = [pa.field("from_epoch", pa.int64()), pa.field("to_epoch", pa.int64())]
    return pa.schema([*partial_schema(view), *span])


def generations_schema(view: CompiledView) -> pa.Schema:
    """Return the columns of a view's generations; ``interval`` is the Delta partition column."""
    return pa.schema(
        [*partial_schema(view), pa.field("generation", pa.string()), pa.field("interval", pa.string())]
    )
