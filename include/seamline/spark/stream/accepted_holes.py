"""Holes that people have decided on, as epochs of the log: after them the stream reads on without what is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import list_end_offsets, to_register
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.read_topics import Topics

log = logging.getLogger("seamline.stream")


def register_accepted_holes(
    writer: Writer, topics: Topics, control: ControlTable, held: Sequence[Epoch]
) -> list[Epoch]:
    """Commit an epoch of kind hole for every gap that someone has decided on, and return the ledger with them."""
    ledger = [*held]
    accepted = control.read().accepted
    topics.require_whole(ledger, accepted)
    beginnings = topics.fetch_all_beginnings(list_end_offsets(ledger)) if accepted else {}
    for decision in to_register(ledger, accepted, beginnings):
        log.warning("Registering a hole: %s (%s)", decision.gap, decision.reason)
        epoch = decision.epoch(
            writer.take_number(),
            writer.token,
            datetime.now(UTC),
            record_version=writer.pipeline.record_version,
            last=ledger[-1] if ledger else None,
        )
        ledger.append(writer.commit(epoch, KernelResult(), writer.current))
    return ledger
