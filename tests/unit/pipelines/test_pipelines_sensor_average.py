"""The shipped pipeline `sensor_average`, with answers computed by hand."""

from __future__ import annotations

import pytest
from tests.unit.examples import declared

SENSORS = declared("sensor_average")


def reading(sensor, at, celsius):
    return {"sensor": sensor, "at": f"2026-03-01T{at}Z", "celsius": celsius}


def seen(story, side="merged", **keys):
    return [
        (row["sensor"], f"{row['window_start']:%H:%M}", row["reports"], row["readings"], row["mean"])
        for row in story.answer(side=side, **keys)
    ]


def test_an_average_weighs_readings_not_reports_and_not_epochs(scenario):
    """(10 + 20 + 30 + 40 + 50) / 5 is 30; the mean of the epochs' means would be 22.5. Blanks are left out."""
    story = scenario(SENSORS, now="2026-03-01T09:05Z")
    story.send(reading("s1", "09:00:00", 10.0), reading("s1", "09:00:01", None))
    story.epoch()
    story.send(
        reading("s1", "09:00:20", 20.0),
        reading("s1", "09:00:30", 30),
        reading("s1", "09:00:40", 40.0),
        reading("s1", "09:00:59.999", 50.0),
        reading("s1", "09:01:00", 7.5),
        reading("s2", "09:00:00", None),
    )
    story.epoch()
    assert seen(story) == [
        ("s1", "09:00", 6, 5, 30.0),
        ("s2", "09:00", 1, 0, None),
        ("s1", "09:01", 1, 1, 7.5),
    ]
    [first, *_] = story.answer(sensor="s1")
    assert (first["least"], first["most"]) == (10.0, 50.0)


def test_a_silent_sensor_holds_the_hour_open_until_its_partition_is_idle(scenario):
    """Nobody knows at first whether it is late or dead; after two minutes the others go on without it."""
    # s1 (partition 0)  09:59:59 ----------- 10:01:00
    # s2 (partition 1)  09:50:00  silence
    # watermark                   09:49:30 | idle: 10:00:30
    story = scenario(SENSORS, now="2026-03-01T10:01Z")
    story.send(reading("s1", "09:59:59", 20.0), reading("s1", "10:01:00", 21.0))
    story.send(reading("s2", "09:50:00", 18.0), partition=1)
    story.epoch()
    assert f"{story.watermark:%H:%M:%S}" == "09:49:30"
    assert story.batch("2026-03-01T09:00Z") == []
    story.wait("2 minutes")
    assert f"{story.watermark:%H:%M:%S}" == "10:00:30"
    assert story.batch("2026-03-01T09:00Z") == ["2026-03-01T09:00:00Z"]


def test_what_a_sensor_delivers_after_its_silence_is_late_and_counts(scenario):
    """The hour was certified with (18) and answers (18 + 22 + 23) / 3 = 21 at once; the watermark never falls."""
    story = scenario(SENSORS, now="2026-03-01T10:01Z")
    story.send(reading("s1", "10:01:00", 21.0))
    story.send(reading("s2", "09:50:00", 18.0), partition=1)
    story.epoch()
    story.wait("2 minutes")
    story.batch("2026-03-01T09:00Z")

    story.send(reading("s2", "09:50:30", 22.0), reading("s2", "09:50:59", 23.0), partition=1)
    story.send(reading("s2", "08:59:00", 17.0), partition=1)
    held = story.epoch()
    assert dict(held.late) == {"2026-03-01T09:00:00Z": 2}
    assert dict(held.very_late) == {"2026-03-01T08:00:00Z": 1}
    assert f"{held.watermark:%H:%M:%S}" == "10:00:30"
    assert seen(story, sensor="s2") == [("s2", "08:59", 1, 1, 17.0), ("s2", "09:50", 3, 3, 21.0)]
    assert seen(story, "batch", sensor="s2") == [("s2", "09:50", 1, 1, 18.0)]
    assert story.batch() == ["2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z"]
    assert seen(story, "batch", sensor="s2") == [("s2", "08:59", 1, 1, 17.0), ("s2", "09:50", 3, 3, 21.0)]


@pytest.mark.parametrize(
    ("celsius", "reason"), [(-999.0, "rule plausible"), ("warm", "mistyped field celsius")]
)
def test_a_broken_wire_is_no_temperature(scenario, celsius, reason):
    """-999 would cool a minute by hundreds of degrees. The bounds themselves are plausible."""
    story = scenario(SENSORS, now="2026-03-01T09:05Z")
    story.send(
        reading("s1", "09:00:00", celsius), reading("s1", "09:00:01", -60), reading("s1", "09:00:02", 60.0)
    )
    story.epoch()
    assert [each.reason for each in story.quarantine()] == [reason]
    assert seen(story) == [("s1", "09:00", 2, 2, 0.0)]
