"""What the kernel is told: by what it validates, what it makes, and where it writes that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from seamline.lake.store.locations import Location
from seamline.lake.tables.schemas.kept_schemas import KeptSchemas
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import EPOCH

Read = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes raw records of what a task is given."""


@dataclass(frozen=True)
class KernelConfig:
    """What a task needs."""

    pipeline: CompiledPipeline
    """The compiled definition."""
    topic_ids: Mapping[str, str]
    """Kafka's id of each topic, by its name."""
    token: int
    """The writer's fencing token, for the names of files."""
    epoch: int
    """The attempt's number."""
    committed: Mapping[Lane, int]
    """The end offset that the master has of each lane: records below are dropped."""
    views: frozenset[str]
    """The ids of the views to compute."""
    master: Location
    """The folder of the master's table."""
    quarantine: Location
    """The folder of the quarantine's table."""
    condemned: str = ""
    """Why every record is refused as a kernel error (rule 17); empty where none is."""
    dry: bool = False
    """Whether no file is written, to find out if it is a record that makes the kernel fail."""
    watermark: datetime | None = None
    """The pipeline's watermark as the epoch begins, None before the first."""
    at: datetime = EPOCH
    """The time of processing, UTC."""
    lookups: Mapping[str, Location] = field(default_factory=dict)
    """The files of pinned versions, by the look-up's name."""
    marks: pa.Table | None = None
    """What the survey found, a row for each record; None without one."""
    parts: int = 0
    """Into how many parts the states go, each of which is merged by a task; 0 where the driver merges them."""
    slices: Mapping[str, Location] = field(default_factory=dict)
    """The folder of each view's slices, where they are written in parts; by the view's id."""
    until: datetime | None = None
    """Accepted rows of this event time and later are left out, as an import does; None for no bound."""
    read: Read | None = None
    """What makes raw records of what a task is given; None where it is given them."""
    kept: KeptSchemas | None = None
    """The writers' schemas of registries; None where no source has one."""
    bounded: bool = True
    """Whether records that would cost too much are refused; False for those that were accepted before."""


def configure_validation(
    pipeline: CompiledPipeline, lookups: Mapping[str, Location] | None = None, *, bounded: bool = True
) -> KernelConfig:
    """Return the configuration of one that validates records and writes nothing.

    The records have their coordinates already. ``lookups`` are files of versions, by the look-up's name.
    """
    return KernelConfig(
        pipeline=pipeline,
        topic_ids={},
        token=0,
        epoch=NOTHING,
        committed={},
        views=frozenset(),
        master=Path(),
        quarantine=Path(),
        lookups=lookups or {},
        bounded=bounded,
    )
