"""An answer on paper: table, json, csv or parquet, and the footer that says how far it is right."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.table import Table

from seamline.lake.read.answers import Answer
from seamline.model.protocol.seam import Status
from seamline.model.time.intervals import stamp
from seamline.serve.json_lines import json_lines

NOTES = 10
FORMATS = ("table", "json", "csv", "parquet")


def written(
    answer: Answer, format: str, out: TextIO, *, file: Path | None = None, limit: int | None = None
) -> None:
    """Write an answer to ``out``, or to ``file`` (parquet needs one)."""
    rows = answer.table if limit is None else answer.table.slice(0, limit)
    if format == "parquet":
        pyarrow.parquet.write_table(rows.replace_schema_metadata(facts(answer)), file)
    elif file is not None:
        with file.open("w", newline="") as sink:
            written(answer, format, sink, limit=limit)
    else:
        rows_written(rows, format, out)


def rows_written(rows: pa.Table, format: str, out: TextIO) -> None:
    """Write rows as csv, as a JSON object a line, or as a table."""
    if format == "csv":
        as_csv(rows, out)
    elif format == "json":
        out.writelines(json_lines(rows, plain))
    else:
        as_table(rows, out)


def as_csv(rows: pa.Table, out: TextIO) -> None:
    """Write rows as CSV with a header; instants in UTC."""
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(rows, sink)
    out.write(sink.getvalue().to_pybytes().decode())


def as_table(rows: pa.Table, out: TextIO) -> None:
    """Draw rows for people."""
    console = Console(file=out, width=None if out.isatty() else 200)
    table = Table(box=None, pad_edge=False)
    for field in rows.schema:
        table.add_column(field.name, justify="right" if numeric(field.type) else "left")
    for row in rows.to_pylist():
        table.add_row(*(shown(value) for value in row.values()))
    console.print(table)


def numeric(type: pa.DataType) -> bool:
    """Return whether a column is set flush right."""
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def shown(value: Any) -> str:
    """Write one cell."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(plain(value))


def plain(value: Any) -> Any:
    """Write a value that JSON has no word for."""
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.hex() if isinstance(value, bytes) else str(value)


def facts(answer: Answer) -> dict[str, str]:
    """Return what is known of the answer, as metadata of a file."""
    return {
        "seamline.view": answer.view,
        "seamline.side": answer.side.value,
        "seamline.complete_to": str(answer.complete_to),
        "seamline.complete_to_max": str(answer.complete_to_max),
        "seamline.exact_duplicates_to": str(answer.exact_duplicates_to),
        "seamline.final": str(answer.final).lower(),
        "seamline.manifest_version": str(answer.manifest_version),
    }


def footer(answer: Answer) -> str:
    """Say up to which epoch the answer counts, how far duplicates are exact, which days are certified."""
    return "\n".join(
        [f"{answer.table.num_rows} rows. {answer.summary()}", *certified(answer), *notes(answer)]
    )


def notes(answer: Answer) -> list[str]:
    """Tell of each interval that a person's decision serves who that was, and why."""
    told = [f"  {short(id)} {note}" for id, note in answer.intervals.notes().items()]
    more = [f"  ... and {len(told) - NOTES} more"] if len(told) > NOTES else []
    return [*told[:NOTES], *more]


def certified(answer: Answer) -> list[str]:
    """Name the intervals by status, neighbours joined."""
    lines = []
    for status in Status:
        runs = answer.intervals.runs(status)
        if runs:
            spelled = [short(a) if a == b else f"{short(a)}..{short(b)}" for a, b in runs]
            more = f" and {len(spelled) - 6} more" if len(spelled) > 6 else ""
            lines.append(f"{status.value}: {', '.join(spelled[:6])}{more}")
    return lines


def short(id: str) -> str:
    """Write a day without its midnight."""
    return id.removesuffix("T00:00:00Z")
