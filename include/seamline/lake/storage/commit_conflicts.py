"""What becomes of a commit where another one has its version: decided by what both say of themselves, or retried."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from itertools import count
from typing import TypeVar

from seamline.lake.storage.log_entries import Commit
from seamline.model.errors import Overtaken

TOKEN = "seamline.token"
ATTEMPTS = 20
"""More than there ever are writers of one table."""
T = TypeVar("T")


class Meeting(Enum):
    """OURS is there already. PASSED concerns nobody: ours is tried after it. OVERTAKEN decided on what ours did.

    LOST: a newer writer has taken the table over. LATE is an earlier commit of the same writer, which was told that it
    failed, or nothing: the writer has to look again.
    """

    OURS = auto()
    PASSED = auto()
    OVERTAKEN = auto()
    LOST = auto()
    LATE = auto()


def classify_commit_conflict(ours: Commit, other: Commit, *, newest: str) -> Meeting:
    """Classify what becomes of our commit, decided on a version whose commit has the id ``newest``."""
    if other.id and other.id == ours.id:
        return Meeting.OURS
    token, theirs = ours.txns.get(TOKEN), other.txns.get(TOKEN)
    if token is not None and theirs is not None and theirs > token:
        return Meeting.LOST
    if other.shape or (other.after and newest and other.after != newest):
        return Meeting.OVERTAKEN
    if token is not None and theirs == token:
        return Meeting.LATE
    if not ours.txns.keys().isdisjoint(other.txns) or ours.removes & other.removes:
        return Meeting.OVERTAKEN
    return Meeting.PASSED


def retry_overtaken(decide: Callable[[], T], attempts: int | None = ATTEMPTS) -> T:
    """Return what ``decide`` returns, which reads, decides and commits; call it again while others commit first.

    Raises what ``decide`` does, and Overtaken after so many ``attempts``; None tries until it succeeds, for decisions
    that must be made however busy a table is.
    """
    for attempt in count(1):
        try:
            return decide()
        except Overtaken:
            if attempt == attempts:
                raise
    raise AssertionError("count() does not end")
