"""What is asked of a view: which windows, of which side and version, and as of when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypedDict, TypeVar, Unpack

from seamline.model.errors import BadRange
from seamline.model.protocol.seam import Phase, Side
from seamline.model.time.intervals import Interval, parse_moment

EPOCH = re.compile(r"\d{1,18}", re.ASCII)
Moment = str | date
"""An instant: ISO 8601 text, a datetime, or a day's first; without a zone it is UTC."""
Choice = TypeVar("Choice", Side, Phase)


class ReadOptions(TypedDict, total=False):
    """The keywords of ``seamline.read`` and ``Client.read``; the command line and the API have options for each."""

    start: Moment | None
    """First window start, inclusive; None for no bound."""
    end: Moment | None
    """Instant before which windows start, exclusive; None for no bound."""
    as_of: int | Moment | None
    """An epoch or an instant: what is published now answers for events up to it; None for now."""
    served_at: Moment | None
    """An instant: what was answered then; None for now."""
    side: Literal["merged", "batch", "speed"] | str
    """Which layer answers; ``merged`` if it is not given."""
    version: str
    """The fingerprint of a version; empty for the one that is served."""
    phases: Sequence[Literal["early", "complete", "late"] | str]
    """Keep rows whose window is open, closed, or closed and corrected since; empty for all."""


@dataclass(frozen=True)
class ReadRequest:
    """A question to a view; BadRange for one that has no answer."""

    where: str | None = None
    """Condition on the keys, in Spark SQL; None for all."""
    start: datetime | None = None
    """First window start, inclusive; None for no bound."""
    end: datetime | None = None
    """Instant before which windows start, exclusive; None for no bound."""
    as_of: int | datetime | None = None
    """An epoch or an instant: what is published now answers for events up to it; None for now."""
    served_at: datetime | None = None
    """An instant: what was answered then; None for now."""
    side: Side = Side.MERGED
    """Which layer answers."""
    version: str = ""
    """The fingerprint of a version; empty for the one that is served."""
    phases: tuple[Phase, ...] = ()
    """The phases of the rows to keep; empty for all."""

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None:
            Interval(self.start, self.end)
        if self.as_of is not None and self.served_at is not None:
            raise BadRange(
                "as_of and served_at cannot be combined.",
                hint="as_of reads today's publications up to then; served_at reads what was answered then.",
            )

    @classmethod
    def parse(cls, where: str | None = None, **options: Unpack[ReadOptions]) -> ReadRequest:
        """Read one from the texts and values that people give; TypeError for an option that does not exist."""
        require_known_options(options)
        phases = options.get("phases") or ()
        return cls(
            where,
            parse_time_bound(options.get("start")),
            parse_time_bound(options.get("end")),
            parse_epoch_or_moment(options.get("as_of")),
            parse_time_bound(options.get("served_at")),
            parse_choice(Side, options.get("side", Side.MERGED)),
            options.get("version", ""),
            tuple(parse_choice(Phase, each) for each in ([phases] if isinstance(phases, str) else phases)),
        )


def require_known_options(names: Iterable[str]) -> None:
    """Raise TypeError for a name that is none of ``ReadOptions``, as Python does for a keyword that is not declared."""
    for name in sorted({*names} - {*ReadOptions.__annotations__}):
        raise TypeError(
            f"There is no option {name!r} of a read. Hint: its options are {', '.join(ReadOptions.__annotations__)}."
        )


def parse_time_bound(given: Moment | None) -> datetime | None:
    """Parse a bound; without a zone it is UTC."""
    return None if given is None else parse_moment(given if isinstance(given, str) else given.isoformat())


def parse_epoch_or_moment(given: int | Moment | None) -> int | datetime | None:
    """Parse ``as_of``: digits are an epoch, everything else is an instant."""
    if isinstance(given, int):
        return given
    return int(given) if isinstance(given, str) and EPOCH.fullmatch(given) else parse_time_bound(given)


def parse_choice(kind: type[Choice], text: str) -> Choice:
    """Parse a side or a phase by its value; BadRange for any other text."""
    try:
        return kind(text)
    except ValueError:
        *others, last = (each.value for each in kind)
        raise BadRange(
            f"{text!r} is not a {kind.__name__.lower()}.", hint=f"use {', '.join(others)} or {last}."
        ) from None
