"""What a record may cost: one beyond it is kept with its reason, before anything is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.records import batch, judged, kernel_run, pipeline

from seamline import Avro
from seamline.kernel.bounds import LARGE, MANY
from seamline.kernel.formats.avro import AvroReader
from seamline.model.compiled import compile_pipeline
from seamline.model.schema import Schema
from seamline.model.stored import from_json, to_json

AT = "2024-03-01T10:00:00Z"
SCHEMA = "id INT, at TIMESTAMP, items ARRAY<INT>"


def value(**more: object) -> bytes:
    """Write a record."""
    return json.dumps({"id": 1, "at": AT, **more}).encode()


def test_a_record_out_of_bounds_is_refused_and_nothing_else_is() -> None:
    """Those at the bound are sane; key and value count together."""
    made = pipeline(SCHEMA, max_record_bytes=150, max_record_parts=20)
    exact, beyond = value(items=list(range(18))), value(items=list(range(19)))
    long = value(note="x" * 150)
    keys = [None, None, None, b"k" * 150, b"k"]
    found = judged(made, [exact, beyond, long, value(), None], keys=keys)
    assert found[0]["items"] == list(range(18))
    assert found[1:] == [
        [MANY, "21 parts"],
        [LARGE, f"{len(long)} bytes"],
        [LARGE, f"{len(value()) + 150} bytes"],
        ["tombstone", ""],
    ]


def test_text_is_no_part_of_it_in_formats_that_are_not_json() -> None:
    """A comma between two cells, or in a packed number, is nobody's member."""
    line = "1,2024-03-01T10:00:00Z," + '"' + "," * 50 + '"'
    [row] = judged(
        pipeline("id INT, at TIMESTAMP, note STRING", format="csv", max_record_parts=20), [line.encode()]
    )
    assert row["note"] == "," * 50


def test_all_records_may_be_out_of_bounds(tmp_path: Path) -> None:
    """An epoch of nothing else is an epoch."""
    made = compile_pipeline(pipeline(SCHEMA, max_record_bytes=10))
    result = kernel_run(tmp_path, made, batch([value()] * 3))
    assert (dict(result.accepted), dict(result.refused)) == ({}, {LARGE: 3})


def test_a_definition_without_bounds_of_its_own_keeps_its_version() -> None:
    """Versions of before there were bounds keep their names; another bound judges again what was refused."""
    plain = compile_pipeline(pipeline(SCHEMA, max_past="30 days"))
    assert (plain.record_version, plain.views[0].fingerprint) == ("72bf45c2a6ec", "b580780fada6")
    unsaid = compile_pipeline(pipeline(SCHEMA))
    assert (unsaid.record_version, unsaid.views[0].fingerprint) == ("2dc81f1d79e3", "9df324ae8fd9")
    wider = pipeline(SCHEMA, max_past="30 days", max_record_bytes=100_000_000)
    assert compile_pipeline(wider).record_version != plain.record_version
    assert (
        compile_pipeline(from_json(to_json(wider))).record_version == compile_pipeline(wider).record_version
    )
    again = replace(wider, source=replace(wider.source, max_record_bytes=64_000_000))
    assert compile_pipeline(again).record_version == plain.record_version


BOMB = """
import resource, sys
from tests.unit.test_bounds import decoded
resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
print(decoded(sys.argv[1]))
"""
INNER = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}


def decoded(which: str) -> str:
    """Read a record that is small and stands for something huge; give the error's name."""
    inner = {"deep": ["null", INNER], "long": {"type": "array", "items": "null"}}[which]
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": inner}]}
    content = {"deep": b"\x02" * 50_000, "long": b"\x80\xa8\xd6\xb9\x07"}[which]
    reader = AvroReader(Avro(json.dumps(schema)), Schema(()))
    text, trouble = reader.attempt(content + b"\x00")
    return f"{text} {(trouble or '').split(':')[0]}"


@pytest.mark.parametrize(("which", "error"), [("deep", "RecursionError"), ("long", "MemoryError")])
def test_a_small_record_that_stands_for_a_huge_one_is_malformed(which: str, error: str) -> None:
    """50 kB of nesting overran the stack; five bytes stand for a list of a billion nulls."""
    done = subprocess.run([sys.executable, "-c", BOMB, which], capture_output=True, text=True, check=False)
    assert done.stdout == f"None {error}\n", (done.returncode, done.stderr[-2000:])
