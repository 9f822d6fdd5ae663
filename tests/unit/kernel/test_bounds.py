"""What a record may cost: one beyond it is kept with its reason, before anything is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.records import batch, judged, kernel_run, pipeline

from seamline import Avro, Tumbling, View, count
from seamline import min as least
from seamline.kernel.formats.avro import AvroReader
from seamline.kernel.record_bounds import LARGE, MANY
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.types.schema import Schema

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


@pytest.mark.parametrize(
    "value", [b'{"a": ' + b"[" * 21 + b"]" * 21 + b"}", b'{"a": ' * 21 + b"1" + b"}" * 21]
)
def test_what_is_nested_is_as_many_parts_as_are_opened(value: bytes) -> None:
    """Without a comma: 30 million brackets took more than 4 GB to be parsed."""
    assert judged(pipeline(SCHEMA, max_record_parts=20), [value])[0][0] == MANY


EACH = View("each", ["tag"], Tumbling("1 day"), {"n": count()}, explode={"tag": "tags"})
TAGGED = "at TIMESTAMP, body STRING, tags ARRAY<STRING>, cart STRUCT<shop: STRING, lines: ARRAY<STRING>>"


@pytest.mark.parametrize(
    ("reads", "tags", "body", "beside"),
    [
        ({}, 25, 100, 0),
        ({"where": "body <> tag"}, 24, 100, 0),
        ({"where": "body <> tag"}, 25, 100, 100),
        ({"measures": {"n": least("concat(tag, body)")}}, 25, 100, 100),
        ({"keys": ["tag", "body"]}, 25, 100, 100),
        ({"keys": ["line"], "where": "cart.shop <> line", "explode": {"line": "cart.lines"}}, 25, 100, 100),
        ({"keys": ["line"], "where": "cart.shop <> line", "explode": {"line": "cart.lines"}}, 24, 100, 0),
    ],
)
def test_what_a_view_makes_of_the_items_of_a_record_has_a_bound(
    reads: dict[str, Any], tags: int, body: int, beside: int
) -> None:
    """A text of 10 MB beside 100,000 items is a terabyte; the same text in a view that does not read it is nothing."""
    made = pipeline(TAGGED, max_record_bytes=300, views=[replace(EACH, **reads)])
    text, items = "x" * body, ["t"] * tags
    filled = {"cart": {"shop": text, "lines": items}} if "explode" in reads else {"body": text, "tags": items}
    [row] = judged(made, [json.dumps({"at": AT, **filled}, separators=(",", ":")).encode()])
    said = f"{tags} items of each, with {beside} bytes beside each"
    assert row == [LARGE, said] if beside else isinstance(row, dict)


def test_a_list_that_is_read_for_each_of_its_items_is_beside_them() -> None:
    """Of 100,000 items that took 40 s: time is a cost too."""
    made = pipeline(
        TAGGED, max_record_bytes=2_000_000, views=[replace(EACH, where="array_contains(tags, tag)")]
    )
    value = json.dumps({"at": AT, "tags": ["t"] * 20_000}).encode()
    assert judged(made, [value])[0][0] == LARGE


COSTLY = """
import resource
from tests.unit.kernel.test_bounds import costly
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
print(costly())
"""


def costly() -> object:
    """Judge a record of 4,000 items, for each of which a condition puts a text of a megabyte together."""
    where = "length(concat(body, tag)) / length(tag) > 1"
    made = pipeline(TAGGED, max_record_bytes=1_500_000, views=[replace(EACH, where=where)])
    [row] = judged(made, [json.dumps({"at": AT, "body": "x" * 1_000_000, "tags": ["t"] * 4000}).encode()])
    return row


def test_the_bound_holds_before_anything_is_asked_of_an_item() -> None:
    """Whether a division fails was asked of every item first: 2,048 texts at once are 2 GB, in a worker of 1 GB."""
    done = subprocess.run([sys.executable, "-c", COSTLY], capture_output=True, text=True, check=False)
    said = ["record too large", "4000 items of each, with 1000000 bytes beside each"]
    assert done.stdout == f"{said}\n", (done.returncode, done.stderr[-2000:])


@pytest.mark.parametrize(
    "step", [{}, {"transform": "tests.unit.steps:words", "transform_schema": "words INT"}]
)
def test_an_error_of_an_item_is_that_of_records_within_bounds(step: dict[str, Any]) -> None:
    """What the bound lets pass is asked item by item, and what the user's step left out is asked nothing."""
    made = pipeline(
        "at TIMESTAMP, text STRING, tags ARRAY<STRING>",
        max_record_bytes=300,
        views=[replace(EACH, where="length(concat(text, tag)) / length(tag) > 1")],
        **step,
    )
    found = judged(
        made,
        [
            json.dumps({"at": AT, "text": text, "tags": tags}, separators=(",", ":")).encode()
            for text, tags in [("a", ["b"]), ("a", ["b", ""]), ("# a", [""]), ("x" * 100, [""] * 25)]
        ],
    )
    wrong = ["error in each.where", "(length(concat(`text`, `tag`)) / length(`tag`)) divides by zero"]
    assert isinstance(found[0], dict)
    assert found[1] == wrong
    assert isinstance(found[2], dict) if step else found[2] == wrong
    assert found[3] == [LARGE, "25 items of each, with 100 bytes beside each"]


def test_a_record_is_judged_alike_alone_and_among_others() -> None:
    """Whoever reads it again reads it in another batch: it must not be in the answer of one and not of the other."""
    made = pipeline(TAGGED, max_record_bytes=300, views=[replace(EACH, where="array_contains(tags, tag)")])
    value = json.dumps({"at": AT, "tags": ["t"] * 40}, separators=(",", ":")).encode()
    [alone] = judged(made, [value])
    assert alone[0] == LARGE
    assert judged(made, [value] * 20_000) == [alone] * 20_000


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
from tests.unit.kernel.test_bounds import decoded
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
    text, trouble = reader.try_decode(content + b"\x00")
    return f"{text} {(trouble or '').split(':')[0]}"


@pytest.mark.parametrize(("which", "error"), [("deep", "RecursionError"), ("long", "MemoryError")])
def test_a_small_record_that_stands_for_a_huge_one_is_malformed(which: str, error: str) -> None:
    """50 kB of nesting overran the stack; five bytes stand for a list of a billion nulls."""
    done = subprocess.run([sys.executable, "-c", BOMB, which], capture_output=True, text=True, check=False)
    assert done.stdout == f"None {error}\n", (done.returncode, done.stderr[-2000:])
