"""An explanation in lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from seamline.model.compile.changes.compiled_changelog import SIGN
from seamline.model.compile.compiled_join import KIND, PAIR
from seamline.model.compile.record_rules import SOURCE
from seamline.model.definition.debezium import MARK
from seamline.model.functions.tracing import CALL
from seamline.model.time.intervals import format_utc_instant
from seamline.serve.explain import format_key
from seamline.serve.explained_number import Explanation, Row
from seamline.serve.imported_rows import FILE, ROW
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


def format_place(row: Row, prefix: str = "") -> str:
    """Write where a row is in Kafka: ``orders/0@42``; or in a file: ``2025.parquet row 42``."""
    if not prefix and row.get(FILE):
        return f"{row[FILE]} row {row[ROW]}"
    topic, partition, offset = (row[f"{prefix}_{name}"] for name in ("topic", "partition", "offset"))
    return f"{topic}/{partition}@{offset}"


def format_values(row: Row) -> str:
    """Write the columns that a definition names."""
    return ", ".join(f"{name}={format_cell(value)}" for name, value in declared_values(row).items())


def declared_values(row: Row) -> Row:
    """Return the columns that a definition names: those with one underscore are ours."""
    return {name: value for name, value in row.items() if not name.startswith("_") or name.startswith(MARK)}


def format_derived_row(row: Row) -> str:
    """Show a derived row with the places of what it is made of."""
    place = format_place(row)
    pair = row[KIND] == PAIR
    place = f"pair of {place} and {format_place(row, '_right')}" if pair else f"{row[KIND]}: {place}"
    return f"  {place}, epoch {row['_epoch']}: {format_values(row)}"


def format_emitted_row(row: Row) -> str:
    """Show an emitted row with the call that emitted it, and the states before and after that."""
    place = f" of {format_place(row)}" if row["_topic"] is not None else ""
    states = f"{row['_before']} -> {row['_after']}"
    called = f"{row[CALL]}{place} at {format_utc_instant(row['_event_time'])}"
    return f"  {called}: {format_values(row)}; {states}; rows folded {row['_folded']}"


def format_change_row(row: Row) -> str:
    """Show what a change has added, or taken away, with its place."""
    sign = "added" if row[SIGN] > 0 else "taken away"
    at = format_utc_instant(row["_event_time"])
    return f"  {sign} by {format_place(row)} at {at}, epoch {row['_epoch']}: {format_values(row)}"


def name_rows(found: Explanation) -> str:
    """Name what the rows of a page are."""
    if is_emitted(found):
        return "Emitted rows"
    if is_changed(found):
        return "Changes"
    return "Joined rows" if is_joined(found) else "Rows of the master"


def is_joined(found: Explanation) -> bool:
    """Return whether the rows of a page are those of a join; a page without rows has none."""
    return any(KIND in row for row in found.page)


def is_emitted(found: Explanation) -> bool:
    """Return whether the rows of a page are what a function emitted; a page without rows has none."""
    return any(CALL in row for row in found.page)


def is_changed(found: Explanation) -> bool:
    """Return whether the rows of a page are what changes of a table have added and taken away."""
    return any(SIGN in row for row in found.page)


def tabulate_rows(found: Explanation) -> list[Row]:
    """Return the rows of a page for a table: derived ones with what each is, and the places it is made of."""
    return [tabulate_derived_row(row) if {KIND, CALL, SIGN} & row.keys() else row for row in found.page]


def tabulate_derived_row(row: Row) -> Row:
    """Name what a derived row is made of for a reader."""
    if CALL in row:
        return {
            **declared_values(row),
            "called by": row[CALL],
            "of record": format_place(row) if row["_topic"] is not None else "",
            "event time": row["_event_time"],
            "rows folded": row["_folded"],
            "state before": row["_before"],
            "state after": row["_after"],
        }
    if SIGN in row:
        return {
            "row": "added" if row[SIGN] > 0 else "taken away",
            "of record": format_place(row),
            "epoch": row["_epoch"],
            "event time": row["_event_time"],
            **declared_values(row),
        }
    return {
        "row": row[KIND],
        "left record": format_place(row),
        "right record": format_place(row, "_right") if row[KIND] == PAIR else "",
        "epoch": row["_epoch"],
        "event time": row["_event_time"],
        "right event time": row["_right_event_time"] if row[KIND] == PAIR else "",
        **declared_values(row),
    }


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
        yield f"{name_rows(found)}:"
    for row in found.page:
        if CALL in row:
            yield format_emitted_row(row)
            continue
        if KIND in row:
            yield format_derived_row(row)
            continue
        if SIGN in row:
            yield format_change_row(row)
            continue
        spare = "  (duplicate, left out)" if row["_spare"] else ""
        source = f"{row[SOURCE]}: " if SOURCE in row else ""
        item = f" row {row['_ordinal']}" if "_ordinal" in row else ""
        yield f"  {source}{format_place(row)}{item} epoch {row['_epoch']}{spare}: {format_values(row)}"
