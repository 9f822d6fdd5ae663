"""What is known of a pipeline's alerts, in a file or an object: which are raised, which notifications wait."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seamline.lake.status.status_files import read_json_file
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.store.shared_objects import find_shared_object
from seamline.model.protocol.alert import AlertKind, AlertStatement, Key, Standing
from seamline.model.time.intervals import format_utc_instant, parse_moment
from seamline.supervisor.supervisor_heartbeat import ensure_stream_folder

ALERTS = "alerts"
FILE = f"{ALERTS}.json"
KINDS = frozenset(each.value for each in AlertKind)


@dataclass(frozen=True)
class Notification:
    """A statement on its way by one channel."""

    statement: AlertStatement
    """What is shown."""
    channel: str
    """The channel's name."""
    until: datetime | None = None
    """While it is being sent: when another process may send it; None if nobody is sending it."""


@dataclass(frozen=True)
class Board:
    """What is known of a pipeline's alerts, and which notifications wait."""

    standing: Mapping[Key, Standing]
    """By kind and subject."""
    telling: tuple[Notification, ...] = ()
    """Oldest first."""

    @property
    def raised(self) -> tuple[Standing, ...]:
        """List the alerts that are raised."""
        return tuple(each for _, each in sorted(self.standing.items()) if each.raised)

    def to_json(self) -> str:
        """Write it as the file has it."""
        return json.dumps(
            {
                "standing": [format_board_row(asdict(each)) for each in self.standing.values()],
                "telling": [
                    format_board_row({**asdict(each), **asdict(each.statement)}) for each in self.telling
                ],
            },
            indent=1,
        )

    @classmethod
    def read(cls, place: Path) -> Board:
        """Read a pipeline's board; an empty one if it is missing or broken: alerts that persist are raised again."""
        try:
            return cls.parse(read_json_file(place / FILE))
        except ValueError:
            return cls({})

    @classmethod
    def parse(cls, row: Mapping[str, Any] | None) -> Board:
        """Parse a board; an empty one if there is none, or it is broken.

        Another release may know other kinds of alerts: those are left out, and it raises them again.
        """
        if row is None:
            return cls({})
        try:
            known = [
                Standing(
                    **{
                        **each,
                        "kind": AlertKind(each["kind"]),
                        "at": parse_optional_moment(each["at"]),
                        "since": parse_optional_moment(each["since"]),
                    }
                )
                for each in row["standing"]
                if each["kind"] in KINDS
            ]
            telling = tuple(
                Notification(
                    AlertStatement(
                        AlertKind(each["kind"]),
                        each["subject"],
                        each["raised"],
                        each["message"],
                        parse_moment(each["at"]),
                    ),
                    each["channel"],
                    parse_optional_moment(each["until"]),
                )
                for each in row["telling"]
                if each["kind"] in KINDS
            )
        except (ValueError, TypeError, KeyError):
            return cls({})
        return cls({(each.kind, each.subject): each for each in known}, telling)


def format_board_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Format instants as text, and leave out what is said twice."""
    return {
        name: format_utc_instant(value) if isinstance(value, datetime) else value
        for name, value in row.items()
        if name != "statement"
    }


def parse_optional_moment(text: str | None) -> datetime | None:
    """Parse an instant that may not be there."""
    return parse_moment(text) if text else None


def read_board(layout: Layout) -> Board:
    """Read a pipeline's board: of all machines at a bucket, else of this one."""
    if shared := find_shared_object(layout.status(ALERTS)):
        return Board.parse(shared.read()[0])
    return Board.read(home_folder() / "streams" / layout.pipeline)


def change_board(layout: Layout, change: Callable[[Board], Board]) -> None:
    """Replace a pipeline's board by what follows from it, while nobody else does.

    StoreUnavailable where that is not known. In a bucket ``change`` is asked again each time another machine was first.
    """
    if shared := find_shared_object(layout.status(ALERTS)):
        shared.change(lambda row: json.loads(change(Board.parse(row)).to_json()))
        return
    place = ensure_stream_folder(home_folder(), layout.pipeline)
    file = place / FILE
    with (place / f"{FILE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft = file.with_suffix(".new")
        draft.write_text(change(Board.read(place)).to_json())
        draft.replace(file)
