"""What the demo says: progress while it runs, and in a file at the end what is served and why to believe it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.certificates_table import Certificates
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.protocol.epoch import Epoch
from seamline.model.time.intervals import Interval, format_utc_instant, parse_moment
from seamline.serve.read import read

DAY = timedelta(days=1)
COLUMNS = 5
SIGNS = {"certified": "*", "dirty": "~", "open": "o", "building": "."}


class Report(NamedTuple):
    """What a report is about, in short."""

    rows: int
    """Served rows of the first view."""
    days: int
    """Days that they are of."""
    told: tuple[str, datetime] | None
    """The carrier and the hour of a row that is worth explaining."""


@contextmanager
def show_epoch_progress() -> Iterator[Callable[[Epoch], None]]:
    """Return a function that shows the newest epoch on one line; silent where there is no terminal."""
    if not sys.stdout.isatty():
        yield lambda _: None
        return

    def show(epoch: Epoch) -> None:
        mark = format_utc_instant(epoch.watermark) if epoch.watermark else "unknown"
        print(f"\r  epoch {epoch.number}, watermark {mark}, {epoch.rows} rows in it    ", end="", flush=True)

    yield show
    print(flush=True)


def write_demo_report(pipeline: CompiledPipeline, layout: Layout, file: Path) -> Report:
    """Write every day, the last two days' rows with their parts, and those days' certificates to a file."""
    view = pipeline.views[0]
    answer: Any = read(view.qualified, format="answer")
    per_day = sum_rows_by_day(answer.table)
    last = sorted(per_day)[-2:]
    rows = list_rows_since(answer.table, parse_moment(last[0]))
    lines = [
        f"{view.qualified}: flights a day (* certified, ~ dirty, o open: speed layer alone)",
        "",
        *list_day_lines({day: (n, str(answer.intervals[day].status)) for day, n in per_day.items()}),
        "",
        answer.summary(),
        "",
        f"Served rows of {last[0][:10]} and {last[-1][:10]}, most recent last",
        "",
        *list_row_lines(rows),
        *list_certificate_lines(layout, view, last),
    ]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Report(answer.table.num_rows, len(per_day), find_told_row(rows))


def list_day_lines(days: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    """List the rows that were counted per day, and what state the day is in; several days a line."""
    cells = [f"{day[:10]} {rows:>5} {SIGNS.get(status, '?')}" for day, (rows, status) in days.items()]
    for at in range(0, len(cells), COLUMNS):
        yield "  " + "   ".join(cells[at : at + COLUMNS])


def list_rows_since(table: pa.Table, start: datetime) -> list[dict[str, Any]]:
    """List an answer's rows from an instant on, by hour and airline."""
    late = table.filter(pc.greater_equal(table["window_start"], pa.scalar(start)))
    return list(late.sort_by([("window_start", "ascending"), ("carrier", "ascending")]).to_pylist())


def find_told_row(rows: Sequence[Mapping[str, Any]]) -> tuple[str, datetime] | None:
    """Find the carrier and the hour of a row that is worth explaining: the newest to which most layers add."""

    def worth(at: int) -> tuple[bool, bool, int]:
        return rows[at]["batch_part"] > 0 and rows[at]["speed_part"] > 0, rows[at]["batch_part"] > 0, at

    if not rows:
        return None
    told = rows[max(range(len(rows)), key=worth)]
    return str(told["carrier"]), told["window_start"]


def sum_rows_by_day(table: pa.Table) -> dict[str, int]:
    """Add up the rows that were counted per UTC day."""
    found: dict[str, int] = {}
    for start, batch, speed in zip(
        table["window_start"].to_pylist(),
        table["batch_part"].to_pylist(),
        table["speed_part"].to_pylist(),
        strict=True,
    ):
        day = format_utc_instant(start.replace(hour=0, minute=0))
        found[day] = found.get(day, 0) + batch + speed
    return dict(sorted(found.items()))


def list_row_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """List an answer's rows: the hour, the airline, three measures and where they come from."""
    yield f"  {'hour (UTC)':<18}{'airline':<28}{'flights':>8}{'mean delay':>12}{'planes':>8}  from"
    for row in rows:
        mean = "" if row["mean_delay"] is None else f"{row['mean_delay']:.1f}"
        parts = [
            f"{n} {side}" for n, side in ((row["batch_part"], "batch"), (row["speed_part"], "speed")) if n
        ]
        hour = row["window_start"].strftime("%Y-%m-%d %H:%M")
        airline = f"{row['carrier']} {row['airlines_name'] or ''}"
        yield (
            f"  {hour:<18}{airline:<28}{row['flights']:>8}{mean:>12}{row['planes']:>8}  {' + '.join(parts)}"
        )


def list_certificate_lines(layout: Layout, view: CompiledView, wanted: Sequence[str]) -> Iterator[str]:
    """List what the newest certificate of each day says, or that it has none."""
    newest = {each.interval.id: each for each in Certificates.ensure(layout).of(view=view.id)}
    for day in wanted:
        found = newest.get(day)
        span = Interval(parse_moment(day), parse_moment(day) + DAY)
        yield ""
        if found is None:
            yield f"Certificate of {span}: none yet, the day is open"
            continue
        verdict = "passed" if found.passed else "FAILED"
        yield f"Certificate of {span}: {verdict}, cut {found.cut}, generation {found.generation}"
        for check in found.checks:
            yield f"  {'ok ' if check.passed else 'NOT'} {check.name}: {check.found}"
