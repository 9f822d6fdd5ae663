"""Readings of forty machines in two halls: they warm up and cool down, and one in eight is silent now and then."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.local.generators.record import MINUTE, SECOND, Generator, Load, Record, instant, text

HALLS, MACHINES = ("north", "south"), 40
SILENCE = 8 * MINUTE
SILENT_EVERY, BAD_EVERY = 8, 397


def records(load: Load) -> Iterator[Record]:
    """Yield readings, machine by machine; 2 % come late, by up to four minutes, and every 397th is of a broken wire."""
    dice = load.seeded_random("sensor_alarms")
    warmth = [60.0] * MACHINES
    for number, at_ms in load.ticks():
        machine = number % MACHINES
        if machine % SILENT_EVERY == 0 and (at_ms - load.start_ms) // SILENCE % 2:
            machine += 1
        # It drifts back to 70 degrees, at which neither is crossed.
        warmth[machine] += (70 - warmth[machine]) * 0.1 + dice.gauss(0, 4)
        lag = dice.randrange(MINUTE, 4 * MINUTE) if dice.random() < 0.02 else dice.randrange(SECOND)
        event_ms = load.event_ms(at_ms, lag)
        name, celsius = f"m{machine:02d}", f"{warmth[machine]:.1f}"
        kind = "late" if at_ms - event_ms > SECOND else "event"
        if number % BAD_EVERY == BAD_EVERY - 1:
            celsius, kind = "-999.0", "bad:rule plausible"
        hall = HALLS[machine * 2 // MACHINES]
        value = text({"machine": name, "hall": hall, "celsius": celsius, "at": instant(event_ms)})
        yield Record(at_ms, name.encode(), value, kind)


GENERATOR = Generator("examples.machine_readings", records)
