"""What becomes of an answer in a task: rows for an XCom, within limits, or a file."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seamline.lake.read.answers import Answer
from seamline.lake.read.streamed_answer import StreamedAnswer
from seamline.model.errors import BadRange
from seamline.model.types.exact_json import dump_finite_json
from seamline.serve.query import format_scalar
from seamline.serve.streamed import STREAMS, encode_answer_stream

NARROW = "ask for fewer keys or less time, raise the limit, or give a path."


@dataclass(frozen=True)
class Limits:
    """How much of an answer an XCom may have."""

    rows: int
    """The most rows."""
    bytes: int
    """The most bytes of their JSON."""


def take_rows(stream: StreamedAnswer, limits: Limits) -> str:
    """Return all rows as a JSON array of objects; BadRange, before all are read, if there are too many."""
    taken: list[str] = []
    size = rows = 0
    for batch in stream.batches():
        rows += batch.num_rows
        if rows > limits.rows:
            stream.close()
            raise BadRange(f"The answer has more than {limits.rows} rows (max_rows).", hint=NARROW)
        taken += [dump_finite_json(each, default=format_scalar) for each in batch.to_pylist()]
        size += sum(map(len, taken[len(taken) - batch.num_rows :]))
        if size > limits.bytes:
            stream.close()
            raise BadRange(f"The answer has more than {limits.bytes} bytes of JSON (max_bytes).", hint=NARROW)
    return f"[{', '.join(taken)}]"


def write_file(stream: StreamedAnswer, path: Path) -> Path:
    """Write a file that is there when it is whole; BadRange for an ending that is no format."""
    format = path.suffix.removeprefix(".")
    if format not in STREAMS:
        raise BadRange(
            f"path: {path.name!r} does not end as a format.", hint=f"available: .{', .'.join(STREAMS)}."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        with draft.open("xb") as sink:
            sink.writelines(encode_answer_stream(stream, format))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path


def describe_told(answer: Answer) -> dict[str, Any]:
    """Say in JSON how far an answer is right."""
    return {
        "view": answer.view,
        "version": answer.version,
        "rows": answer.rows,
        "epoch": answer.epoch,
        "complete_to": answer.complete_to,
        "manifest_version": answer.manifest_version,
        "final": answer.final,
        "summary": answer.summary(),
    }
