"""Readings of twenty sensors: one is silent every other three minutes, one reports three minutes late."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, Generator, Load, Record, instant, text

SENSORS = 20
STEADY, IDLE, LATE = 0, 18, 19
"""Sensors by their number; the first speaks in the place of the silent one."""
SILENCE = 3 * MINUTE
DELAY = 3 * MINUTE
BLANK_EVERY = 211
BAD_EVERY = 397


def records(load: Load) -> Iterator[Record]:
    """Yield readings, sensor by sensor; every 211th is blank, and every 397th is of a broken wire: -999."""
    dice = load.seeded_random("sensor_average")
    for number, at_ms in load.ticks():
        sensor = number % SENSORS
        if sensor == IDLE and (at_ms - load.start_ms) // SILENCE % 2:
            sensor = STEADY
        event_ms = load.event_ms(at_ms, DELAY if sensor == LATE else 0)
        name = f"sensor-{sensor:02d}"
        celsius: float | None = round(15 + sensor / 2 + dice.gauss(0, 0.3), 2)
        kind = "late" if event_ms < at_ms else "event"
        if number % BAD_EVERY == BAD_EVERY - 1:
            celsius, kind = -999.0, "bad:rule plausible"
        elif number % BLANK_EVERY == BLANK_EVERY - 1:
            celsius = None
        value = text({"sensor": name, "at": instant(event_ms), "celsius": celsius})
        yield Record(at_ms, name.encode(), value, kind)


GENERATOR = Generator("examples.sensor_readings", records)
