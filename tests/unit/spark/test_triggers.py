"""What Spark says of its triggers is kept with the next epoch; rows of before have none of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.epoch_timing import EpochTiming
from seamline.spark.stream.triggers import JvmListener, Triggers, trigger_of

PROGRESS = {
    "batchId": 7,
    "inputRowsPerSecond": 1234.56,
    "durationMs": {"triggerExecution": 430, "addBatch": 401, "walCommit": 9},
}
TRIGGER = {"addBatch": 0.401, "triggerExecution": 0.43, "walCommit": 0.009, "rows_per_second": 1234.6}


class Event:
    """An event as the JVM hands it over."""

    def __init__(self, text: str) -> None:
        self.text = text

    def progress(self) -> Event:
        return self

    def json(self) -> str:
        return self.text


def test_a_trigger_is_its_durations_and_its_rate():
    """Milliseconds are Spark's; ours are seconds everywhere."""
    assert trigger_of(PROGRESS) == TRIGGER


def test_a_trigger_that_did_nothing_hides_none_that_did():
    """An idle stream says every ten seconds that it is idle."""
    timing = EpochTiming()
    told = JvmListener(Triggers(timing))
    told.onQueryProgress(Event(json.dumps(PROGRESS)))
    told.onQueryProgress(Event(json.dumps({"durationMs": {"triggerExecution": 1, "latestOffset": 1}})))
    assert timing.trigger == TRIGGER


def test_what_nobody_began_has_no_phases():
    """A start that repairs tables commits before its first epoch: the time since it was made is no phase of any."""
    timing = EpochTiming()
    timing.mark("repair")
    assert timing.facts() == {"took": {}, "trigger": {}}
    timing.begin()
    timing.mark("files")
    assert [*timing.seconds] == ["files"]


def test_words_that_cannot_be_read_end_no_query(caplog):
    """An error in a listener's thread is nobody's but ours."""
    timing = EpochTiming()
    JvmListener(Triggers(timing)).onQueryProgress(Event("no JSON"))
    assert timing.trigger == {}
    assert "cannot be read" in caplog.text


def test_a_ledger_row_has_its_times_and_older_rows_have_none():
    """A row of an earlier release must be read for ever, and written as it was."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    epoch = Epoch(3, 1, now, "v", took={"files": 0.2}, trigger=TRIGGER)
    assert Epoch.from_json(epoch.to_json()) == epoch
    older = Epoch(3, 1, now, "v")
    assert "took" not in json.loads(older.to_json())
    assert Epoch.from_json(older.to_json()) == older
