"""How a sink is: what its target shows, how far that is behind what is served, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from seamline.plan.spelling import format_duration, format_quantity
from seamline.plan.stream.sink_verdicts import SinkVerdict


@dataclass(frozen=True)
class SinkFacts:
    """One sink of a definition, as the warehouse and its process tell of it."""

    name: str
    """Its name."""
    view: str
    """The view that it sends."""
    target: str
    """Where it writes to."""
    when: str
    """Which rows it sends; empty for records of the log."""
    state: str = ""
    """What its process on this host is at: "sending", "waiting", "failed", "fenced off", "ended", or "silent" if it has
    said nothing for a minute; empty where none has run here."""
    up: bool = False
    """Whether that process sends, or waits for what is new."""
    version: int | None = None
    """The version of the serving table that the target shows; None for none."""
    newest: int | None = None
    """The newest version of the serving table; None if nothing is served yet."""
    toward: int | None = None
    """The version on the way to which the target is; None where it is at one."""
    rows: int = 0
    """Changes that were written on that way."""
    again: str = ""
    """The range that is sent again; empty for none."""
    again_rows: int = 0
    """Rows of it that were sent."""
    at: str | None = None
    """When the target last moved, UTC, as the warehouse knows; None if it never has."""
    behind_seconds: float | None = None
    """The age of the first version, or epoch, that it does not show; 0 if it shows the newest, None if nothing
    was sent."""
    sent: int | None = None
    """Changes that the process has sent since it was started."""
    error: str = ""
    """Why it failed last; empty if it has not."""
    audit: SinkVerdict | None = None
    """What its last audit has found; None if it was never audited."""
    wrong: SinkVerdict | None = None
    """The last audit that found something wrong which no later one has found to be right; None for none."""

    @property
    def behind(self) -> int | None:
        """Versions from the one that is shown to the newest; None if nothing is served."""
        return None if self.newest is None else self.newest - (-1 if self.version is None else self.version)

    @property
    def counted(self) -> str:
        """What is counted: versions of the serving table, of records epochs of the log."""
        return "version" if self.when else "epoch"

    @property
    def fine(self) -> bool:
        """Whether it is up and has not failed."""
        return self.up and not self.error

    @property
    def found_wrong(self) -> str:
        """What audits have found to be wrong, in a sentence; empty for nothing."""
        return f"an audit at {self.wrong.at} found {self.wrong.said}" if self.wrong else ""

    @property
    def alarms(self) -> list[str]:
        """Say why it has failed, and what audits have found to be wrong."""
        return [each for each in (self.error, self.found_wrong) if each]


def format_shown(found: SinkFacts) -> str:
    """Say what a target shows, and how far behind that is."""
    if found.newest is None:
        return "nothing to send yet"
    if found.at is None:
        return f"sent nothing yet of {found.counted} {found.newest:,}"
    shown = f"no {found.counted}" if found.version is None else f"{found.counted} {found.version:,}"
    sent = "change" if found.when else "record"
    way = (
        f", {format_quantity(found.rows, sent)} on the way to {found.toward:,}"
        if found.toward is not None
        else ""
    )
    if not found.behind:
        return f"{shown}, the newest{way}"
    since = format_duration(found.behind_seconds) if found.behind_seconds is not None else "?"
    return f"{shown} of {found.newest:,}{way}, {since} behind"


def format_sink_notes(sinks: tuple[SinkFacts, ...]) -> Iterator[str]:
    """Say in a line each how sinks are."""
    for each in sinks:
        again = f"; {each.again} is sent again, {each.again_rows:,} rows so far" if each.again else ""
        state = each.state or "not run on this host"
        error = f": {'; '.join(each.alarms)}" if each.alarms else ""
        shown = format_shown(each)
        verb = "shows " if each.at and each.newest is not None else "has "
        yield f"sink {each.name} to {each.target} {verb}{shown}{again}; {state}{error}"


def serialize_sinks(sinks: tuple[SinkFacts, ...]) -> list[dict[str, Any]]:
    """Return sinks as JSON has them."""
    return [{**asdict(each), "behind_versions": each.behind} for each in sinks]
