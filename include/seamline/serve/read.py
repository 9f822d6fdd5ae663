"""`seamline.read`: the merged answer in one call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import pyarrow as pa

from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import layout as places
from seamline.lake.store.locations import Location
from seamline.lake.tables.table_format import require_format
from seamline.lake.tables.view_versions import find_view
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.errors import BadRange
from seamline.model.protocol.read_request import ReadOptions, ReadRequest
from seamline.serve.answer_age import read_within_age
from seamline.serve.streamed import describe_pinned_state, stream_answer

if TYPE_CHECKING:
    import pandas as pd


@overload
def read(
    view: str,
    where: str | None = ...,
    *,
    format: Literal["arrow"] = ...,
    warehouse: str | Location | None = ...,
    definitions: Path | None = ...,
    max_age: float | None = ...,
    **options: Unpack[ReadOptions],
) -> pa.Table: ...
@overload
def read(
    view: str,
    where: str | None = ...,
    *,
    format: Literal["pandas"],
    warehouse: str | Location | None = ...,
    definitions: Path | None = ...,
    max_age: float | None = ...,
    **options: Unpack[ReadOptions],
) -> pd.DataFrame: ...
@overload
def read(
    view: str,
    where: str | None = ...,
    *,
    format: Literal["answer"],
    warehouse: str | Location | None = ...,
    definitions: Path | None = ...,
    max_age: float | None = ...,
    **options: Unpack[ReadOptions],
) -> Answer: ...
@overload
def read(
    view: str,
    where: str | None = ...,
    *,
    format: Literal["batches"],
    warehouse: str | Location | None = ...,
    definitions: Path | None = ...,
    max_age: float | None = ...,
    **options: Unpack[ReadOptions],
) -> pa.RecordBatchReader: ...


def read(
    view: str,
    where: str | None = None,
    *,
    format: str = "arrow",
    warehouse: str | Location | None = None,
    definitions: Path | None = None,
    max_age: float | None = None,
    **options: Unpack[ReadOptions],
) -> Any:
    """
    Answer for ``PIPELINE.VIEW``: one row per key and window that starts in ``[start, end)``, UTC.

    ``where`` is a Spark SQL condition on the key columns; ``format`` is ``arrow``, ``pandas``, ``answer`` for the
    table together with how far it is right, or ``batches`` for a reader of an answer of any size: batches of final
    rows, of one state of the tables, in bounded memory (``SEAMLINE_READ_MEMORY``). Options: ``start`` and ``end``,
    instants; ``as_of``, an epoch or an instant, up to which what is published now answers; ``served_at``, an instant,
    for what was answered then; ``side``, which is ``merged``, ``batch`` or ``speed``; ``version``, the fingerprint of
    a version that is not served; ``phases``, which keeps rows that are ``early`` (before the window closes),
    ``complete`` or ``late`` (corrected since). With ``max_age``, in seconds, an answer from a bucket may lack what was
    committed later than that ago, and need not wait for the store; ``SEAMLINE_STORE_MAX_AGE`` says it for all.
    Raises NotFound, BadRange, ExpressionError, ReadUnstable.
    """
    if format not in ("arrow", "pandas", "answer", "batches"):
        raise BadRange(f"{format!r} is not a format.", hint='use "arrow", "pandas", "answer" or "batches".')
    if format == "batches":
        stream = stream_answer(
            view, where, warehouse=warehouse, definitions=definitions, max_age=max_age, **options
        )
        return stream.reader(describe_pinned_state(stream))
    request = ReadRequest.parse(where, **options)
    name, _, view_name = view.partition(".")
    pipeline = load_cached_catalog(definitions or places.definitions_folder()).pipeline(name)
    layout = places.locate_tables(pipeline.name, warehouse)
    with read_within_age((layout, view_name, request.side), max_age) as reading:
        require_format(layout)
        found = read_merged_answer(pipeline, find_view(pipeline, layout, view_name), layout, request)
    if format == "answer":
        return replace(found, seen_at=reading.seen_at)
    return found.table if format == "arrow" else found.table.to_pandas()
