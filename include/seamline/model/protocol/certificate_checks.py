"""The proof attached to a generation, derived from evidence alone; nothing here is read or asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from seamline.model.protocol.counts.comparison import SourceCounts
from seamline.model.protocol.counts.verdict import Awaited, format_source_counts
from seamline.model.time.intervals import EPOCH, Interval, format_utc_instant, parse_moment

CLOSED = "watermark has passed the end"


@dataclass(frozen=True)
class Evidence:
    """What is known of one view's interval at its cut."""

    interval: Interval
    """The interval."""
    cut: int
    """The last epoch that the build has seen."""
    cut_is_edge: bool
    """Whether the cut is an edge."""
    watermark: datetime | None
    """The watermark that was recorded at the cut, None before the first."""
    contiguous: bool
    """Whether the offsets of all epochs up to the cut join without a gap."""
    holes: int
    """Registered holes up to the cut that rows of the interval may have been in."""
    ledger_rows: int
    """Accepted rows of the interval in epochs up to the cut, by the ledger."""
    rows_read: int
    """Rows that the build read."""
    duplicates: int
    """Rows that it left out as duplicates."""
    not_selected: int
    """Rows that it left out by the view's condition."""
    state_rows: int
    """Rows in the states that it wrote."""
    exploded: int = 0
    """How many more rows than records an exploding view made."""
    expectations: Sequence[str] = ()
    """A sentence for each expectation that failed."""
    expectations_checked: int = 0
    """How many expectations were checked."""
    ahead: timedelta = timedelta(0)
    """How far after its end rows may be that count in it; rows are counted of all intervals in reach."""
    joined: bool = False
    """Whether the rows in states are those of a join."""
    copies: int | None = None
    """Rows in reach that repeat an event id and are joined all the same; None where rows have none."""
    copied: str = ""
    """Where one of them is."""
    copies_allowed: bool = False
    """Whether the definition lets them count."""
    unanswered: int | None = None
    """Rows that wait for the answer of another system; None where none is asked."""
    counts: Sequence[Awaited] = ()
    """What producers say that they have sent, by source; nothing where none is asked."""
    now: datetime = EPOCH
    """When it is judged, UTC."""


@dataclass(frozen=True)
class Check:
    """One line of a certificate."""

    name: str
    """What was checked."""
    passed: bool
    """Whether it passed."""
    found: str
    """What was found, in words."""


@dataclass(frozen=True)
class Making:
    """How a generation was made."""

    record_version: str = ""
    """What its rows mean."""
    lookups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The versions by which its rows were read, by the look-up's name."""
    restated: tuple[str, ...] = ()
    """The decisions by which they were reprocessed, in words."""
    rows: int = 0
    """Rows in its states."""
    seconds: float = 0.0
    """The seconds of the build's whole attempt, of which the interval is a part."""
    actor: str = ""
    """Who asked for the run."""
    report: str = ""
    """The page of its run, as a path below the pipeline's folder."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Making:
        """Read it from JSON, where a release that knew less may have written it."""
        lookups = {name: tuple(versions) for name, versions in row.get("lookups", {}).items()}
        return cls(**{**row, "lookups": lookups, "restated": tuple(row.get("restated", ()))})


@dataclass(frozen=True)
class Certificate:
    """The verdict on one generation of one view."""

    view: str
    """The view's name."""
    fingerprint: str
    """The version's fingerprint."""
    generation: str
    """The generation's id."""
    interval: Interval
    """The interval."""
    cut: int
    """The last epoch that the generation has seen."""
    run: str
    """The run's id."""
    reason: str
    """Why the run built it."""
    at: datetime
    """When it was certified, UTC."""
    checks: tuple[Check, ...]
    """Each check with its outcome."""
    made: Making = Making()
    """How the generation was made."""
    provisional: bool = False
    """Whether all is green but that the interval is open, and the definition wants it published."""
    counts: tuple[SourceCounts, ...] = ()
    """What producers said that they had sent, and what was read, by source."""

    @property
    def good(self) -> bool:
        """True if it may be published without anybody's decision: it passed, or may be provisional."""
        return self.passed or self.provisional

    @property
    def passed(self) -> bool:
        """True if every check is green."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> str:
        """Write the certificate as it is kept."""
        return json.dumps(
            {
                "view": self.view,
                "fingerprint": self.fingerprint,
                "generation": self.generation,
                "interval": str(self.interval),
                "cut": self.cut,
                "run": self.run,
                "reason": self.reason,
                "at": format_utc_instant(self.at),
                "checks": [[check.name, check.passed, check.found] for check in self.checks],
                "made": vars(self.made),
                "provisional": self.provisional,
                "counts": [each.to_row() for each in self.counts],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read what ``to_json`` wrote."""
        row = json.loads(text)
        return cls(
            view=row["view"],
            fingerprint=row["fingerprint"],
            generation=row["generation"],
            interval=Interval.parse(row["interval"]),
            cut=row["cut"],
            run=row["run"],
            reason=row["reason"],
            at=parse_moment(row["at"]),
            checks=tuple(Check(*check) for check in row["checks"]),
            made=Making.from_row(row.get("made", {})),
            provisional=row.get("provisional", False),
            counts=tuple(map(SourceCounts.from_row, row.get("counts", ()))),
        )


def only_open(checks: Sequence[Check]) -> bool:
    """Return whether nothing is red but that the interval has not closed."""
    return [check.name for check in checks if not check.passed] == [CLOSED]


def validate_evidence(evidence: Evidence) -> tuple[Check, ...]:
    """Turn evidence into checks (rule 12); counts come from the ledger first, expectations last."""
    left_out = evidence.duplicates + evidence.not_selected
    expected = evidence.rows_read - left_out + evidence.exploded
    end, mark = evidence.interval.end + evidence.ahead, evidence.watermark
    reach = f"; rows up to {format_utc_instant(end)} count in it" if evidence.ahead else ""
    failed = list(evidence.expectations)
    copies = [] if evidence.copies is None else [judge_copies(evidence, evidence.copies)]
    answers = [] if evidence.unanswered is None else [judge_answers(evidence.unanswered)]
    closed = mark is not None and mark >= end
    return (
        Check("cut is an edge", evidence.cut_is_edge, f"cut {evidence.cut}"),
        Check(
            "offsets without a hole",
            evidence.contiguous and evidence.holes == 0,
            f"{evidence.holes} holes up to epoch {evidence.cut} that touch the interval"
            + ("" if evidence.contiguous else "; ranges do not join"),
        ),
        Check(
            CLOSED,
            closed,
            f"watermark {format_utc_instant(mark) if mark else 'unknown'} at the cut, "
            f"end {format_utc_instant(evidence.interval.end)}{reach}",
        ),
        Check(
            "rows read = rows in the ledger",
            evidence.rows_read == evidence.ledger_rows,
            f"{evidence.rows_read} read, {evidence.ledger_rows} in the ledger",
        ),
        Check(
            "rows in states = rows read less rows left out",
            evidence.state_rows == expected,
            format_state_rows(evidence, expected),
        ),
        *copies,
        *answers,
        *(judge_counts(each, closed=closed, now=evidence.now) for each in evidence.counts),
        Check(
            "expectations",
            not failed,
            "; ".join(failed) or f"{evidence.expectations_checked} met over {evidence.state_rows} rows",
        ),
    )


def format_state_rows(evidence: Evidence, expected: int) -> str:
    """Say how the rows in states come from those that were read."""
    if evidence.joined:
        read = f"made of {evidence.rows_read} rows in reach"
        return f"{evidence.state_rows} derived rows in states, {expected} {read}"
    exploded = f", {evidence.exploded:+} by explode" if evidence.exploded else ""
    return (
        f"{evidence.state_rows} in states, {evidence.rows_read} read, {evidence.duplicates} duplicates, "
        f"{evidence.not_selected} not selected{exploded}"
    )


def judge_answers(unanswered: int) -> Check:
    """Check that of each row that is asked about there is an answer, or the record of why there is none."""
    found = f"rows that wait for an answer: {unanswered}"
    if unanswered:
        found += "; for those that the stream does not ask about by itself: `seamline ask`"
    return Check("no row waits for an answer", not unanswered, found)


def judge_counts(awaited: Awaited, *, closed: bool, now: datetime) -> Check:
    """Check that what was read is what producers have sent; of an open interval nobody can say that yet."""
    found = format_source_counts(awaited.found)
    if not closed:
        return Check(awaited.name, True, f"the interval is open; {found}")
    holds = awaited.holds(now=now)
    if holds and not awaited.found.complete:
        found = f"noted, not required: {found}" if not awaited.required else f"no longer waited for: {found}"
    return Check(awaited.name, holds, found)


def judge_copies(evidence: Evidence, copies: int) -> Check:
    """Check that no row is joined that repeats an event id, or that the definition lets it."""
    found = f"{copies} rows in reach repeat an event id"
    if copies:
        found += f" beyond dedup_within, the first at {evidence.copied}"
        found += "; copies=True lets them count" if evidence.copies_allowed else ""
    return Check("no copies of rows count", not copies or evidence.copies_allowed, found)
