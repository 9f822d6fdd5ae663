"""An explanation in lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.model.compile.compiled_join import KIND, PAIR
from seamline.model.compile.record_rules import SOURCE
from seamline.model.time.intervals import format_utc_instant
from seamline.serve.explain import format_key
from seamline.serve.explained_number import Explanation, Row
from seamline.serve.query import format_cell

PARTS = 40


def format_explanation(found: Explanation) -> list[str]:
    """Describe where a number comes from: the row, its intervals, its parts, the proof, the rows."""
    row = ", ".join(f"{name} {format_cell(value)}" for name, value in found.together.items())
    return [
        f"{found.view}  {format_key(found.key)}  {format_window(found)}",
        f"  {row}",
        format_side_counts(found),
        *format_explained_intervals(found),
        *format_explained_parts(found),
        "Proof:",
        *(f"  {'yes' if holds else 'NO '}  {text}" for text, holds in found.proofs),
        *format_master_rows(found),
    ]


def format_derived_row(row: Row) -> str:
    """Show a derived row with the places of what it is made of."""
    place = f"{row['_topic']} partition {row['_partition']} offset {row['_offset']}"
    if row[KIND] == PAIR:
        right = f"{row['_right_topic']} partition {row['_right_partition']} offset {row['_right_offset']}"
        place = f"pair of {place} and {right}"
    else:
        place = f"{row[KIND]}: {place}"
    values = ", ".join(
        f"{name}={format_cell(value)}" for name, value in row.items() if not name.startswith("_")
    )
    return f"  {place}, epoch {row['_epoch']}: {values}"


def format_window(found: Explanation) -> str:
    """Format the window."""
    start, end = found.row["window_start"], found.row["window_end"]
    return (
        f"{format_utc_instant(start)} to {format_utc_instant(end)}"
        if end
        else f"{format_utc_instant(start)} and on"
    )


def format_side_counts(found: Explanation) -> str:
    """Describe how many rows each side brought."""
    row = found.row
    sides = f"{row['batch_part']} rows from batch, {row['speed_part']} from speed"
    return f"  {sides}, counted up to epoch {row['epoch']}"


def format_explained_intervals(found: Explanation) -> Iterator[str]:
    """Describe each interval's generation, cut and certificate."""
    for id, way in found.intervals.items():
        counted = found.originals[id]
        yield f"Interval {id}: {way.status.value}, right up to epoch {way.complete_to}"
        if way.generation:
            yield f"  generation {way.generation}, cut {way.cut}; {counted.duplicates} duplicates left out"
        if way.note:
            yield f"  {way.note}"
        yield from (f"  reprocessed: {each}" for each in found.restated.get(id, ()))
        if certificate := found.certificates.get(id):
            verdict = "passed" if certificate.passed else "not passed"
            yield f"  certificate {verdict}, run {certificate.run}, {format_utc_instant(certificate.at)}"
            yield from (
                f"    {'yes' if check.passed else 'NO '}  {check.name}: {check.found}"
                for check in certificate.checks
            )


def format_explained_parts(found: Explanation) -> Iterator[str]:
    """Describe each part's share."""
    yield "Parts:"
    for part in found.parts[:PARTS]:
        values = ", ".join(f"{name} {format_cell(value)}" for name, value in part.values.items())
        first, last = part.epochs
        epochs = f"epoch {last}" if first == last else f"epochs {first}..{last}"
        yield f"  {part.source}, {epochs}: {part.rows} rows, {values}"
    if len(found.parts) > PARTS:
        yield f"  ... and {len(found.parts) - PARTS} more"


def format_master_rows(found: Explanation) -> Iterator[str]:
    """Show the rows of the master that were asked for."""
    if found.page:
        yield "Rows of the master:"
    for row in found.page:
        if KIND in row:
            yield format_derived_row(row)
            continue
        spare = "  (duplicate, left out)" if row["_spare"] else ""
        values = ", ".join(
            f"{name}={format_cell(value)}" for name, value in row.items() if not name.startswith("_")
        )
        source = f"{row[SOURCE]}: " if SOURCE in row else ""
        place = f"{row['_topic']}/{row['_partition']}@{row['_offset']}"
        yield f"  {source}{place} epoch {row['_epoch']}{spare}: {values}"
