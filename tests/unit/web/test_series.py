"""The lines of a chart: one for each key, whatever the keys' values look like beside others."""

from __future__ import annotations

import math
from typing import Any

from seamline.lake.engine.windowing import format_grouping_set
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView, compile_pipeline
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.measures import count
from seamline.web.drawn.series import by_key, find_largest_value

HOSTILE = [("a, b", "c"), ("a", "b, c"), (None, "NULL"), ("NULL", None), ("", "x"), ('""', "x"), ("a", "c")]


def view(**more: Any) -> CompiledView:
    """Compile a view of two texts."""
    pipeline = Pipeline(
        name="p",
        source=KafkaSource(topic="t", schema="k STRING, l STRING, at TIMESTAMP", event_time="at"),
        views=[View("v", keys=["k", "l"], window=Tumbling("1 hour"), measures={"n": count()}, **more)],
        batch=Batch(interval="1 day", start="2020-01-01"),
    )
    return compile_pipeline(pipeline).views[0]


def test_keys_that_read_alike_have_lines_of_their_own() -> None:
    """What is a line was once told by its name, and two keys were drawn as one."""
    rows = [{"k": k, "l": m, "window_start": at} for at in (2, 1) for k, m in HOSTILE]
    found = by_key(rows, view())
    assert [[(row["k"], row["l"], row["window_start"]) for row in some] for _, some in found] == [
        [(k, m, 1), (k, m, 2)] for k, m in HOSTILE
    ]
    assert len({name for name, _ in found}) == len(HOSTILE)
    assert found[-1][0] == "a, c"


def test_a_grouping_set_has_lines_of_its_own() -> None:
    """A total over a key is not the key that is NULL."""
    v = view(grouping_sets=[["k", "l"], ["k"]])
    both, one = map(format_grouping_set, v.sets)
    rows = [{"k": "a", "l": None, GROUPING: each, "window_start": 1} for each in (both, one)]
    assert [name for name, _ in by_key(rows, v)] == [f"{both} a, NULL", f"{one} a, NULL"]


def test_a_key_without_numbers_is_smaller_than_any_other() -> None:
    """NULL is not above the negative numbers, and what is no number does not hide the others of its key."""
    values = {
        "cold": [-5.0, None, -2.0],
        "none": [None, None],
        "odd": [math.nan, 3.0],
        "warm": [1.0, math.nan],
    }
    largest = {name: find_largest_value([{"n": each} for each in some], "n") for name, some in values.items()}
    assert sorted(values, key=lambda name: -largest[name]) == ["odd", "warm", "cold", "none"]
