"""What people have decided on, as epochs of the log: holes, after which the stream goes on without what is lost, and
failovers, after which it goes on in another cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.imports.table_sources import TableSources
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.storage.layout import Layout
from seamline.model.definition.pipeline import Pipeline
from seamline.model.protocol.clusters.failovers import Failover, find_unregistered, require_fitting
from seamline.model.protocol.control import Control
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.holes import AcceptedGap, list_end_offsets, to_register
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.stream.read_topics import Topics

log = logging.getLogger("seamline.stream")


def open_topics(definition: Pipeline, layout: Layout, control: Control) -> tuple[Topics, list[Epoch]]:
    """Open the topics by the connection that is in force, and compare them with the log; return both."""
    topics = Topics(definition, TableSources(definition, layout), control.find_connection)
    ledger = read_condensed_log(layout)
    require_decided(topics, control, ledger)
    return topics, ledger


def require_decided(topics: Topics, control: Control, ledger: Sequence[Epoch]) -> Failover | None:
    """Raise for a gap between log and topics that nobody has decided on; return the failover that is to be registered.

    TopicRecreated, OffsetGap; OutOfStep where that failover was decided about another state.
    """
    failover = find_unregistered(control.failovers, ledger)
    if failover:
        require_fitting(topics.pipeline, failover, ledger, topics.kafka_ids.values())
    topics.require_whole(ledger, control.list_decided_gaps(ledger))
    return failover


def register_decisions(
    writer: Writer, topics: Topics, control: Control, held: Sequence[Epoch]
) -> list[Epoch]:
    """Commit an epoch for each failover and gap that someone has decided on, and return the ledger with them.

    A failover is first, and one epoch: gaps of the lanes that it closes are none of anybody's any more.
    """
    ledger = [*held]
    if failover := require_decided(topics, control, ledger):
        log.warning("Registering a failover %s", failover)
        ledger.append(commit_decision(writer, failover, ledger))
    accepted = control.accepted
    beginnings = topics.fetch_all_beginnings(list_end_offsets(ledger)) if accepted else {}
    for decision in to_register(ledger, accepted, beginnings):
        log.warning("Registering a hole: %s (%s)", decision.gap, decision.reason)
        ledger.append(commit_decision(writer, decision, ledger))
    return ledger


def commit_decision(writer: Writer, decision: AcceptedGap | Failover, ledger: Sequence[Epoch]) -> Epoch:
    """Commit the epoch of a decision, after the last one of the ledger."""
    epoch = decision.epoch(
        writer.take_number(),
        writer.token,
        datetime.now(UTC),
        record_version=writer.pipeline.record_version,
        last=ledger[-1] if ledger else None,
    )
    return writer.commit(epoch, KernelResult(), writer.current)
