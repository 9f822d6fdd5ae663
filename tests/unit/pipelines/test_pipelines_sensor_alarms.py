"""The shipped pipeline `sensor_alarms`, with answers computed by hand."""

from __future__ import annotations

from tests.unit.examples import declared

ALARMS = declared("sensor_alarms")
DAY = "2026-03-01T00:00:00Z"


def reading(at, celsius, machine="m1", day=1):
    return {"machine": machine, "hall": "north", "celsius": celsius, "at": f"2026-03-0{day}T{at}Z"}


def seen(story, side="merged"):
    return {
        (row["ended"], f"{row['window_start']:%H:%M}"): (row["alarms"], row["seconds"], row["peak"])
        for row in story.answer("by_hall", side)
    }


def morning(scenario):
    """The readings of the page, in two epochs."""
    story = scenario(ALARMS, now="2026-03-03")
    story.send(reading("09:00:00", "79.9"), reading("09:01:00", "80.0"), reading("09:02:00", "91.5"))
    story.epoch()
    story.send(reading("09:03:00", "76.0"), reading("09:04:00", "82.0"), reading("09:05:00", "74.9"))
    story.epoch()
    return story


COOLED = {("cooled", "09:00"): (1, 240, 91.5)}


def test_an_alarm_ends_below_another_temperature(scenario):
    """It does not flutter between the two: 76 degrees end nothing."""
    assert seen(morning(scenario)) == COOLED


def test_a_late_reading_ends_it_earlier(scenario):
    """And another alarm begins at 82 degrees."""
    story = morning(scenario)
    story.send(reading("09:03:30", "60"))
    story.epoch()
    assert seen(story) == {("cooled", "09:00"): (2, 150 + 60, (91.5 + 82) / 2)}


def test_a_machine_is_silent_after_five_minutes(scenario):
    """Its alarm ends with it; a reading that comes late says that it was not."""
    story = morning(scenario)
    story.send(reading("09:05:30", "95"), reading("09:20:00", "20", "m2"))
    story.epoch()
    assert seen(story) == COOLED | {("silent", "09:00"): (1, 300, 95.0)}
    assert [(row["machine"], row["times"]) for row in story.answer("silent")] == [("m1", 1)]
    story.send(*(reading(f"09:{minute}:00", "96") for minute in ("10", "14", "18")))
    story.epoch()
    assert seen(story) == COOLED
    assert story.answer("silent") == []


def test_an_alarm_ends_at_midnight(scenario):
    """The state begins anew, and a build says the same; a machine is silent in no other day."""
    story = morning(scenario)
    story.send(reading("23:58:00", "99"), reading("00:02:00", "99", day=2))
    story.epoch()
    assert story.batch() == [DAY]
    whole = COOLED | {("midnight", "23:00"): (1, 119, 99.0)}
    assert seen(story) == whole
    assert seen(story, "batch") == whole
    assert [f"{row['window_start']:%H:%M}" for row in story.answer("silent")] == ["09:00"]
    assert [row["times"] for row in story.answer("silent", "batch")] == [1]
