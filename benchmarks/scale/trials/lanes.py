"""What the driver does by itself for each partition that an epoch reads: a file, a range, a position."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from benchmarks.past import PIPELINE
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.data_files import DataFile, name_epoch_file
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.spark.stream.epoch_writer import Writer

WARM, EPOCHS, RECORDS = 5, 60, 1000
BOUNDS = {
    "_epoch": 1,
    "_offset": 1,
    "_event_time": "2026-01-05T00:00:00.000Z",
    "_topic_id": "t",
    "_partition": 1,
}
STATS = json.dumps({"numRecords": RECORDS, "minValues": BOUNDS, "maxValues": BOUNDS})


def measure_lanes(sizes: Mapping[str, float]) -> dict[str, float]:
    """Commit epochs that have a file and a range of each of so many ``partitions``."""
    lanes = [Lane("t", number) for number in range(int(sizes["partitions"]))]
    pipeline = compile_pipeline(PIPELINE)
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout(Path(folder), "shop")
        writer = Writer(layout, pipeline, 1)
        spent = []
        for at in range(EPOCHS):
            number, now = writer.take_number(), datetime.now(UTC)
            files = []
            for _ in lanes:
                name = name_epoch_file(1, number, number)
                (writer.master.table.root / name).write_bytes(b"")
                files.append(DataFile(name, 100_000, RECORDS, STATS))
            epoch = Epoch(
                number,
                1,
                now,
                pipeline.record_version,
                ranges=tuple(OffsetRange(lane, at * RECORDS, (at + 1) * RECORDS) for lane in lanes),
                accepted={"2026-01-05T00:00:00Z": RECORDS * len(lanes)},
                max_event_time=dict.fromkeys(lanes, now),
            )
            before = time.process_time()
            writer.commit(epoch, KernelResult(master=files), ())
            spent.append(time.process_time() - before)
        entry = max(each.stat().st_size for each in writer.master.table.root.glob("_delta_log/*.json"))
        return {"lanes_cpu_s": median(spent[WARM:]), "entry_bytes": entry}
