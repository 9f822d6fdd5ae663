"""What somebody wants imported, and how its rows become records of the pipeline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from seamline.lake.imports.history_facts import History
from seamline.lake.imports.import_options import OFFSET, PARTITION, SPECIAL, TIME, VALUE, ImportOptions
from seamline.lake.imports.staged_rows import CsvDialect
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.formats import registry_of
from seamline.model.errors import BadRange

PROCESSING = "processing_time()"


@dataclass(frozen=True)
class ImportRequest:
    """What somebody wants imported, and how."""

    place: str
    """A file, a folder, a Delta table, or the URL of one in a bucket."""
    actor: str
    """Who wants it."""
    reason: str = ""
    """Why."""
    source: str = ""
    """The source, or the topic, as whose records the rows are validated; empty where there is only one."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column that each field, or ``_key``, ``_value``, ``_kafka_timestamp``, ``_partition``, ``_offset``, is taken
    from, by the field's name."""
    until: datetime | None = None
    """Rows of this event time and later are left to the topic; None for no bound."""
    version: int | None = None
    """The version of a Delta table, None for the newest."""
    disjoint: bool = False
    """Whether somebody declares that no row of the files was, or will be, read from the topic."""
    dialect: CsvDialect = CsvDialect()
    """How CSV is written."""


def find_topic(pipeline: CompiledPipeline, source: str) -> str:
    """Find the topic as whose records rows are validated; BadRange where it is not said, or cannot be one."""
    answers = {each.right for each in pipeline.definition.asks}
    found = [
        (topic, each.source.name)
        for each in pipeline.by_source
        if not each.record.ruling and each.source.name not in answers
        for topic in each.source.topics
    ]
    named = [topic for topic, name in found if source in ("", name, topic)]
    if len(named) == 1:
        return named[0]
    topics = ", ".join(topic for topic, _ in found)
    if source and not named:
        raise BadRange(
            f"{pipeline.name} has no source {source!r} that files can be imported into.",
            hint=f"pass --source with one of: {topics}.",
        )
    raise BadRange(
        f"{pipeline.name} reads several topics; say which one the rows belong to.",
        hint=f"pass --source with one of: {topics}.",
    )


def make_options(
    pipeline: CompiledPipeline, request: ImportRequest, topic: str, *, lines: bool = False
) -> ImportOptions:
    """Return how a row becomes a record; BadRange where it could not, or where rows may be in the topic too.

    Of ``lines`` each is a record as it is.
    """
    columns, source = dict(request.columns), pipeline.source
    fields = [each.name for each in pipeline.record.parsed.fields]
    named = source.event_time if source.event_time in fields else ""
    if lines and columns:
        raise BadRange("JSON lines are imported unchanged, so --map does not apply.", hint="leave out --map.")
    if source.event_time == PROCESSING:
        raise BadRange(
            f"{topic!r} uses processing_time(): every imported row would get today's event time.",
            hint="declare a column as event_time.",
        )
    if lines and (not named or pipeline.format.kind != "json"):
        raise BadRange(
            f"Lines have no Kafka timestamp, and the event time of a record of {topic!r} is not in its JSON.",
            hint="write the records as Parquet, with a column for the bytes and one for the time: "
            "--map _value=COLUMN --map _kafka_timestamp=COLUMN.",
        )
    if lines:
        columns = {VALUE: VALUE}
    require_known_names(columns, fields, topic)
    plain = pipeline.format.kind == "json" and not registry_of(pipeline.format)
    if VALUE not in columns and not plain:
        numbered = " with the number of a schema" if registry_of(pipeline.format) else ""
        raise BadRange(
            f"Records of {topic!r} are {pipeline.format.kind}{numbered}, but rows of files are written as JSON.",
            hint="name the column that has the original bytes: --map _value=COLUMN.",
        )
    readable = named and (VALUE not in columns or plain)
    if not readable and TIME not in columns:
        raise BadRange(
            f"The event time of {topic!r} is not a field of its records, so it cannot stand in for Kafka's timestamp.",
            hint="name a column that has the timestamp: --map _kafka_timestamp=COLUMN.",
        )
    if not (request.until or OFFSET in columns or source.event_id or request.disjoint):
        raise BadRange(
            f"Some rows may be in {topic!r} too, and would count twice.",
            hint="choose one: --until TIME; --map _partition=COLUMN --map _offset=COLUMN; an event_id in the "
            "definition; or --disjoint, if no row is in the topic.",
        )
    text = {"STRING", "DATE", "TIMESTAMP", "BINARY"}
    bare = tuple(each.name for each in pipeline.record.parsed.fields if each.type.spark not in text)
    return ImportOptions(topic, tuple(columns.items()), named, request.until, bare=bare)


def require_known_names(columns: Mapping[str, str], fields: Sequence[str], topic: str) -> None:
    """Raise BadRange where something is mapped that a record does not have, or half of a place."""
    for name, column in columns.items():
        if not name or not column:
            raise BadRange(
                f"--map: {name + '=' + column!r} lacks a name.", hint="for example: --map shop=store."
            )
        # A column whose name another takes may have any that is free.
        if name not in (*fields, *SPECIAL) and column not in columns:
            raise BadRange(
                f"--map: {name!r} is neither a field of {topic!r} nor a part of a Kafka record.",
                hint=f"name one of {', '.join((*fields, *SPECIAL))}.",
            )
    if (PARTITION in columns) != (OFFSET in columns):
        raise BadRange("--map _partition and --map _offset must be given together.", hint="map both.")


def find_time_column(pipeline: CompiledPipeline, options: ImportOptions) -> str:
    """Find the column whose bounds are those of event times; empty where a row's may be another."""
    derived = pipeline.source.event_time in pipeline.source.select or pipeline.record.transform is not None
    if derived or VALUE in options.named:
        return ""
    return options.named.get(options.event_time, options.event_time)


def require_columns(history: History, options: ImportOptions) -> None:
    """Raise BadRange where a column that is mapped is not there, or a field would come from two."""
    names = {*history.columns.names, *(name for each in history.files for name, _ in each.values)}
    taken = {column for _, column in options.columns}
    require_usable_columns(history)
    for ours, theirs in options.columns:
        if theirs not in names:
            raise BadRange(
                f"{history.place!r} has no column {theirs!r} (--map {ours}={theirs}).",
                hint=f"its columns are {', '.join(sorted(names))}.",
            )
        if ours not in SPECIAL and ours in names and ours not in taken:
            raise BadRange(
                f"--map {ours}={theirs}: {history.place!r} has a column {ours!r} already.",
                hint=f"give that column another name too: --map NAME={ours}.",
            )


def require_usable_columns(history: History) -> None:
    """Raise BadRange for names that SQL cannot tell apart, and types that JSON cannot be made of."""
    names = [name.lower() for name in history.columns.names]
    if odd := [name for name in history.columns.names if not name or names.count(name.lower()) > 1]:
        raise BadRange(
            f"{history.place!r} has a column with an empty name, or two whose names differ only in case: {odd[0]!r}.",
            hint="give each column a name of its own.",
        )
    bad = [
        each
        for each in history.columns
        if pa.types.is_decimal256(each.type) or pa.types.is_float16(each.type)
    ]
    if bad:
        raise BadRange(
            f"Column {bad[0].name!r} of {history.place!r} has the unsupported type {bad[0].type}.",
            hint="write it as a DECIMAL of up to 38 digits, or as a double.",
        )
