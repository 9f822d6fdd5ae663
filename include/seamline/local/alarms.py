"""The function of the example sensor_alarms, as a user of the platform would write it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any


class Alarms:
    """A machine's alarm: it is raised at one temperature, and ends at a lower one, so that it does not flutter."""

    state = "since TIMESTAMP, peak DECIMAL(5,1)"
    emits = "ended STRING, since TIMESTAMP, seconds INT, peak DECIMAL(5,1)"
    sides: Mapping[str, str] = {"silent": "since TIMESTAMP"}
    raised, cleared = Decimal(80), Decimal(75)
    """At or above the first an alarm begins; below the second it ends."""
    silence = timedelta(minutes=5)
    """After how long without a reading a machine is silent."""

    def row(self, state: Any, row: Mapping[str, Any], out: Any) -> tuple[Any, ...]:
        """Take a reading."""
        out.clear_timers()
        out.timer(out.at + self.silence)
        since, peak = state or (None, None)
        celsius = row["celsius"]
        if since is None:
            return (out.at, celsius) if celsius >= self.raised else (None, None)
        peak = max(peak, celsius)
        if celsius >= self.cleared:
            return (since, peak)
        self.emit("cooled", since, peak, out)
        return (None, None)

    def timer(self, state: Any, at: Any, out: Any) -> None:
        """The machine has fallen silent; so has its alarm."""
        out.side("silent", at - self.silence)
        self.end_alarm("silent", state, out)

    def end(self, state: Any, at: Any, out: Any) -> None:
        """The day is over."""
        self.end_alarm("midnight", state, out)

    def end_alarm(self, ended: str, state: Any, out: Any) -> None:
        """Emit the alarm that is on, if there is one."""
        if state.since is not None:
            self.emit(ended, state.since, state.peak, out)

    def emit(self, ended: str, since: Any, peak: Any, out: Any) -> None:
        """Emit an alarm with how it has ended, and how long it was."""
        out.emit(ended, since, (out.at - since) // timedelta(seconds=1), peak)
