"""A build folds in Spark what the stream folds epoch by epoch: both emit the same."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.unit.process_functions import Abandoned, Counts

from seamline.lake.joins.folded_rows import (
    Emitted,
    gather_key_rows,
    make_emitted_table,
)
from seamline.lake.storage.arrow_types import COORDINATES, INSTANT, arrow_type
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.problems import Problems
from seamline.model.compile.processes.compiled_process import CompiledProcess
from seamline.model.compile.processes.process_rules import compile_process
from seamline.model.definition.layers import Batch
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.definition.processes import Process
from seamline.model.definition.sources import KafkaSource
from seamline.model.definition.windows import Tumbling
from seamline.model.functions.tails import KeyChange, KeySpan, Rows, Tails
from seamline.model.measures import count
from seamline.model.types.schema import Schema
from seamline.spark.tasks.folded_rows import fold_rows

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
SCHEMA = "user STRING, place INT, total DECIMAL(10,2), name STRING, more MAP<STRING, INT>, at TIMESTAMP"
CARTS = Pipeline(
    name="shop",
    source=KafkaSource(topic="clicks", schema=SCHEMA, event_time="at"),
    views=[View("v", keys=["user"], window=Tumbling("1 hour"), measures={"n": count()})],
    batch=Batch(interval="1 day", start="1970-01-01"),
)


class Nested(Counts):
    """Emits what has parts, and what is NULL."""

    state = "more MAP<STRING, INT>"
    emits = "more MAP<STRING, INT>, parts ARRAY<STRUCT<name: STRING, more: MAP<STRING, INT>>>, at TIMESTAMP"

    def row(self, state: Any, row: Any, out: Any) -> Any:
        """Gather."""
        more = {**(state.more if state else {}), **(row["more"] or {})}
        out.emit(row["more"], [{"name": row["name"], "more": more}], row["at"])
        return (more,)


def compiled(by: type, **changes: Any) -> CompiledProcess:
    """Compile a process of the only source, which has no name."""
    pipeline, problems = compile_pipeline(CARTS), Problems()
    process = Process("carts", of="clicks", by=by, keys=["user", "place"], **changes)
    found = compile_process(process, pipeline.record, pipeline.grid, problems)
    assert found, problems.found
    return replace(found, sides=(replace(found.sides[0], source=""),))


def rows(count: int, seed: int) -> pa.Table:
    """Make rows of a few keys over two days, some of which are NULL, as the master has them."""
    dice = random.Random(seed)
    made = []
    for offset in range(count):
        at = dice.randrange(2 * 24 * 60) * MINUTE + dice.choice([0, 0, 1])
        made.append(
            {
                "user": dice.choice(["a", "b", None, "é"]),
                "place": dice.choice([1, None]),
                "total": Decimal(dice.randrange(-100, 1000)).scaleb(-2),
                "name": dice.choice(["x", "y", None]),
                "more": dice.choice([None, [("p", dice.randrange(3))], [("q", None)]]),
                "at": at,
                "_event_time": at,
                "_partition": offset % 2,
                "_offset": offset // 2,
                "_topic": "clicks",
                "_topic_id": "id",
            }
        )
    places = [COORDINATES.field(name) for name in ("_partition", "_offset", "_topic", "_topic_id")]
    own = [pa.field(each.name, arrow_type(each.type.spark)) for each in Schema.parse(SCHEMA).fields]
    return pa.Table.from_pylist(made, schema=pa.schema([*own, pa.field("_event_time", INSTANT), *places]))


def counted(table: pa.Table) -> Counter[str]:
    """Count rows, whatever their order."""
    return Counter(str(row) for row in table.to_pylist())


def take_epoch(
    process: CompiledProcess,
    tails: Tails,
    rows: pa.Table,
    read_older: Callable[[set[KeySpan]], Rows],
    mark: float,
) -> list[KeyChange]:
    """Take in the rows of an epoch and its watermark; ``read_older`` has all earlier rows of keys in spans."""
    new = gather_key_rows(process, rows)
    late = tails.find_late(new)
    return tails.take(new, read_older(late) if late else {}, mark)


def stream(process: CompiledProcess, found: pa.Table, marks: Iterable[int]) -> Counter[Emitted]:
    """Read rows epoch by epoch, and return what is shown in the end."""
    tails, held = Tails(process.fold, process.size), found.slice(0, 0)
    shown: Counter[Emitted] = Counter()
    marks = [*marks]
    for number, mark in enumerate(marks):
        size = found.num_rows // len(marks) + 1
        part = found.slice(number * size, size)
        known = gather_key_rows(process, held)
        for change in take_epoch(
            process, tails, part, lambda keys, known=known: {key: known.get(key, []) for key in keys}, mark
        ):
            shown.update((change.key, item) for item in change.added)
            shown.subtract((change.key, item) for item in change.withdrawn)
        held = pa.concat_tables([held, part])
    return shown


@pytest.mark.parametrize(
    ("by", "side", "changes"),
    [
        (Abandoned, "", {}),
        (Abandoned, "refunds", {"where": "total < 3.00", "columns": ["total"]}),
        (Counts, "", {"forget": "2 hours"}),
        (Nested, "", {"begin": "3 hours"}),
    ],
    ids=["timers", "a side", "forgotten keys", "nested"],
)
def test_a_build_emits_what_the_stream_does(
    spark: SparkSession, by: type, side: str, changes: dict[str, Any]
) -> None:
    """Whatever order the rows came in, at the watermark of the cut."""
    process, found = compiled(by, **changes), rows(400, seed=7)
    for mark in (DAY // 3, DAY, 2 * DAY):
        shown = stream(process, found, sorted({0, mark // 2, mark - 1, mark}))
        assert min(shown.values()) >= 0
        by_stream = make_emitted_table(process, side, shown.elements())
        by_build = fold_rows(spark.createDataFrame(found), process, mark, side=side).toArrow()
        assert by_build.num_rows > 0
        assert counted(by_build.cast(by_stream.schema)) == counted(by_stream)


def test_a_table_of_nothing_has_its_columns() -> None:
    """An epoch may emit nothing on a side."""
    process = compiled(Nested)
    assert make_emitted_table(process, "", []).schema.names == [
        "_event_time",
        "user",
        "place",
        "more",
        "parts",
        "at",
    ]
    assert gather_key_rows(process, rows(1, seed=1).slice(0, 0)) == {}
