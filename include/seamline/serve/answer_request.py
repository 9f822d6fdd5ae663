"""What a request by HTTP asks for, and the answer in its format: typed filters, pages, a tag for what is unchanged."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO, StringIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from seamline.lake.read.answers import Answer
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import BadRange
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.model.types.decimals import rescale_decimal
from seamline.model.types.exact_json import dump_finite_json
from seamline.model.types.schema import Field, TypeKind
from seamline.runtime.deadline import in_time
from seamline.serve.bi import quote_spark_name, quote_spark_string
from seamline.serve.query import as_csv, format_scalar

MOST_ROWS = 10_000
MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
WHOLE = re.compile(r"[+-]?\d{1,19}", re.ASCII)
DIGITS = re.compile(r"[+-]?(\d{1,80}(\.\d{0,80})?|\.\d{1,80})([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class AnswerPage:
    """Which rows of an answer are sent, and how."""

    limit: int = 1000
    """Rows."""
    offset: int = 0
    """Rows before the page."""
    format: str = "json"
    """A key of MEDIA."""


def key_condition_sql(
    view: CompiledView, keys: Mapping[str, Sequence[str]], nulls: Sequence[str] = ()
) -> str | None:
    """Write the condition that each key has one of some values, which are text, or may be NULL; None for no key.

    BadRange for a key that the view does not have, or a value that is not of its type.
    """
    known = {key.name: key for key in view.keys}
    parts = []
    for name in dict.fromkeys([*keys, *nulls]):
        if name not in known:
            raise BadRange(
                f"{view.qualified} has no key {name!r}.", hint=f"its keys: {', '.join(known) or 'none'}."
            )
        either = [
            f"{quote_spark_name(name)} = {key_literal_sql(known[name], value)}"
            for value in keys.get(name, ())
        ]
        either += [f"{quote_spark_name(name)} IS NULL"] if name in nulls else []
        parts.append(f"({' OR '.join(either)})")
    return " AND ".join(parts) or None


def list_asked_keys(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Read the values that keys may have from a request: ``key.NAME=VALUE``, which may be repeated."""
    keys: dict[str, list[str]] = {}
    for name, value in items:
        if name.startswith("key."):
            keys.setdefault(name.removeprefix("key."), []).append(value)
    return keys


def one_key(items: Iterable[tuple[str, str]]) -> dict[str, str | None]:
    """Read one value for each key from a request: ``key.NAME=VALUE``, or ``null=NAME`` for one that is NULL."""
    found: dict[str, str | None] = {}
    for name, value in items:
        if name.startswith("key."):
            found[name.removeprefix("key.")] = value
        elif name == "null":
            found[value] = None
    return found


def key_literal_sql(key: Field, text: str) -> str:
    """Write a value of a key's type in Spark SQL; BadRange for text that spells none."""
    try:
        match key.type.kind:
            case TypeKind.STRING:
                return quote_spark_string(text)
            case TypeKind.INT | TypeKind.BIGINT if WHOLE.fullmatch(text):
                return str(int(text))
            case TypeKind.DECIMAL if DIGITS.fullmatch(text):
                return f"CAST('{rescale_decimal(text, key.type.precision, key.type.scale):f}' AS {key.type.spark})"
            case TypeKind.BOOLEAN if text in ("true", "false"):
                return text
            case TypeKind.DATE:
                return f"DATE '{date.fromisoformat(text).isoformat()}'"
            case TypeKind.TIMESTAMP:
                return f"TIMESTAMP '{format_utc_instant(parse_moment(text))}'"
    except ValueError:
        pass
    raise BadRange(
        f"{text!r} is not a valid {key.type.spark}, the type of {key.name}.",
        hint="write it as the CLI shows it.",
    )


def hash_etag(body: bytes) -> str:
    """Name what is sent: whatever an answer depends on, the same bytes have the same tag."""
    return f'"{hashlib.sha256(body).hexdigest()[:24]}"'


def is_unchanged(mark: str, headers: Iterable[str]) -> bool:
    """Return whether one of the tags in ``If-None-Match`` is that of what would be sent, weak or not, or any is."""
    tags = [tag.strip() for header in headers for tag in header.split(",")]
    return "*" in tags or mark in [tag.removeprefix("W/") for tag in tags]


def encode_answer_page(answer: Answer, page: AnswerPage) -> bytes:
    """Encode a page, whose rows an answer has, in the format that is asked for."""
    rows = answer.table
    if page.format == "arrow":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        found: bytes = sink.getvalue().to_pybytes()
        return found
    if page.format == "parquet":
        file = BytesIO()
        pq.write_table(rows, file)
        return file.getvalue()
    if page.format == "csv":
        out = StringIO()
        as_csv(rows, out)
        return out.getvalue().encode()
    return as_json({"rows": rows.to_pylist(), **describe_answer_page(answer, page)}).encode()


def as_json(found: Any) -> str:
    """Write JSON; a double that is no number is null."""
    return dump_finite_json(found, default=format_scalar)


def describe_answer_page(answer: Answer, page: AnswerPage) -> dict[str, Any]:
    """Describe how far an answer is right, and where its next page begins."""
    end = page.offset + page.limit
    return {
        "view": answer.view,
        "version": answer.version,
        "side": answer.side.value,
        "total": answer.rows,
        "next_offset": end if end < answer.rows else None,
        "epoch": answer.epoch,
        "complete_to": answer.complete_to,
        "complete_to_max": answer.complete_to_max,
        "exact_duplicates_to": answer.exact_duplicates_to,
        "manifest_version": answer.manifest_version,
        "final": answer.final,
        "summary": answer.summary(),
        "intervals": {
            id: {
                "status": each.status.value,
                "cut": each.cut,
                "generation": each.generation,
                "rows_since": each.rows_since,
                "complete_to": each.complete_to,
                "note": each.note,
                "missing": each.missing,
            }
            for id, each in in_time(answer.intervals.listed())
        },
    }
