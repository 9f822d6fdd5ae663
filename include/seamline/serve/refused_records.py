"""Refused records by their reasons: counted by the ledger, with the newest of the quarantine as samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.read.originals import TOPIC_ID
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.committed_log import committed_epochs_sql
from seamline.lake.tables.reprocessed import REASON, Reprocessed, read_reprocessed_log
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.condensed import find_last_refusal
from seamline.model.protocol.epoch import Epoch
from seamline.serve.imported_rows import ImportedPlaces

FILES = 4
"""Files of refused records that are looked into for samples of a reason."""


def count_refused_records(epochs: Iterable[Epoch]) -> tuple[Counter[str], dict[str, tuple[int, datetime]]]:
    """Count the refused records of a log by reason, and return the last epoch that refused one, and when it was."""
    counts, last = Counter[str](), dict[str, tuple[int, datetime]]()
    for each in epochs:
        counts.update(each.refused)
        last |= {reason: find_last_refusal(each, reason) for reason in each.refused}
    return counts, last


@dataclass(frozen=True)
class Sample:
    """A refused record."""

    place: str
    """``topic/partition@offset``, or ``file row number``."""
    value: str
    """The first 120 bytes, as text."""
    detail: str
    """What was wrong with it; empty if the reason says all."""


@dataclass(frozen=True)
class Refusal:
    """A reason, how many records were refused for it, and some of them."""

    reason: str
    """As quarantine has it."""
    count: int
    """Records of the whole log."""
    samples: tuple[Sample, ...]
    """Newest first."""


def list_refusals(pipeline: CompiledPipeline, layout: Layout, *, samples: int = 2) -> list[Refusal]:
    """Count the refused records by reason, most frequent first, with the newest as samples; dead epochs left out.

    Of epochs validated again those that are refused now.
    """
    again = Reprocessed(pipeline, layout)
    verdicts, log = again.verdicts(), read_reprocessed_log(pipeline, layout)
    counts, last = count_refused_records(log)
    # After the log: what it lists is in the files by then.
    if (refused := read_cached_table(layout.table("quarantine"), "files", Files.of)) is None:
        return []
    judged = f" AND _epoch NOT IN ({', '.join(map(str, verdicts))})" if verdicts else ""
    sources = [(refused, f"{committed_epochs_sql('_epoch', log)}{judged}")]
    if found := again.files():
        sources.append((found, "true"))
    places = ImportedPlaces(layout)
    return [
        Refusal(
            reason, count, read_refused_samples(sources, reason, places, until=last[reason][0], most=samples)
        )
        for reason, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def read_refused_samples(
    sources: Sequence[tuple[Files, str]], reason: str, places: ImportedPlaces, *, until: int, most: int
) -> tuple[Sample, ...]:
    """Show the newest records that were refused for a reason, up to an epoch that refused one; ``most`` at most."""
    columns = f"{REASON}, _detail, _topic, {TOPIC_ID}, _partition, _offset, _epoch, _value"
    rows: list[dict[str, Any]] = []
    for files, held in sources:
        for path in newest_first(files, until)[:FILES]:
            text = (
                f"SELECT {columns} FROM {read_parquet_sql([path])} WHERE {REASON} = {quote_literal(reason)} AND {held} "
                f"AND _epoch <= {until} ORDER BY _epoch DESC, _partition, _offset LIMIT {most - len(rows)}"
            )
            rows += connection().sql(text).to_arrow_table().to_pylist()
            if len(rows) >= most:
                break
    return tuple(build_refused_sample(row, places) for row in rows[:most])


def newest_first(files: Files, until: int) -> list[str]:
    """List the files that may contain rows of an epoch or of earlier ones, those with the newest first."""
    if not files.actions.num_rows:
        return []
    first, last = files.low("_epoch").to_pylist(), files.high("_epoch").to_pylist()
    found = [
        (until if high is None else min(high, until), path)
        for low, high, path in zip(first, last, files.paths, strict=True)
        if low is None or low <= until
    ]
    return [path for _, path in sorted(found, reverse=True)]


def build_refused_sample(row: Mapping[str, Any], places: ImportedPlaces) -> Sample:
    """Build the sample of a refused record."""
    value = row["_value"]
    text = value[:120].decode("utf-8", "backslashreplace") if isinstance(value, bytes) else "(no value)"
    detail = row["_detail"] or ""
    place = f"{row['_topic']}/{row['_partition']}@{row['_offset']}"
    if imported := places.find(row[TOPIC_ID], row["_offset"]):
        place = f"{imported[0]} row {imported[1]}"
    return Sample(place, text, "" if detail[:120] == text else detail)


def format_quarantine(pipeline: CompiledPipeline, layout: Layout, *, samples: int = 2) -> Iterator[str]:
    """Describe the refused records by reason, with samples, in lines."""
    if not Table.exists(layout.table("quarantine")):
        yield f"{pipeline.name} has no quarantine yet."
        return
    found = list_refusals(pipeline, layout, samples=samples)
    yield f"{pipeline.name}: {sum(each.count for each in found)} records refused"
    for each in found:
        yield f"  {each.count:>6}  {each.reason}"
        for sample in each.samples:
            detail = f"  {sample.detail}" if sample.detail else ""
            yield f"          {sample.place}: {sample.value}{detail}"
