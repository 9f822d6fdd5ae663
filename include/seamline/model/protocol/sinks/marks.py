"""Which rows a target shows, in a text that no other version, table or way of sending has."""

from __future__ import annotations

from dataclasses import dataclass

BETWEEN = " > "
"""Stands between the marks of both ends of a way."""


@dataclass(frozen=True)
class Mark:
    """One version of a serving table, as a sink sends it."""

    view: str
    """The fingerprint of the view version that is shown; empty where nobody knows."""
    form: str
    """What is sent of it (``Sink.form``)."""
    commit: str
    """A hash of the table's commit: the table may have been restored, or made again, and have counted anew."""

    def __str__(self) -> str:
        return f"{self.view}/{self.form}/{self.commit}"

    @classmethod
    def parse(cls, text: str) -> Mark:
        """Read what ``str`` writes; ValueError for anything else."""
        view, form, commit = text.split("/")
        return cls(view, form, commit)


def join_marks(before: str, after: str) -> str:
    """Write what a target shows that is on the way between two marks; one that began with nothing has no first."""
    return f"{before}{BETWEEN}{after}"


def split_marks(text: str) -> tuple[str, str]:
    """Return the marks of both ends; of a target that is not underway the second is empty."""
    first, _, second = text.partition(BETWEEN)
    return first, second
