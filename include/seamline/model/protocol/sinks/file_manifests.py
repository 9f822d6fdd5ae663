"""The manifests of a sink into files: which files count, who wrote them, and what nobody needs any more (rule 34)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.positions import SinkPosition

NAME = re.compile(r"(?:.*/)?(\d{10})-([0-9a-f]{8})-\d{6}\.(?:parquet|jsonl)")
"""What files of a sink are called: the number of its writer's first manifest, a random text, and how many it was."""
LEFT = re.compile(rf"(?:.*/)?\.?{NAME.pattern.removeprefix('(?:.*/)?')}(?:\.[0-9a-f]+)?")
"""What a file is called that may not be whole: its writer may have been killed."""


@dataclass(frozen=True)
class DataFile:
    """A file of rows that counts."""

    file: str
    """The way to it from the sink's path."""
    rows: int
    """How many rows it has."""
    deleted: int
    """How many of them say that a row is gone."""
    bytes: int
    """Its bytes."""
    at: float
    """When it was written, in seconds since 1970."""

    @property
    def bucket(self) -> str:
        """The folder that it is in."""
        return self.file.rpartition("/")[0]


@dataclass(frozen=True)
class FileManifest:
    """One commit: what it adds to the files that count, what it takes from them, and where the sink stands then."""

    number: int
    """One more than that of the commit before."""
    sink: str
    """Whose it is: PIPELINE.SINK."""
    writer: str
    """The process that wrote it: the number of its first manifest, and a random text."""
    whole: bool
    """Whether the files that it adds are all that there are: what earlier manifests say is not needed then."""
    base: int
    """The number of the last whole manifest, its own where it is one."""
    previous: str
    """The SHA-256 of the manifest before; empty for one that nothing is known of."""
    at: float
    """When it was written, in seconds since 1970."""
    position: SinkPosition | None
    """Where the sink stands; None where it has nothing."""
    added: tuple[DataFile, ...] = ()
    """Files that count from now on."""
    removed: tuple[str, ...] = ()
    """Files that do not count any more."""
    types: tuple[tuple[str, str], ...] = ()
    """The columns that files which count may have, each with its type; none where a format fixes no types."""

    def to_bytes(self) -> bytes:
        """Write it as JSON; the inverse of ``from_bytes``."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes, number: int) -> FileManifest:
        """Read what ``to_bytes`` wrote; SetupError for anything else, or for another number."""
        try:
            row: dict[str, Any] = json.loads(data)
            added = tuple(DataFile(**each) for each in row.pop("added"))
            at = row.pop("position")
            position = None if at is None else SinkPosition.from_json(json.dumps(at))
            types = tuple((str(name), str(type)) for name, type in row.pop("types", ()))
            told = {"added": added, "removed": tuple(row["removed"]), "types": types}
            found = cls(**{**row, **told, "position": position})
            if found.number != number or not all(NAME.fullmatch(each.file) for each in added):
                raise ValueError(f"it says {found.number}, or names files that are no sink's")
        except (ValueError, TypeError, KeyError, SetupError) as error:
            raise SetupError(f"Manifest {number} of a sink cannot be read: {error}.", hint=RESEND) from error
        return found


RESEND = (
    "nobody else may write or delete there. `seamline sinks resend PIPELINE SINK` writes everything anew."
)


def list_counting_files(chain: Iterable[FileManifest]) -> dict[str, DataFile]:
    """List the files that count by name, from manifests in order, the first of which is whole."""
    found: dict[str, DataFile] = {}
    for manifest in chain:
        if manifest.whole:
            found.clear()
        for name in manifest.removed:
            found.pop(name, None)
        found.update({each.file: each for each in manifest.added})
    return found


def find_claim(file: str) -> int | None:
    """Return the number of the first manifest of who wrote a file, whole or not; None for one that is no sink's."""
    named = LEFT.fullmatch(file)
    return int(named[1]) if named else None


def list_unneeded_manifests(ages: Mapping[int, float], newest: FileManifest, grace: float) -> Sequence[int]:
    """List the manifests that nobody needs, the oldest first: in this order they are to be deleted.

    A writer that has slept since may create the number after one of them. That it is no commit, it finds out by the
    one before, which is gone first. ``ages`` has seconds before the newest one was written.
    """
    return sorted(each for each, age in ages.items() if each < newest.base and age > grace)


def list_unneeded_files(files: Iterable[str], kept: Iterable[FileManifest], claim: int) -> list[str]:
    """List the files that no manifest can name any more, for a writer with a claim.

    They are of writers before it, and of those that are fenced off; what a manifest that is kept has named is left
    for who reads by it.
    """
    manifests = [*kept]
    named = {each.file for manifest in manifests for each in manifest.added}
    named |= {name for manifest in manifests for name in manifest.removed}
    own = ((each, find_claim(each)) for each in files if each not in named)
    return [each for each, by in own if by is not None and by < claim]
