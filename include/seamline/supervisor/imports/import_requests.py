"""What somebody wants imported, and how its rows become records of the pipeline's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from seamline.lake.imports.history_facts import History
from seamline.lake.imports.import_options import OFFSET, PARTITION, SPECIAL, TIME, VALUE, ImportOptions
from seamline.lake.imports.staged_rows import CsvDialect
from seamline.model.compile.compiled_pipeline import CompiledPipeline
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
    """Fields, or ``_key``, ``_value``, ``_kafka_timestamp``, ``_partition``, ``_offset``, by the columns' names."""
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
    raise BadRange(
        f"{pipeline.name} has no source {source!r} that rows could be imported to."
        if source and not named
        else f"{pipeline.name} reads several topics, and it is not said of which the rows are.",
        hint=f"name one by --source: {', '.join(topic for topic, _ in found)}.",
    )


def make_options(
    pipeline: CompiledPipeline, request: ImportRequest, topic: str, *, lines: bool = False
) -> ImportOptions:
    """Return how a row becomes a record; BadRange where it could not, or where rows may be in the topic too.

    Of ``lines`` each is a record as it is.
    """
    columns, source = dict(request.columns), pipeline.source
    if lines and columns:
        raise BadRange(
            "Lines are records as they are: nothing is taken from columns.", hint="leave out --map."
        )
    if lines:
        columns = {VALUE: VALUE}
    if odd := [name for name in columns if name.startswith("_") and name not in SPECIAL]:
        raise BadRange(
            f"--map names {odd[0]!r}, which is no part of a record.",
            hint=f"name a field, or one of {', '.join(SPECIAL)}.",
        )
    if VALUE not in columns and pipeline.format.kind != "json":
        raise BadRange(
            f"Records of {topic!r} are {pipeline.format.kind}, and rows become JSON.",
            hint="name the column that has the original bytes: --map _value=COLUMN.",
        )
    if source.event_time == PROCESSING:
        raise BadRange(
            f"The event time of {topic!r} is when a record is processed: rows of files would all be of now.",
            hint="declare a column as event_time.",
        )
    named = source.event_time if source.event_time in {f.name for f in pipeline.record.parsed.fields} else ""
    readable = named and (VALUE not in columns or pipeline.format.kind == "json")
    if not readable and TIME not in columns:
        raise BadRange(
            "Nothing says when the topic had these records.",
            hint="name a column: --map _kafka_timestamp=COLUMN.",
        )
    if (PARTITION in columns) != (OFFSET in columns):
        raise BadRange("Rows are known by partition and offset.", hint="map both _partition and _offset.")
    if not (request.until or OFFSET in columns or source.event_id or request.disjoint):
        raise BadRange(
            f"The rows may be in {topic!r} too, and nothing says which: they would count twice.",
            hint="pass --until, or --map _partition=COLUMN --map _offset=COLUMN, or declare an event_id; or "
            "--disjoint, if you know that none is.",
        )
    text = {"STRING", "DATE", "TIMESTAMP", "BINARY"}
    bare = tuple(f.name for f in pipeline.record.parsed.fields if f.type.spark not in text)
    return ImportOptions(topic, tuple(columns.items()), named, request.until, bare=bare)


def find_time_column(pipeline: CompiledPipeline, options: ImportOptions) -> str:
    """Find the column whose bounds are those of event times; empty where a row's may be another."""
    derived = pipeline.source.event_time in pipeline.source.select or pipeline.record.transform is not None
    if derived or VALUE in options.named:
        return ""
    return options.named.get(options.event_time, options.event_time)


def require_columns(history: History, options: ImportOptions) -> None:
    """Raise BadRange where a column that is mapped is not there, or a field would come from two."""
    names = {*history.columns.names, *(name for each in history.files for name, _ in each.values)}
    require_usable_columns(history)
    for ours, theirs in options.columns:
        if theirs not in names:
            raise BadRange(
                f"{history.place!r} has no column {theirs!r}, which --map takes {ours} from.",
                hint=f"it has {', '.join(sorted(names))}.",
            )
        if (
            ours not in SPECIAL
            and ours in names
            and ours != theirs
            and ours not in {each for _, each in options.columns}
        ):
            raise BadRange(
                f"{history.place!r} has a column {ours!r} already, and --map takes {ours} from {theirs!r}.",
                hint=f"map the other one too: --map NAME={ours}.",
            )


def require_usable_columns(history: History) -> None:
    """Raise BadRange for names that SQL cannot tell apart, and types that JSON cannot be made of."""
    names = [name.lower() for name in history.columns.names]
    if odd := [name for name in history.columns.names if not name or names.count(name.lower()) > 1]:
        raise BadRange(
            f"{history.place!r} has a column {odd[0]!r} that is empty, or differs from another in its case only.",
            hint="give each column a name of its own.",
        )
    bad = [
        each.name
        for each in history.columns
        if pa.types.is_decimal256(each.type) or pa.types.is_float16(each.type)
    ]
    if bad:
        raise BadRange(
            f"Column {bad[0]!r} of {history.place!r} is of a type that is not read: "
            f"{history.columns.field(bad[0]).type}.",
            hint="write it as a DECIMAL of up to 38 digits, or as a double.",
        )
