"""Copies of where sinks stand, a file for each in the warehouse: for upkeep, which leaves what they need, and people.

A copy may be older than what the target says, never newer, and nothing that is sent depends on it (rule 32).
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from seamline.lake.storage.durability import sync_file
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, create_file, list_names, replace_file
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition

SUFFIX = ".json"


@dataclass(frozen=True)
class SinkCopy:
    """What the warehouse knows of a sink."""

    view: str
    """The view that it sends."""
    place: str
    """Where it writes to."""
    at: str
    """When this was written, UTC."""
    position: SinkPosition
    """Where it stands, or stood."""

    def to_bytes(self) -> bytes:
        """Write it as JSON."""
        return json.dumps({**asdict(self), "position": self.position.to_json()}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> SinkCopy:
        """Read what ``to_bytes`` wrote; SetupError for anything else."""
        try:
            row: dict[str, Any] = json.loads(data)
            return cls(**{**row, "position": SinkPosition.from_json(row["position"])})
        except (ValueError, TypeError, KeyError) as error:
            raise SetupError(
                f"The copy of a sink's position cannot be read: {error}.",
                hint="delete its file below sinks/ of the pipeline's tables: the sink writes it anew.",
            ) from error


def copies_folder(layout: Layout) -> Location:
    """Return the folder of the copies."""
    return layout.table("sinks")


def locate_copy(layout: Layout, sink: str) -> Location:
    """Return the file of a sink."""
    return copies_folder(layout) / f"{sink}{SUFFIX}"


def begin_copy(layout: Layout, sink: str, copy: SinkCopy) -> None:
    """Write the copy of a sink that has none: one that is there needs as much, or more."""
    create_file(locate_copy(layout, sink), copy.to_bytes())


def replace_copy(layout: Layout, sink: str, copy: SinkCopy) -> None:
    """Write the copy of a sink."""
    replace_file(locate_copy(layout, sink), copy.to_bytes(), before=sync_file)


def read_copy(layout: Layout, sink: str) -> SinkCopy | None:
    """Read the copy of a sink; None if it has none."""
    try:
        return SinkCopy.from_bytes(locate_copy(layout, sink).read_bytes())
    except FileNotFoundError:
        return None


def read_known_copy(layout: Layout, sink: str) -> SinkCopy | None:
    """Read the copy of a sink's position, None if there is none that can be read."""
    with suppress(SetupError):
        return read_copy(layout, sink)
    return None


def list_copied_sinks(layout: Layout) -> list[str]:
    """List the sinks that have a copy."""
    try:
        names = list_names(copies_folder(layout))
    except FileNotFoundError:
        return []
    return sorted(
        each.removesuffix(SUFFIX) for each in names if each.endswith(SUFFIX) and not each.startswith(".")
    )


def forget_copy(layout: Layout, sink: str) -> None:
    """Delete the copy of a sink."""
    locate_copy(layout, sink).unlink(missing_ok=True)
