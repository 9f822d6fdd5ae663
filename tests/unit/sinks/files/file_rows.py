"""What files of a sink say to somebody who reads them as docs/sinks-files.md tells."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from tests.e2e.sinks.served_rows import ServedRows

from seamline import FileSink
from seamline.lake.store.fetched_files import localize_files
from seamline.lake.store.locations import Location
from seamline.serve.query import format_scalar
from seamline.sinks.files.reading import list_current_files
from seamline.sinks.files.target import FileTarget

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "sinks-files.md"


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_796_000_000.0

    def __call__(self) -> float:
        return self.now


def make_sink(place: Location, **more: Any) -> FileSink:
    """Declare a sink into files at a place."""
    return FileSink("by_till", path=str(place / "out"), **more)


def make_target(place: Location, served: ServedRows, clock: Callable[[], float], **more: Any) -> FileTarget:
    """Make a target of a view's."""
    return FileTarget(make_sink(place, **more), served.view, clock)


def list_texts(place: Location) -> list[str]:
    """List the files that count as paths on this machine."""
    return localize_files(list_current_files(str(place / "out")))


def read_by_query(place: Location, identity: list[str]) -> list[dict[str, Any]]:
    """Read Parquet files with the query of the documentation."""
    [query] = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    query = query.replace("/exports/by_customer", str(place / "out"))
    query = query.replace("customer, window_start, window_end", ", ".join(identity))
    settings, last, select = query.partition("SELECT * EXCLUDE")
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute(settings)
        return con.sql(last + select).to_arrow_table().to_pylist()


def read_rows(place: Location, identity: list[str]) -> dict[str, dict[str, Any]]:
    """Read files of either format line by line, in plain Python: the newest row of each place."""
    found: dict[str, dict[str, Any]] = {}
    for row in read_changes(place):
        key = spell([row[name] for name in identity])
        if key not in found or row["_version"] > found[key]["_version"]:
            found[key] = row
    marks = ("_version", "_deleted")
    return {
        key: {name: value for name, value in row.items() if name not in marks}
        for key, row in found.items()
        if not row["_deleted"]
    }


def read_changes(place: Location) -> list[dict[str, Any]]:
    """Read all rows of the files that count."""
    found: list[dict[str, Any]] = []
    for path in list_texts(place):
        if path.endswith(".jsonl"):
            found += [json.loads(line) for line in Path(path).read_text().splitlines()]
        else:
            with pq.ParquetFile(path) as file:
                found += file.read().to_pylist()
    return found


def expect_rows(served: ServedRows, identity: list[str], *, as_json: bool = False) -> dict[str, Any]:
    """Return the rows that there should be, by place."""
    hidden = ("__state",)
    found = {}
    for row in served.as_table().to_pylist():
        kept = {name: value for name, value in row.items() if not is_state(name) and name not in hidden}
        if as_json:
            kept = json.loads(json.dumps(finite(kept), default=plain))
        found[spell([kept[name] for name in identity])] = kept
    return found


def is_state(name: str) -> bool:
    """Return whether a column is the state of a sketch."""
    return "__" in name and not name.endswith("__beyond")


def finite(value: Any) -> Any:
    """Return a value in which what is no number is null."""
    match value:
        case float():
            return value if abs(value) < float("inf") else None
        case dict():
            return {name: finite(each) for name, each in value.items()}
        case list():
            return [finite(each) for each in value]
    return value


def plain(value: Any) -> Any:
    """Return what JSON has of a value."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    text = format_scalar(value)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def spell(value: Any) -> str:
    """Write a value so that equal ones are equal."""
    return json.dumps(value, default=format_scalar, sort_keys=True)


def spell_all(rows: dict[str, Any]) -> dict[str, str]:
    """Write rows so that equal ones are equal, NaN too."""
    return {key: spell(row) for key, row in rows.items()}
