"""The generations of an interval, in lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from seamline.model.protocol.manifest import Manifest, Statement
from seamline.model.time.intervals import Interval, format_utc_instant
from seamline.plan.maintain.retention_rules import RetentionVerdict
from seamline.plan.publish.generation_fates import PastGeneration

SHOWN = 20


def format_generation_history(
    view: str, interval: Interval, manifest: Manifest, known: Sequence[PastGeneration]
) -> list[str]:
    """Describe every generation of an interval, oldest first: what became of it, who made it, its certificate."""
    if not known:
        return [f"{view} {interval}: no generation"]
    count = len(known)
    lines = [f"{view} {interval}: {count} generation{'s' * (count > 1)}"]
    for each in known:
        lines += format_generation(each)
    for (id, name), stands in manifest.held.items():
        if name == interval.id and id.partition("/")[0] == view.partition(".")[2]:
            lines.append(f"  held since {format_statement_time(stands)} by {stands.actor}: {stands.reason}")
            lines.append("    until `seamline rollback --release`, or a run that is asked for this interval")
    return lines


def format_generation(each: PastGeneration) -> Iterator[str]:
    """Describe one generation."""
    made = each.generation
    version = made.view.partition("/")[2]
    gone = "" if each.kept else f", gone: {each.held} of them left"
    yield f"  {made.id}  {each.fate.value}  version {version}  cut {made.cut}  {made.rows} rows{gone}"
    if each.built:
        yield f"    built {format_utc_instant(each.built)} by run {made.run}: {made.reason or 'no reason given'}"
    for statement in each.published:
        yield f"    published {format_statement_time(statement)}{format_publication_note(statement)}"
    yield f"    certificate {format_certificate_verdict(each)}"


def format_certificate_verdict(each: PastGeneration) -> str:
    """Describe a certificate in a line."""
    if each.certificate is None:
        return "none"
    if each.certificate.passed:
        return "passed"
    if each.certificate.provisional:
        return "provisional: green but that the interval was open"
    red = (f"{check.name}: {check.found}" for check in each.certificate.checks if not check.passed)
    return f"not passed: {'; '.join(red)}"


def format_publication_note(statement: Statement) -> str:
    """Describe how a generation came to be served, where not by its certificate alone."""
    return f": {statement.note}" if statement.note else ""


def format_statement_time(statement: Statement) -> str:
    """Format when something was stated."""
    return format_utc_instant(statement.at) if statement.at else "at an unknown time"


def format_retention(found: Sequence[RetentionVerdict]) -> Iterator[str]:
    """Describe which generations may be deleted, one by one, and for what reasons how many others may not."""
    free = [each.kept for each in found if each.free]
    yield f"{len(free)} of {len(found)} generations may be deleted, {sum(each.rows for each in free)} rows"
    for each in free[:SHOWN]:
        yield f"  {each.view} {each.interval} {each.generation}  {each.rows} rows"
    if len(free) > SHOWN:
        yield f"  ... and {len(free) - SHOWN} more"
    for why, count in Counter(each.why for each in found if not each.free).most_common():
        yield f"  {count} stay: {why}"


def build_generations_table(known: Sequence[PastGeneration]) -> pa.Table:
    """Build the generations as rows, for scripts."""
    rows = [
        {
            "generation": each.generation.id,
            "version": each.generation.view.partition("/")[2],
            "fate": each.fate.value,
            "cut": each.generation.cut,
            "rows": each.generation.rows,
            "kept": each.kept,
            "built": each.built,
            "run": each.generation.run,
            "reason": each.generation.reason,
            "certificate": format_certificate_verdict(each),
            "published": [
                f"{format_statement_time(one)}{format_publication_note(one)}" for one in each.published
            ],
        }
        for each in known
    ]
    types = {"cut": pa.int64(), "rows": pa.int64(), "kept": pa.bool_(), "built": pa.timestamp("us", "UTC")}
    names = [
        "generation", "version", "fate", "cut", "rows", "kept", "built", "run", "reason", "certificate"
    ]  # fmt: skip
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist(rows, schema=schema.append(pa.field("published", pa.list_(pa.string()))))
