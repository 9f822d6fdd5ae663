"""A range of windows whose rows a target is to be given again, as the version that it shows has them (rule 32)."""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.time.intervals import parse_moment


@dataclass(frozen=True)
class RangeAgain:
    """Windows whose rows are to be sent again, and how far that is; it is a part of the position."""

    start: str
    """The first start of a window, UTC."""
    end: str = ""
    """The instant before which windows start, UTC; empty for no end."""
    done: int = 0
    """How many rows of the range, in their order, have been sent again."""

    def __post_init__(self) -> None:
        bounds = (self.start, self.end)
        if type(self.done) is not int or self.done < 0 or any(type(each) is not str for each in bounds):
            raise ValueError(f"{self} is no range that is sent again")

    def join(self, other: RangeAgain | None) -> RangeAgain:
        """Return the range that has both, begun anew: who asked for the other one has still to be given it."""
        if other is None:
            return RangeAgain(self.start, self.end)
        # As instants: as texts a whole second comes after its fractions.
        end = max(self.end, other.end, key=parse_moment) if self.end and other.end else ""
        return RangeAgain(min(self.start, other.start, key=parse_moment), end)

    def __str__(self) -> str:
        return f"{self.start} to {self.end or 'the newest'}"
