"""Answers and event time: however late they come, they hold back nothing but the certificate of their interval."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.unit.asking.payments import ANSWERS, PAID, SHOP, START

from seamline.model.protocol.imported.imports import Import
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.lane_policy import build_watermark_policy
from seamline.spark.stream.progress import Progress

IDS = {PAID: "id of paid", ANSWERS: "id of answers"}
ROWS, RECORDS = Lane(IDS[PAID], 0), Lane(IDS[ANSWERS], 0)
POLICY = build_watermark_policy(SHOP, IDS)
HOUR = timedelta(hours=1)


def progress(**largest: datetime) -> Progress:
    """Return a stream that has read both topics to offset 9, up to some event times of rows and of answers."""
    lanes = {"rows": ROWS, "answers": RECORDS}
    return Progress(
        dict.fromkeys((ROWS, RECORDS), 9),
        {lanes[name]: at for name, at in largest.items()},
        dict.fromkeys((ROWS, RECORDS), START),
    )


def test_late_answers_do_not_hold_the_watermark_back() -> None:
    """A system that is slower than rows come would keep all intervals open, of views that have no use of it too."""
    bound = SHOP.sources[0].watermark.bound
    for found in (progress(rows=START), progress(rows=START, answers=START - 9 * HOUR)):
        assert found.watermark(POLICY, {}, START) == START - bound


def test_nor_do_answers_move_it() -> None:
    """Where all other partitions are silent, the newest answer is no news of event time."""
    found = progress(rows=START, answers=START + HOUR)
    ends, later = dict.fromkeys((ROWS, RECORDS), 9), START + 9 * HOUR
    assert found.watermark(POLICY, ends, later) == START - SHOP.sources[0].watermark.bound


def test_nor_do_rows_of_files() -> None:
    """An import beside topics that are silent, or in which nothing was sent yet, makes no record of theirs late."""
    found, lane = progress(), Import("one", "paid", "/files", 5, "ada", "", START).lane
    grown = Progress({**found.vector, lane: 5}, {lane: START + HOUR}, {**found.last_seen, lane: START})
    ends = dict.fromkeys((ROWS, RECORDS), 9)
    assert grown.watermark(POLICY, ends, START + 9 * HOUR) == found.watermark(POLICY, ends, START + 9 * HOUR)


def test_a_silent_topic_of_answers_is_nothing_to_ask_the_broker_about() -> None:
    found = progress(rows=START)
    busy = Progress(found.vector, found.largest, {ROWS: START + 9 * HOUR, RECORDS: START})
    assert not busy.has_silent_lane(POLICY, START + 9 * HOUR)
    assert found.has_silent_lane(POLICY, START + 9 * HOUR)


def test_a_topic_is_drained_whatever_answers_come() -> None:
    """They come after the declaration, which is about rows."""
    found = progress(rows=START)
    assert found.is_read_to({ROWS: 9, RECORDS: 3}, POLICY)
    assert found.is_read_to({ROWS: 9}, POLICY)
    assert not found.is_read_to({ROWS: 10, RECORDS: 9}, POLICY)
