"""Hot keys: which key has most of an epoch's rows, and who is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from tests.unit.records import pipeline

from seamline import Tumbling, View, count
from seamline.kernel.hot_keys import find_hot_key
from seamline.kernel.kernel_result import KernelResult, encode_result_facts
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.plan.stream.hot_keys import HotKey, KeyShare, list_hot_keys
from seamline.plan.stream.observation import Observation
from seamline.plan.wording.observation_text import format_observation_notes, serialize_observation
from seamline.spark.tasks.task import read_facts

AT = datetime(2024, 3, 1, tzinfo=UTC)
[VIEW, ALL] = compile_pipeline(
    pipeline(
        "shop STRING, gate INT, at TIMESTAMP",
        views=[
            View("by_gate", keys=["shop", "gate"], window=Tumbling("1 hour"), measures={"n": count()}),
            View("all", keys=[], window=Tumbling("1 hour"), measures={"n": count()}),
        ],
    )
).views


def states(*rows: tuple[str | None, int, int]) -> pa.Table:
    """Make states of keys and rows, a pane for each."""
    return pa.Table.from_pylist([{"shop": shop, "gate": gate, "rows": rows} for shop, gate, rows in rows])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", 1, 5), ("b", 1, 7), ("b", 2, 6), ("b", 1, 2)], HotKey("shop=b, gate=1", 9)),
        ([(None, 1, 5), ("b", 1, 4), (None, 1, 1)], HotKey("shop=NULL, gate=1", 6)),
        ([("x" * 70, 1, 5)], HotKey(f"shop={'x' * 60}..., gate=1", 5)),
        ([], None),
    ],
)
def test_the_hottest_key_is_that_of_the_largest_state(
    rows: list[tuple[str, int, int]], expected: HotKey
) -> None:
    """With its rows in every pane."""
    table = states(*rows) if rows else states(("a", 1, 1)).slice(0, 0)
    assert find_hot_key(VIEW, table) == expected


def test_a_view_without_keys_has_none() -> None:
    """All rows are one key's."""
    assert find_hot_key(ALL, states(("a", 1, 5))) is None


def test_a_key_is_hot_from_a_tenth_of_an_epoch_of_some_size() -> None:
    """An epoch of few rows says nothing of keys."""
    found = {"v/1": HotKey("k=1", 100), "w/1": HotKey("k=2", 99)}
    hot = list_hot_keys({}, found, 1_000)
    assert hot == {"v/1": KeyShare("k=1", 0.1)}
    assert list_hot_keys(hot, {"w/1": HotKey("k=2", 900)}, 999) == hot
    assert list_hot_keys(hot, {}, 1_000) == {}


def test_reports_of_tasks_keep_the_hottest() -> None:
    """Each part has one of its own; panes of one key are in several parts."""
    whole = KernelResult()
    for key, rows in (("a", 3), ("b", 9), ("c", 5), ("b", 4)):
        whole.add(read_facts(encode_result_facts(KernelResult(hot={"v": HotKey(f"k={key}", rows)}))))
    assert whole.hot == {"v": HotKey("k=b", 13)}


def test_people_are_told() -> None:
    """On the pages, by `seamline streams`, and as JSON."""
    found = Observation("shop", AT, hot={"v/1": KeyShare("k=1", 0.314)})
    assert "view v/1 has a hot key: k=1 is 31% of the last epoch" in [*format_observation_notes(found)]
    assert serialize_observation(found)["hot_keys"] == {"v/1": {"key": "k=1", "share": 0.314}}
