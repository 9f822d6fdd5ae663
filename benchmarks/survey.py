"""What a survey costs an epoch, and what an id costs. `python -m benchmarks.survey`

Kernel, index and register in one process, without Spark and Kafka: 10,000 flights an epoch, one view of plain measures;
the median of the epochs after the first few. Then a part of an index with ids of its own for each epoch: bytes on disk
for each, and how long it takes to look up 10,000 among them.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.kernels import records, task
from benchmarks.machine import machine
from benchmarks.views import EPOCHS, MEASURES, NOW, ROOT, ROWS, WARM
from seamline import CountWindow, Tumbling, View
from seamline.kernel.epoch_kernel import open_worker_duckdb, run
from seamline.kernel.id_index import NEW, IdIndex
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.marks import PLACE
from seamline.kernel.survey import survey_records
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.layout import Layout
from seamline.local.flights import Span, read_flights
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.known_ids import decode_tables
from seamline.spark.stream.register import Register
from seamline.spark.tasks.id_parts import MARKS, IndexAsked, mark_ids, survey_by_ids
from seamline.spark.tasks.parts import Received, encode_piece, encode_word

HOURS = View("v", keys=["carrier"], window=Tumbling("1 hour"), measures=MEASURES)
IDS, CHUNK = 10_000_000, 500_000


def main() -> int:
    """Time an epoch plain, with a horizon for duplicates, and with count windows."""
    print(machine())
    plain = load_pipeline(ROOT / "include" / "pipelines", "flights").definition
    plain = replace(plain, views=[HOURS], lookups=())
    horizon = replace(plain, source=replace(plain.source, dedup_within="1 hour"))
    counts = replace(plain, views=[replace(HOURS, window=CountWindow(100))])
    values = [json.dumps(each).encode() for each in islice(read_flights(Span()), ROWS)]
    base = None
    for name, definition in (("plain", plain), ("dedup_within", horizon), ("CountWindow", counts)):
        seconds = timed(definition, values)
        base = base or seconds
        print(
            f"{name}: {seconds * 1000:,.0f} ms an epoch of {ROWS:,} records, {seconds / base:.2f} times plain"
        )
    for line in held():
        print(line)
    return 0


def timed(definition: Pipeline, values: list[bytes]) -> float:
    """Survey and compute epochs of the same records; give the median seconds."""
    pipeline = compile_pipeline(definition)
    topic = definition.source.topics[0]
    with tempfile.TemporaryDirectory() as folder:
        counting = any(view.counts for view in pipeline.views)
        register = Register(pipeline, Layout(Path(folder), "flights")) if counting else None
        asked = IndexAsked(Path(folder), ("index",), NOTHING)
        IdIndex.load(asked.part_folder(0), "index", str(NOTHING), [])
        seconds = []
        for at in range(EPOCHS):
            batches = records(values, topic, at * len(values), at=NOW).to_batches()
            began = time.perf_counter()
            config = task(pipeline, at, Path(folder))
            if pipeline.surveyed:
                config = replace(config, marks=surveyed(pipeline, batches, config, asked, register))
            run(batches, config)
            asked = replace(asked, after=at)
            if register:
                register.commit()
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds[WARM:])


def surveyed(
    pipeline: CompiledPipeline,
    batches: list[pa.RecordBatch],
    config: KernelConfig,
    asked: IndexAsked,
    register: Register | None,
) -> pa.Table:
    """Survey an epoch as its tasks and the driver do."""
    if not pipeline.record.dedup:
        assert register
        found = pa.concat_tables(survey_records(open_worker_duckdb(), batches, config))
        return register.number(found, PLACE.empty_table())
    pieces = [encode_piece(*piece) for piece in survey_by_ids(config, 1, counting=False)(batches)]
    received = Received([*pieces, encode_word(0, "0", len(pieces))])
    rows = list(mark_ids(asked, config.epoch, dry=False)(0, received))
    repeated = pa.concat_tables([PLACE.empty_table(), *decode_tables(rows, MARKS)])
    return repeated.append_column(REPEATED, pa.repeat(pa.scalar(True), repeated.num_rows))


def held() -> Iterator[str]:
    """Let a part's index take in epochs of new ids, and ask it again."""
    chance = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "part"
        after = str(NOTHING)
        IdIndex.load(place, "index", after, [])
        for number in range(IDS // CHUNK):
            index = IdIndex.open(place, "index", after)
            assert index
            index.mark(several(chance, number * CHUNK), after := str(number), None)
        index = IdIndex.open(place, "index", after)
        assert index
        size = sum(file.stat().st_size for file in place.glob("*.npy"))
        asked = several(chance, IDS).slice(0, ROWS)
        began = time.perf_counter()
        index.mark(asked, "last", None)
        took = time.perf_counter() - began
        yield f"{size / IDS:.0f} bytes on disk for each of {IDS:,} ids, in {len(index.state.runs)} runs"
        yield f"{ROWS:,} new ids are compared with them, and kept, in {took * 1000:.0f} ms"


def several(chance: np.random.Generator, first: int) -> pa.Table:
    """Make records with ids of their own."""
    known = {
        "high": chance.integers(0, 2**64, CHUNK, dtype=np.uint64),
        "low": chance.integers(0, 2**64, CHUNK, dtype=np.uint64),
        "at": np.zeros(CHUNK, np.int64),
        "_topic": ["t"] * CHUNK,
        "_topic_id": ["t"] * CHUNK,
        "_partition": [0] * CHUNK,
        "_offset": range(first, first + CHUNK),
    }
    return pa.table([pa.array(known[name], NEW.field(name).type) for name in NEW.names], schema=NEW)


if __name__ == "__main__":
    sys.exit(main())
