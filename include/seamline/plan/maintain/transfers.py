"""What is left to do until one folder has the files of another: what is copied, compared, and deleted, in which order.

A table's data is there before its log, and what begins the log is there last: nobody sees half a table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

PIPELINE_TABLES = ("control", "manifest")
"""Tables by which a pipeline's folder is known."""
MARK = "_move"
"""How the name of a file at the root of a warehouse begins that is about its moves."""
STATUS = "_status"
"""The folder of what processes say of a pipeline's stream, beside its tables."""
DRAFTS = ("_commit_", ".tmp")
"""How the draft of a commit begins and ends, which its writer deletes."""


@dataclass(frozen=True)
class FoundFile:
    """A file as a listing shows it."""

    way: str
    """From the folder that was listed."""
    size: int
    """Bytes."""
    changed: int
    """When it was written, in nanoseconds since 1970."""
    mark: int
    """What is another once another file is there, as far as this process knows."""


@dataclass(frozen=True)
class Transfer:
    """What one pass has to do."""

    copied: tuple[FoundFile, ...] = ()
    """Files that the destination lacks, or has in another size."""
    compared: tuple[FoundFile, ...] = ()
    """Files that are there in the same size, and have not been verified yet."""
    deleted: tuple[str, ...] = ()
    """Ways of files at the destination that the source has no more."""

    @property
    def is_nothing(self) -> bool:
        """Return whether all is done."""
        return not (self.copied or self.compared or self.deleted)

    @property
    def size(self) -> int:
        """Bytes that are copied or compared."""
        return sum(each.size for each in (*self.copied, *self.compared))

    def stages(self) -> list[list[FoundFile]]:
        """List the files to copy and to compare, stage by stage: one begins when the one before is done."""
        ordered = sorted((*self.copied, *self.compared), key=lambda each: (rank_of(each.way), each.way))
        return [list(some) for _, some in groupby(ordered, key=lambda each: rank_of(each.way))]


def plan_transfer(
    source: Mapping[str, FoundFile], there: Mapping[str, FoundFile], done: Mapping[str, FoundFile]
) -> Transfer:
    """Decide what is left to do; ``done`` are the files of the source that were verified, as they were then."""
    left = [each for way, each in sorted(source.items()) if done.get(way) != each or way not in there]
    copied = tuple(each for each in left if each.way not in there or there[each.way].size != each.size)
    kept = {each.way for each in copied}
    return Transfer(
        copied,
        tuple(each for each in left if each.way not in kept),
        tuple(sorted(there.keys() - source.keys())),
    )


def rank_of(way: str) -> int:
    """Return at which stage a file is copied: data, entries, checkpoints, the mark of the last one, the first entry.

    A log that was cleaned has no first entry any more: a checkpoint begins it.
    """
    _, log, name = way.partition("_delta_log/")
    if not log:
        return 0
    if ".checkpoint." in name:
        return 2
    if name == "_last_checkpoint":
        return 3
    return 4 if name == f"{0:020d}.json" else 1


def select_files(
    found: Mapping[str, FoundFile],
    *,
    tables: Collection[str] = (),
    drafts: bool = False,
) -> dict[str, FoundFile]:
    """Select the files that belong to a warehouse: no marks of moves, none of some tables, no drafts.

    ``tables`` are the names of folders right below a pipeline's. With ``drafts`` those are selected too. What
    processes last said of a stream changes all the time, and is about where it runs.
    """

    def belongs(way: str) -> bool:
        folder, _, file = way.partition("/")[2].partition("/")
        said = folder == STATUS and "/" not in file
        mark = way.startswith(MARK) and "/" not in way
        return not (mark or said or folder in tables) and (drafts or not is_draft(way))

    return {way: each for way, each in found.items() if belongs(way)}


def is_draft(way: str) -> bool:
    """Return whether a file is a draft: of a commit, or of what a killed fork or copy has left."""
    name = way.rpartition("/")[2]
    begins, ends = DRAFTS
    left = name.startswith(".") and name.endswith(".copy")
    return way.startswith(".") or left or (name.startswith(begins) and name.endswith(ends))


def list_pipelines(ways: Iterable[str]) -> list[str]:
    """List the pipelines of a warehouse: the folders right below it that have a control table, or a manifest.

    Other people's tables below a warehouse are files to us.
    """
    tables = (way.partition("/_delta_log/")[0].split("/") for way in ways if "/_delta_log/" in way)
    return sorted({way[0] for way in tables if len(way) == 2 and way[1] in PIPELINE_TABLES})


def list_tables(ways: Iterable[str], *, below: str = "") -> list[str]:
    """List the ways to the tables that files belong to, of one pipeline or of all."""
    return sorted(
        {
            way.partition("/_delta_log/")[0]
            for way in ways
            if "/_delta_log/" in way and way.startswith(f"{below}/" if below else "")
        }
    )
