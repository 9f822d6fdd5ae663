"""An answer on paper: rows as a table, json or csv, and the footer that says how far they are right."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.table import Table

from seamline.lake.read.answers import Answer
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import format_utc_instant
from seamline.model.types.exact_json import dump_finite_json
from seamline.serve.json_lines import json_lines

NOTES = 10


def rows_written(rows: pa.Table, format: str, out: TextIO) -> None:
    """Write rows as csv, as a JSON object a line, or as a table."""
    if format == "csv":
        as_csv(rows, out)
    elif format == "json":
        out.writelines(json_lines(rows, format_scalar))
    else:
        as_table(rows, out)


def as_csv(rows: pa.Table, out: TextIO) -> None:
    """Write rows as CSV with a header; instants in UTC, lists and the like as JSON."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            values = rows[field.name].to_pylist()
            texts = [
                None if each is None else dump_finite_json(each, default=format_scalar) for each in values
            ]
            rows = rows.set_column(at, field.name, pa.array(texts, pa.string()))
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(rows, sink)
    out.write(sink.getvalue().to_pybytes().decode())


def as_table(rows: pa.Table, out: TextIO) -> None:
    """Draw rows for people."""
    console = Console(file=out, width=None if out.isatty() else 200)
    table = Table(box=None, pad_edge=False)
    for field in rows.schema:
        table.add_column(field.name, justify="right" if is_numeric_type(field.type) else "left")
    for row in rows.to_pylist():
        table.add_row(*(format_cell(value) for value in row.values()))
    console.print(table)


def is_numeric_type(type: pa.DataType) -> bool:
    """Return whether a column is set flush right."""
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def format_cell(value: Any) -> str:
    """Format one cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(format_scalar(value))


def format_scalar(value: Any) -> Any:
    """Format a value that JSON cannot express."""
    if isinstance(value, datetime):
        return format_utc_instant(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex() if isinstance(value, bytes) else str(value)


def build_answer_metadata(answer: Answer) -> dict[str, str]:
    """Build what is known of the answer, as metadata of a file."""
    return {
        "seamline.view": answer.view,
        "seamline.side": answer.side.value,
        "seamline.complete_to": str(answer.complete_to),
        "seamline.complete_to_max": str(answer.complete_to_max),
        "seamline.exact_duplicates_to": str(answer.exact_duplicates_to),
        "seamline.final": str(answer.final).lower(),
        "seamline.manifest_version": str(answer.manifest_version),
    }


def format_answer_footer(answer: Answer) -> str:
    """Describe up to which epoch the answer counts, how far duplicates are exact, which days are certified."""
    return "\n".join(
        [
            f"{answer.rows} rows. {answer.summary()}",
            *format_interval_statuses(answer),
            *format_interval_notes(answer),
        ]
    )


def format_interval_notes(answer: Answer) -> list[str]:
    """Describe who decided to serve an interval, and why, for each that is served by a decision."""
    told = [f"  {shorten_interval_id(id)} {note}" for id, note in answer.intervals.notes().items()]
    more = [f"  ... and {len(told) - NOTES} more"] if len(told) > NOTES else []
    return [*told[:NOTES], *more]


def format_interval_statuses(answer: Answer) -> list[str]:
    """List the intervals by status, neighbours joined."""
    lines = []
    for status in Status:
        runs = answer.intervals.runs(status)
        if runs:
            spelled = [
                shorten_interval_id(a) if a == b else f"{shorten_interval_id(a)}..{shorten_interval_id(b)}"
                for a, b in runs
            ]
            more = f" and {len(spelled) - 6} more" if len(spelled) > 6 else ""
            lines.append(f"{status.value}: {', '.join(spelled[:6])}{more}")
    return lines


def shorten_interval_id(id: str) -> str:
    """Shorten the id of a day by its midnight."""
    return id.removesuffix("T00:00:00Z")
