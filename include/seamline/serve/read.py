"""`seamline.read`: the merged answer in one call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from seamline.lake.read.answers import Answer
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import layout as places
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.table_format import require_format
from seamline.lake.tables.view_versions import find_view
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.errors import BadRange
from seamline.model.protocol.seam import Phase, Side
from seamline.model.time.intervals import parse_moment

EPOCH = re.compile(r"\d{1,18}", re.ASCII)

if TYPE_CHECKING:
    import pandas as pd

Moment = str | datetime


@overload
def read(
    view: str,
    where: str | None = ...,
    start: Moment | None = ...,
    end: Moment | None = ...,
    as_of: int | Moment | None = ...,
    side: str = ...,
    *,
    version: str = ...,
    phases: Sequence[str] = ...,
    served_at: Moment | None = ...,
    format: Literal["arrow"] = ...,
    warehouse: Path | None = ...,
    definitions: Path | None = ...,
) -> pa.Table: ...
@overload
def read(
    view: str,
    where: str | None = ...,
    start: Moment | None = ...,
    end: Moment | None = ...,
    as_of: int | Moment | None = ...,
    side: str = ...,
    *,
    version: str = ...,
    phases: Sequence[str] = ...,
    served_at: Moment | None = ...,
    format: Literal["pandas"],
    warehouse: Path | None = ...,
    definitions: Path | None = ...,
) -> pd.DataFrame: ...
@overload
def read(
    view: str,
    where: str | None = ...,
    start: Moment | None = ...,
    end: Moment | None = ...,
    as_of: int | Moment | None = ...,
    side: str = ...,
    *,
    version: str = ...,
    phases: Sequence[str] = ...,
    served_at: Moment | None = ...,
    format: Literal["answer"],
    warehouse: Path | None = ...,
    definitions: Path | None = ...,
) -> Answer: ...


def read(
    view: str,
    where: str | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    as_of: int | Moment | None = None,
    side: str = "merged",
    *,
    version: str = "",
    phases: Sequence[str] = (),
    served_at: Moment | None = None,
    format: str = "arrow",
    warehouse: Path | None = None,
    definitions: Path | None = None,
) -> Any:
    """
    Answer for ``PIPELINE.VIEW``: one row per key and window that starts in ``[start, end)``, UTC.

    ``where`` is a Spark SQL condition on the key columns; ``as_of`` an epoch or an instant, for which what is
    published now answers; ``served_at`` an instant, for what was answered then; ``side`` is ``merged``, ``batch`` or
    ``speed``; ``format`` is ``arrow``, ``pandas``, or ``answer`` for the table together with how far it is right.
    The version that is served answers; ``version`` is the fingerprint of another. ``phases`` keeps rows that are
    ``early`` (before the window closes), ``complete`` or ``late`` (corrected since).
    Raises NotFound, BadRange, ExpressionError, ReadUnstable.
    """
    if format not in ("arrow", "pandas", "answer"):
        raise BadRange(f"{format!r} is not a format.", hint='use "arrow", "pandas" or "answer".')
    name, _, view_name = view.partition(".")
    pipeline = load_cached_catalog(definitions or places.definitions_folder()).pipeline(name)
    layout = require_format(Layout(warehouse or places.warehouse_folder(), pipeline.name))
    found = read_merged_answer(
        pipeline,
        find_view(pipeline, layout, view_name),
        layout,
        where=where,
        start=parse_time_bound(start),
        end=parse_time_bound(end),
        as_of=epoch_or_moment(as_of),
        served_at=parse_time_bound(served_at),
        side=side_of(side),
        version=version,
    )
    if phases:
        found = found.only([phase_of(each) for each in ([phases] if isinstance(phases, str) else phases)])
    if format == "answer":
        return found
    return found.table if format == "arrow" else found.table.to_pandas()


def parse_time_bound(given: Moment | None) -> datetime | None:
    """Parse a bound; without a zone it is UTC."""
    return None if given is None else parse_moment(given if isinstance(given, str) else given.isoformat())


def epoch_or_moment(given: int | Moment | None) -> int | datetime | None:
    """Read ``as_of``: digits are an epoch, everything else an instant."""
    if given is None or isinstance(given, int):
        return given
    return int(given) if isinstance(given, str) and EPOCH.fullmatch(given) else parse_time_bound(given)


def phase_of(name: str) -> Phase:
    """Parse a phase's name."""
    try:
        return Phase(name)
    except ValueError:
        raise BadRange(f"{name!r} is not a phase.", hint="use early, complete or late.") from None


def side_of(name: str) -> Side:
    """Parse a side's name."""
    try:
        return Side(name)
    except ValueError:
        raise BadRange(f"{name!r} is not a side.", hint="use merged, batch or speed.") from None
