"""The states of an epoch in parts: tasks make them, and a part merges its own and writes them as files of slices."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from seamline.kernel.epoch_kernel import isolate_view_failure, run
from seamline.kernel.hot_keys import find_hot_key
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult, encode_result_facts
from seamline.lake.engine import states
from seamline.lake.engine.key_parts import list_part_keys, split_by_key
from seamline.lake.tables.schemas.kept_schemas import SchemasWanted
from seamline.lake.tables.slices import write_slice_file
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.errors import SeamlineError
from seamline.runtime.failpoints import hit_failpoint
from seamline.runtime.storage_failures import store_failed
from seamline.spark.tasks.parts import Piece, Received, Row, run_in_parts, split_into_pieces
from seamline.spark.tasks.task import FACTS, WANTED, merge_task_reports


def run_epoch_in_parts(frame: DataFrame, config: KernelConfig) -> KernelResult:
    """Run the kernel over a micro-batch whose states ``config.parts`` tasks merge; the result has files, no states.

    Raises Spark's error where a task fails, and SparkFailed if what the parts report is not of one attempt.
    """
    rows = run_in_parts(
        frame,
        make_states(config),
        merge_states(config),
        parts=config.parts,
        memory=config.pipeline.definition.stream.worker_memory,
    )
    return merge_task_reports(rows)


def make_states(config: KernelConfig) -> Callable[[Iterator[pa.RecordBatch]], Iterator[Piece]]:
    """Make the first stage: the kernel, its facts, and the states of each view by their keys."""
    views = {view.id: view for view in config.pipeline.views}

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
        context = TaskContext.get()
        task = context.partitionId() if context else 0
        try:
            result = run(batches, config, task=task)
        except SchemasWanted as wanted:
            yield task % config.parts, WANTED, wanted.message.encode()
            return
        yield task % config.parts, FACTS, json.dumps(encode_result_facts(result)).encode()
        for id, tables in result.states.items():
            for table in tables if id not in result.failed else ():
                keys = list_part_keys(views[id])
                for part, share in enumerate(split_by_key(table, keys, config.parts)):
                    yield from split_into_pieces(part, id, share)

    return make


def merge_states(config: KernelConfig) -> Callable[[int, Received], Iterator[Row]]:
    """Make the second stage: the states of one part are merged, view by view, and written."""
    views = {view.id: view for view in config.pipeline.views}

    def merge(_: int, received: Received) -> Iterator[Row]:
        tables: dict[str, list[pa.Table]] = defaultdict(list)
        for kind, piece in received:
            if isinstance(piece, bytes):
                yield kind, piece
            else:
                tables[kind].append(piece)
        result = KernelResult()
        for id, mine in tables.items():
            result.state_rows += sum(table.num_rows for table in mine)
            with isolate_view_failure(views[id], result), isolate_unwritable(views[id], result):
                whole = states.combine_if_several(views[id], mine)
                if hot := find_hot_key(views[id], whole):
                    result.hot[id] = hot
                result.slices[id] = write_slice_file(
                    whole,
                    views[id],
                    config.slices[id],
                    config.token,
                    from_epoch=config.epoch,
                    to_epoch=config.epoch,
                )
        hit_failpoint("part")
        yield FACTS, json.dumps(encode_result_facts(result)).encode()

    return merge


@contextmanager
def isolate_unwritable(view: CompiledView, result: KernelResult) -> Iterator[None]:
    """Note that a view's slices cannot be written, which harms no other view (rule 6); a store fails for all."""
    try:
        yield
    except OSError as error:
        if isinstance(error, SeamlineError) or store_failed(error):
            raise
        result.failed[view.id] = f"{type(error).__name__}: {error}"


def count_states(result: KernelResult) -> int:
    """Count the partial states that tasks have made."""
    made: list[int] = [table.num_rows for tables in result.states.values() for table in tables]
    return result.state_rows + sum(made)
