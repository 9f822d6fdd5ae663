"""Windows made of panes and partial sessions: by hand, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline import (
    Batch,
    Cumulating,
    KafkaSource,
    Pipeline,
    Session,
    Sliding,
    Tumbling,
    View,
    count,
    max,
    sum,
)
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb, query_tables
from seamline.lake.engine.duckdb_scans import span_number, span_start_sql
from seamline.lake.engine.windowing import merge_into_windows
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.read.window_verdicts import find_touched_intervals
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.definition.windows import Window
from seamline.model.protocol.seam import Phase
from seamline.model.time.intervals import EPOCH
from seamline.model.time.zone_clock import MICROSECOND
from seamline.quality.presented_intervals import present_intervals

MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
ROWS = pa.schema([("page", pa.string()), ("user", pa.string()), ("at", INSTANT), ("_event_time", INSTANT)])


def hits(window: Window, **more: Any) -> CompiledView:
    """Declare hits per page."""
    view = View("hits", **{"keys": ["page"], "window": window, "measures": {"hits": count()}, **more})
    source = KafkaSource(topic="t", schema="page STRING, user STRING, at TIMESTAMP", event_time="at")
    pipeline = Pipeline(name="web", source=source, views=[view], batch=Batch("1 day", "2024-01-01"))
    return compile_pipeline(pipeline).views[0]


def stored(view: CompiledView, events: list[tuple[int, str, str]]) -> pa.Table:
    """Make the states of events: minutes after midnight, page, user."""
    found = []
    for minute, page, user in events:
        at = MIDNIGHT + timedelta(minutes=minute)
        found.append({"page": page, "user": user, "at": at, "_event_time": at})
    rows = pa.Table.from_pylist(found, schema=ROWS)
    with open_duckdb() as con:
        con.register("rows", rows)
        return states.compute_row_states(con, view, "rows")


def merged(view: CompiledView, pieces: list[pa.Table]) -> list[tuple[Any, ...]]:
    """Merge states into windows: keys, minutes of start and end, hits."""
    whole = pa.concat_tables(pieces)
    for name, value in (("_speed", 0), ("_newest", -1)):
        whole = whole.append_column(name, pa.array([value] * whole.num_rows, pa.int64()))
    midnight = int(MIDNIGHT.timestamp() * 1_000_000)
    return sorted(
        (
            *(row[key.name] or "-" for key in view.keys),
            *((row[name] - midnight) // 60_000_000 for name in ("_start", "_end")),
            row["hits__n"],
        )
        for row in merge_into_windows(view, whole).to_pylist()
    )


def test_sliding_windows_write_what_tumbling_ones_do() -> None:
    """24 hours sliding by a minute: an event is in 1440 windows and in one row."""
    events = [(minute * 7 % 3000, "a", "u") for minute in range(200)]
    tumbling, sliding = hits(Tumbling("1 minute")), hits(Sliding("24 hours", "1 minute"))
    assert stored(sliding, events).num_rows == stored(tumbling, events).num_rows
    one = stored(sliding, events[:1])
    assert one.num_rows == 1
    assert merged(sliding, [one]) == [("a", start, start + 1440, 1) for start in range(-1439, 1)]


def test_a_sliding_window_by_hand() -> None:
    """Three hours every hour; the hours hold 2, 0, 1."""
    view = hits(Sliding("3 hours", "1 hour"))
    found = merged(view, [stored(view, [(5, "a", "u"), (125, "a", "u")]), stored(view, [(59, "a", "u")])])
    assert found == [
        ("a", 60 * first, 60 * first + 180, hits)
        for first, hits in zip(range(-2, 3), (2, 2, 3, 1, 1), strict=True)
    ]


def test_a_cumulating_window_by_hand() -> None:
    """The day so far, every eight hours: what was counted stays counted."""
    view = hits(Cumulating("1 day", "8 hours"))
    found = merged(view, [stored(view, [(1, "a", "u"), (1000, "a", "u"), (1500, "a", "u")])])
    assert found == [
        ("a", 0, 480, 1), ("a", 0, 960, 1), ("a", 0, 1440, 2),
        ("a", 1440, 1920, 1), ("a", 1440, 2400, 1), ("a", 1440, 2880, 1),
    ]  # fmt: skip


def test_grouping_sets_come_from_the_same_states() -> None:
    """By hand: two pages, two users; each set and the grand total."""
    view = hits(Tumbling("1 day"), keys=["page", "user"], grouping_sets=[["page"], ["user"], []])
    states = stored(view, [(1, "a", "u"), (2, "a", "v"), (3, "b", "u")])
    assert states.num_rows == 3
    day = (0, 1440)
    assert merged(view, [states]) == [
        ("-", "-", *day, 3), ("-", "u", *day, 2), ("-", "v", *day, 1), ("a", "-", *day, 2), ("b", "-", *day, 1),
    ]  # fmt: skip


def test_a_late_event_joins_two_sessions_over_midnight() -> None:
    """Partial sessions are cut at midnight; 23:50 and 00:25 are apart until 00:05 comes late."""
    # a   23:50 .......... | .......... 00:25
    #                   00:05 (late)
    view = hits(Session("30 minutes"))
    before, after, late = (stored(view, [(minute, "a", "u")]) for minute in (1430, 1465, 1445))
    assert merged(view, [before, after]) == [("a", 1430, 1460, 1), ("a", 1465, 1495, 1)]
    assert merged(view, [after, late, before]) == [("a", 1430, 1495, 3)]
    assert stored(view, [(1430, "a", "u"), (1445, "a", "u")]).num_rows == 2


def test_events_a_gap_apart_are_two_sessions() -> None:
    """A session ends a gap after its last event, and that instant is no longer in it."""
    view = hits(Session("30 minutes"))
    assert merged(view, [stored(view, [(0, "a", "u"), (30, "a", "u")])]) == [
        ("a", 0, 30, 1),
        ("a", 30, 60, 1),
    ]


def test_expectations_judge_whole_windows_only() -> None:
    """A window cut at midnight has too few rows in both days and would fail a good build."""
    view = hits(Sliding("1 day", "12 hours"))
    held = stored(view, [(1, "a", "u"), (800, "a", "u")])
    held = held.append_column("interval", pa.array(["2024-01-01T00:00:00Z"] * held.num_rows))
    [row] = present_intervals(view, held).to_pylist()
    assert (row["page"], row["hits"], row["interval"]) == ("a", 2, "2024-01-01T00:00:00Z")
    assert row["window_end"] - row["window_start"] == timedelta(days=1)


def test_a_view_without_keys_of_which_nothing_is_expected_has_rows() -> None:
    """Nothing but the bounds of its windows is presented then, and they are counted."""
    view = replace(hits(Tumbling("1 day")), keys=(), sets=((),), measures=())
    held = pa.table({"pane": pa.array([MIDNIGHT], pa.timestamp("us", "UTC")), "rows": [2]})
    held = held.append_column("interval", pa.array(["2024-01-01T00:00:00Z"]))
    assert present_intervals(view, held).num_rows == 1


def test_a_row_says_its_phase(tmp_path: Path) -> None:
    """Early until the watermark is past the end; late once an event came after the edge that closed it."""
    shop = Shop(tmp_path)

    def phases() -> list[str]:
        return read_merged_answer(shop.compiled, shop.view, shop.layout).table["phase"].to_pylist()

    shop.epoch([Sale(1)], watermark=START)
    assert phases() == ["early"]
    shop.epoch([Sale(2)], watermark=START + DAY, edge=False)
    assert phases() == ["complete"]
    shop.epoch([Sale(3)], watermark=START + DAY)
    assert phases() == ["complete"]
    late = shop.epoch([Sale(4)], watermark=START + DAY)
    assert phases() == ["late"]
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    assert found.only([Phase.LATE, Phase.EARLY]).table.num_rows == 1
    assert found.only([Phase.COMPLETE]).table.num_rows == found.only([Phase.COMPLETE]).states.num_rows == 0
    shop.build(0, late, "g")
    assert phases() == ["complete"]


@pytest.mark.parametrize("measure", ["largest", "total"])
def test_every_measure_goes_through_windows(measure: str) -> None:
    """A state that is not a count is merged by its own rule, in the doubling too."""
    view = hits(Sliding("4 hours", "1 hour"), measures={"largest": max("user"), "total": sum("length(page)")})
    whole = stored(view, [(minute * 10, "page", f"u{minute:03d}") for minute in range(60)])
    for name, value in (("_speed", 0), ("_newest", -1)):
        whole = whole.append_column(name, pa.array([value] * whole.num_rows, pa.int64()))
    found = {row["_start"]: row for row in merge_into_windows(view, whole).to_pylist()}
    row = found[int((MIDNIGHT + timedelta(hours=2)).timestamp() * 1_000_000)]
    assert {"largest": row["largest__value"], "total": int(row["total__sum"])}[measure] == {
        "largest": "u035",
        "total": 4 * 24,
    }[measure]


def test_a_session_depends_on_the_days_from_which_it_could_be_joined() -> None:
    """One that ends 20 minutes before midnight may go on: it is certified only with the next day."""
    view, minute = hits(Session("30 minutes")), 60_000_000
    day = int(MIDNIGHT.timestamp()) // 86400

    def days(first: int, last: int) -> tuple[int, int]:
        midnight = day * 1440
        start, end = ((midnight + each) * minute for each in (first, last + 30))
        low, high = find_touched_intervals(view, np.array([start]), np.array([end]))
        return int(low[0]) - day, int(high[0]) - day

    assert days(600, 1409) == (0, 0)
    assert days(600, 1410) == (0, 0)
    assert days(600, 1420) == (0, 1)
    assert days(29, 60) == (-1, 0)
    assert days(30, 60) == (0, 0)


@pytest.mark.parametrize("size", [10, 7_000_000, 86_400_000_000, 2_419_200_000_000])
def test_spans_are_counted_from_1970_on_either_side(size: int) -> None:
    """An instant before 1970 is in the span that ends after it; any that Python knows has a number of zero or more."""
    first, last = (
        (moment.replace(tzinfo=UTC) - EPOCH) // MICROSECOND for moment in (datetime.min, datetime.max)
    )
    instants = [first, -size - 1, -size, 1 - size, -1, 0, 1, size - 1, size, last]
    query = (
        f"SELECT {span_start_sql('moment', size)} AS start, {span_number('moment', size)} AS number FROM rows"
    )
    found = query_tables(query, rows=pa.table({"moment": instants})).to_pydict()
    assert found["start"] == [at // size * size for at in instants]
    assert found["number"][0] == 0
    steps = [(start - found["start"][0]) // size for start in found["start"]]
    assert found["number"] == steps
    assert query_tables(query, rows=pa.table({"moment": pa.array([None], pa.int64())}))[
        "start"
    ].to_pylist() == [None]
