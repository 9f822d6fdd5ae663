"""What Spark's tasks report: all of it, or nothing; a JVM may be killed between any two bytes."""

from __future__ import annotations

import io
import struct
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.serializers import ArrowCollectSerializer

from seamline.kernel.kernel_result import KernelResult
from seamline.model.errors import ProtocolError, SparkFailed
from seamline.spark.stream.epoch_maker import Epochs
from seamline.spark.tasks.kernel_attempts import KernelFailed
from seamline.spark.tasks.spread import by_batches, by_numbers, require_all_reported
from seamline.spark.tasks.task import SCHEMA, collect_reports, encode_result_rows, merge_task_reports


def stream(rows: list[dict[str, Any]]) -> bytes:
    """Write rows as a JVM sends them: an Arrow stream, then how many batches there were, and their order."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    return sink.getvalue().to_pybytes() + (1).to_bytes(4, "big") + (0).to_bytes(4, "big")


def test_rows_that_were_cut_off_are_an_error_wherever_the_cut_is() -> None:
    """PySpark's own ``collect`` takes the end of the socket for the end of the rows, and an epoch lost its records."""
    whole = stream([*encode_result_rows(KernelResult())])
    assert len([*ArrowCollectSerializer().load_stream(io.BytesIO(whole))]) == 2
    for cut in range(len(whole)):
        with pytest.raises((EOFError, struct.error, pa.ArrowInvalid, OSError)):
            [*ArrowCollectSerializer().load_stream(io.BytesIO(whole[:cut]))]


def test_no_report_is_not_an_empty_one() -> None:
    """A task that had no record to read says so."""
    assert (
        merge_task_reports([(row["kind"], row["payload"]) for row in encode_result_rows(KernelResult())])
        == KernelResult()
    )
    with pytest.raises(ProtocolError, match="No task has reported"):
        merge_task_reports([])


def test_an_epoch_without_a_report_is_not_held() -> None:
    """Its offsets would be passed over: sixty records were, once in forty kills."""
    frame = SimpleNamespace(mapInArrow=lambda *_: SimpleNamespace(toArrow=lambda: SCHEMA.empty_table()))
    assert collect_reports(frame.mapInArrow()) == []
    writer = SimpleNamespace(
        token=1,
        master=SimpleNamespace(table=SimpleNamespace(root="master")),
        quarantine=SimpleNamespace(root="quarantine"),
    )
    own = SimpleNamespace(
        writer=writer,
        pipeline=None,
        surveys=None,
        kept=None,
        topic_ids={},
        amending=None,
        progress=SimpleNamespace(epoch=None, mark=None),
        lookups=SimpleNamespace(version_paths=lambda versions: {}),
    )
    with pytest.raises(KernelFailed) as failed:
        Epochs.run_kernel(own, frame, 1, frozenset(), {}, {}, "")  # type: ignore[arg-type]
    assert isinstance(failed.value.cause, ProtocolError)


def twice(number: int) -> list[tuple[str, bytes]]:
    """Report two rows."""
    return [("half", b"%d" % number), ("whole", b"%d" % number)]


def test_rows_of_a_task_that_was_cut_off_are_an_error() -> None:
    """Of a build they would be missing in its states, and nobody would know."""
    rows = [row for number in range(3) for row in by_numbers(twice)([number])]
    assert require_all_reported(rows, 3) == [row for number in range(3) for row in twice(number)]
    for cut in range(len(rows)):
        with pytest.raises(SparkFailed, match="of 3 tasks"):
            require_all_reported(rows[:cut], 3)


def test_tasks_of_a_server_report_what_those_of_this_process_do() -> None:
    """A server's come as Arrow batches."""
    numbers = pa.RecordBatch.from_pydict({"id": [0, 1]})
    found = pa.Table.from_batches(by_batches(twice)(iter([numbers, numbers]))).to_pylist()
    assert [(row["kind"], row["payload"]) for row in found] == [*by_numbers(twice)([0, 1, 0, 1])]
