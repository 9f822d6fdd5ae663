"""What clocks on the wall showed at the start of a window, by which days and hours are laid beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from seamline.model.errors import BadRange
from seamline.model.time.intervals import format_utc_instant

if TYPE_CHECKING:
    from seamline.model.compile.compiled_pipeline import CompiledView


@dataclass(frozen=True, order=True)
class Reading:
    """What clocks of a zone show."""

    wall: datetime
    """Date and time, without a zone."""
    again: bool = False
    """Whether they show it for the second time: they were put back."""

    @classmethod
    def at(cls, moment: datetime, zone: ZoneInfo) -> Reading:
        """Read the clock at an instant; BadRange at the ends of the calendar."""
        try:
            local = moment.astimezone(zone)
        except OverflowError:
            raise BadRange(
                f"Clocks of {zone.key} have no date for {format_utc_instant(moment)}.",
                hint="ask for another range.",
            ) from None
        return cls(local.replace(tzinfo=None, fold=0), bool(local.fold))

    def moment(self, zone: ZoneInfo) -> datetime:
        """Return the instant; of a reading that clocks skip the one that they would have shown it at."""
        return self.wall.replace(tzinfo=zone, fold=int(self.again)).astimezone(UTC)

    @property
    def day(self) -> date:
        """The date."""
        return self.wall.date()

    @property
    def time(self) -> timedelta:
        """The time since midnight by the clock."""
        return self.wall - self.wall.replace(hour=0, minute=0, second=0, microsecond=0)


def find_zone(name: str) -> ZoneInfo:
    """Find a zone; BadRange for a name that is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadRange(
            f"{name!r} is not a time zone.", hint='use a name of the IANA database: "America/New_York".'
        ) from None


def zone_of(view: CompiledView) -> str:
    """Name the zone whose clocks cut a view's windows."""
    return getattr(view.window, "zone", "UTC")


def format_window(start: datetime, zone: ZoneInfo) -> str:
    """Format the start of a window as clocks show it; in UTC as an instant."""
    local = start.astimezone(zone)
    if zone.key == "UTC":
        return format_utc_instant(start).replace("T", " ").replace(":00Z", " UTC").replace("Z", " UTC")
    return f"{local:%Y-%m-%d %H:%M} {local.tzname() or zone.key}"
