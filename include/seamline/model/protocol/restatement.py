"""Restatements: rows of some intervals are made again with a corrected look-up, by a person's decision (rule 14).

Decisions are numbered from 1 in their order and never taken back; a generation says how many its build knew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment


@dataclass(frozen=True)
class Restatement:
    """A decision that rows of some intervals are as another version of a look-up has them."""

    lookup: str
    """The look-up's name."""
    version: str
    """The version that counts."""
    span: Interval
    """The intervals."""
    epoch: int
    """The last epoch whose rows are meant."""
    actor: str
    """Who decided it."""
    reason: str
    """Why, in that person's words."""
    at: datetime
    """When, UTC."""
    used: int = -1
    """The first epoch whose records met the version, where its rules come from a topic; else -1."""

    def __str__(self) -> str:
        return (
            f"{self.lookup} to version {self.version} in {self.span}, rows up to epoch {self.epoch}; "
            f"{self.actor}: {self.reason}"
        )

    def to_row(self) -> dict[str, Any]:
        """Write it as JSON-like facts."""
        row = {**vars(self), "span": str(self.span), "at": format_utc_instant(self.at)}
        return {name: value for name, value in row.items() if name != "used" or value >= 0}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Restatement:
        """Read what ``to_row`` wrote."""
        return cls(**{**row, "span": Interval.parse(row["span"]), "at": parse_moment(row["at"])})


def apply_restatements(
    decisions: Iterable[Restatement], versions: Mapping[str, str], moment: datetime, epoch: int
) -> Mapping[str, str]:
    """Return the versions that apply to an event of an epoch that was read with ``versions``; the newest wins."""
    found = dict(versions)
    for each in decisions:
        if each.lookup in found and epoch <= each.epoch and moment in each.span:
            found[each.lookup] = each.version
    return found


def carry_restatements(
    decisions: Iterable[Restatement],
    lookups: Collection[str],
    versions: Mapping[int, Mapping[str, str]],
) -> list[Restatement | None]:
    """Return what decisions of before rows were validated again mean for these, None for nothing.

    Records that are validated again meet a look-up's table as it is, which has what was corrected: no decision about it
    is left. Rules of a topic they meet as they were read, so decisions about such ``lookups`` go on, by what
    validating the epoch again has made of the table that is meant: ``versions`` has what such epochs name now.
    """
    found: list[Restatement | None] = []
    for each in decisions:
        version = versions.get(each.used, {}).get(each.lookup, each.version)
        found.append(replace(each, version=version) if each.lookup in lookups else None)
    return found


def list_interval_restatements(decisions: Iterable[Restatement], interval: Interval) -> list[Restatement]:
    """List the decisions about an interval."""
    return [each for each in decisions if each.span.overlaps(interval)]
