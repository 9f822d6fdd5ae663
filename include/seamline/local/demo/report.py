"""What the demo prints: progress while it runs, and at the end what is served and why to believe it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

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


def print_demo_summary(pipeline: CompiledPipeline, layout: Layout) -> None:
    """Print every day, the last two days' rows with their parts, and those days' certificates."""
    view = pipeline.views[0]
    answer: Any = read(view.qualified, format="answer")
    print(f"\n{view.qualified}: flights a day (* certified, ~ dirty, o open: speed layer alone)\n")
    per_day = sum_rows_by_day(answer.table)
    cells = [
        f"{day[:10]} {rows:>5} {SIGNS.get(str(answer.intervals[day].status), '?')}"
        for day, rows in per_day.items()
    ]
    for at in range(0, len(cells), COLUMNS):
        print("  " + "   ".join(cells[at : at + COLUMNS]))
    print(f"\n{answer.summary()}\n")
    last = sorted(per_day)[-2:]
    table = answer.table.filter(
        pc.greater_equal(answer.table["window_start"], pa.scalar(parse_moment(last[0])))
    )
    print(f"Served rows of {last[0][:10]} and {last[-1][:10]}, most recent last\n")
    print_served_rows(table)
    print_certificates(layout, view, last)


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


def print_served_rows(table: pa.Table) -> None:
    """Print an answer's rows: the hour, the airline, three measures and where they come from."""
    print(f"  {'hour (UTC)':<18}{'airline':<28}{'flights':>8}{'mean delay':>12}{'planes':>8}  from")
    ordered = table.sort_by([("window_start", "ascending"), ("carrier", "ascending")]).to_pylist()
    for row in ordered:
        mean = "" if row["mean_delay"] is None else f"{row['mean_delay']:.1f}"
        parts = [
            f"{n} {side}" for n, side in ((row["batch_part"], "batch"), (row["speed_part"], "speed")) if n
        ]
        hour = row["window_start"].strftime("%Y-%m-%d %H:%M")
        airline = f"{row['carrier']} {row['airlines_name'] or ''}"
        print(
            f"  {hour:<18}{airline:<28}{row['flights']:>8}{mean:>12}{row['planes']:>8}  {' + '.join(parts)}"
        )


def print_certificates(layout: Layout, view: CompiledView, wanted: list[str]) -> None:
    """Print the newest certificate of each day, or that it has none."""
    newest = {each.interval.id: each for each in Certificates.ensure(layout).of(view=view.id)}
    for day in wanted:
        found = newest.get(day)
        span = Interval(parse_moment(day), parse_moment(day) + DAY)
        if found is None:
            print(f"\nCertificate of {span}: none yet, the day is open")
            continue
        verdict = "passed" if found.passed else "FAILED"
        print(f"\nCertificate of {span}: {verdict}, cut {found.cut}, generation {found.generation}")
        for check in found.checks:
            print(f"  {'ok ' if check.passed else 'NOT'} {check.name}: {check.found}")
