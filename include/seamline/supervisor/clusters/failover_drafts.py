"""A failover drafted over the clusters as they are now: what it would be, for people to look at. It needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from seamline.kafka.admin import TopicAdmin
from seamline.kafka.connections import read_airflow_connection
from seamline.kafka.topic_ends import TopicEnds, fetch_ends
from seamline.kernel.rule_tables import list_rule_tables
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.clusters.record_times import count_sent_since, find_last_records
from seamline.lake.tables.control_table import Control, ControlTable, Desired
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import BadRange, KafkaRefused, SeamlineError
from seamline.model.protocol.clusters.failovers import By, Failover, list_kafka_ends, list_registered
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane
from seamline.plan.stream.failover_doubt import find_doubt, make_failover
from seamline.plan.stream.failover_plan import (
    FailoverRequest,
    LeftLane,
    OtherCluster,
    ReadAgain,
    find_instants,
    find_read_again,
    list_reordered_topics,
    place_by_offsets,
    place_by_times,
    refuse_same_cluster,
    require_known_ids,
    require_partitions,
)
from seamline.plan.wording.failover_text import describe_failover

ANSWERS_WITHIN = 5.0
"""Seconds for which the cluster that is left, which may be gone, is waited for."""
BY_BROKER = "LogAppendTime"


@dataclass(frozen=True)
class Drafted:
    """A failover that nobody has decided on yet."""

    failover: Failover
    """The decision as it would be."""
    before: tuple[Failover, ...]
    """The decisions before it that the log registers."""
    lines: tuple[str, ...]
    """The plan, for people."""


@dataclass(frozen=True)
class Left:
    """The cluster that is left, as far as it answers."""

    cluster: str = ""
    """Its id; empty where it does not answer."""
    ends: TopicEnds | None = None
    """Where its topics end; None where it does not answer."""
    silence: str = ""
    """Why it does not answer; empty where it does."""


def draft_failover(
    pipeline: CompiledPipeline, layout: Layout, request: FailoverRequest, env: Mapping[str, str]
) -> Drafted:
    """Draft a failover; BadRange and other errors of ours say why there is none."""
    control, ledger = ControlTable.ensure(layout).read(), read_condensed_log(layout)
    before = list_registered(control.failovers, ledger)
    definition = pipeline.definition
    in_force = before[-1].connection if before else definition.connection
    require_possible(pipeline, request, ledger)
    left_cluster = look_at_left(definition, in_force, env)
    left = find_left_lanes(definition, layout, ledger, left_cluster)
    with TopicAdmin(read_airflow_connection(request.connection, env)) as admin:
        other = look_at_other(admin, definition, layout)
        same_topics = {lane.topic_id for lane in left} & other.names.keys()
        if same_topics or admin.cluster_id() == left_cluster.cluster:
            refuse_same_cluster(pipeline.name, request.connection)
        require_partitions(left, other, fewer=request.fewer)
        begun, again, notes = place_lanes(admin, pipeline, layout, request, left, other, ledger)
    doubt = find_doubt(request, [*left.values(), *list_untouched_lanes(left, left_cluster)], again)
    made = make_failover(request, in_force, left, begun, doubt, datetime.now(UTC))
    silent = [f"{in_force} does not answer: {left_cluster.silence}"] if left_cluster.silence else []
    return Drafted(made, before, (*silent, *notes, *describe_failover(made, left, other)))


def require_possible(pipeline: CompiledPipeline, request: FailoverRequest, ledger: Sequence[Epoch]) -> None:
    """Raise BadRange for what no failover is possible of."""
    name = pipeline.name
    if not pipeline.definition.kafka_topics:
        raise BadRange(f"{name} reads no Kafka topic.", hint="Delta tables need no failover.")
    if not list_kafka_ends(ledger):
        raise BadRange(
            f"{name} has read nothing from Kafka yet.",
            hint=f'write connection="{request.connection}" into the definition, and start the stream.',
        )
    if pipeline.asks:
        raise BadRange(
            f"{name} asks other systems, and nobody else may write to the topic of the answers.",
            hint="run another pipeline from the beginning of the other cluster's topics.",
        )
    if request.by is not By.OFFSETS and list_rule_tables(pipeline):
        raise BadRange(
            f"Rules of {name} come from a topic: older rules that are read again would be in force for a while.",
            hint="use --by offsets.json.",
        )
    if request.whole and request.lost:
        raise BadRange(
            "--nothing-missing and --lost-from contradict each other.",
            hint="pass either --nothing-missing, or --lost-from and --lost-to.",
        )


def look_at_left(definition: Pipeline, connection: str, env: Mapping[str, str]) -> Left:
    """Ask the cluster that is left where its topics end, and who it is; it may be gone."""
    try:
        with TopicAdmin(read_airflow_connection(connection, env), timeout=ANSWERS_WITHIN) as admin:
            return Left(admin.cluster_id(), fetch_ends(admin, definition.kafka_topics))
    except SeamlineError as error:
        return Left(silence=error.message)


def find_left_lanes(
    definition: Pipeline, layout: Layout, ledger: Sequence[Epoch], cluster: Left
) -> dict[Lane, LeftLane]:
    """Find what is known of the lanes that are left."""
    held = list_kafka_ends(ledger)
    last = find_last_records(layout, held)
    names = {lane.topic_id: each.topic for lane, each in last.items()}
    if cluster.ends:
        names |= cluster.ends.names
    if len(definition.kafka_topics) == 1:
        names |= dict.fromkeys({lane.topic_id for lane in held}, definition.kafka_topics[0])
    ends = cluster.ends.ends if cluster.ends else {}
    return {
        lane: LeftLane(
            names.get(lane.topic_id, ""),
            end,
            last[lane].at if lane in last else None,
            max(ends[lane] - end, 0) if lane in ends else None,
        )
        for lane, end in held.items()
    }


def list_untouched_lanes(left: Mapping[Lane, LeftLane], cluster: Left) -> list[LeftLane]:
    """List the lanes of the cluster that is left of which nothing was ever read."""
    if not (found := cluster.ends):
        return []
    return [
        LeftLane(found.names[lane.topic_id], found.beginnings[lane], None, end - found.beginnings[lane])
        for lane, end in sorted(found.ends.items())
        if lane not in left
    ]


def look_at_other(admin: TopicAdmin, definition: Pipeline, layout: Layout) -> OtherCluster:
    """Ask the other cluster where its topics begin and end; TopicMissing."""
    found = fetch_ends(admin, definition.kafka_topics)
    read = Master.open(layout).position(found.ends)
    return OtherCluster(found.names, found.beginnings, found.ends, read)


def place_lanes(
    admin: TopicAdmin,
    pipeline: CompiledPipeline,
    layout: Layout,
    request: FailoverRequest,
    left: Mapping[Lane, LeftLane],
    other: OtherCluster,
    ledger: Sequence[Epoch],
) -> tuple[Mapping[Lane, int], ReadAgain, Sequence[str]]:
    """Find where each lane is begun, what is read again by it, and what else is to be known."""
    if request.by is By.OFFSETS:
        return place_by_offsets(request, other), ReadAgain(), ()
    notes = [note for name in other.names.values() if (note := require_times_of_producers(admin, name))]
    instants = find_instants(request, left, other)
    sent = count_sent_since(layout, find_read_again(instants, left, other))
    again = ReadAgain(sent.accepted, sent.refused, sent.span, list_reordered_topics(left, other))
    if request.by is By.EVENT_ID:
        require_known_ids(again, ledger[-1].watermark, pipeline.dedup_within)
    return place_by_times(ask_offsets(admin, instants, other), other), again, notes


def require_times_of_producers(admin: TopicAdmin, topic: str) -> str:
    """Raise BadRange for a topic whose broker gives records other times; return what is not known about it."""
    try:
        kind = admin.setting(topic, "message.timestamp.type")
    except KafkaRefused:
        return f"note: whether records of {topic!r} have the times that they had is not known: no right to its settings"
    if kind == BY_BROKER:
        raise BadRange(
            f"Records of {topic!r} have the times at which they arrived in the other cluster ({BY_BROKER}).",
            hint="use --by offsets.json.",
        )
    return ""


def ask_offsets(
    admin: TopicAdmin, instants: Mapping[Lane, datetime | None], other: OtherCluster
) -> dict[Lane, int]:
    """Ask for the first offset of each lane that is not older than its instant."""
    found: dict[Lane, int] = {}
    for topic_id, at in {(lane.topic_id, at) for lane, at in instants.items()}:
        lanes = [lane for lane, its in instants.items() if (lane.topic_id, its) == (topic_id, at)]
        offsets = admin.offsets_at(other.names[topic_id], at) if at else None
        found |= {lane: offsets[lane.partition] if offsets else other.beginnings[lane] for lane in lanes}
    return found


def require_stopped(name: str, found: Control) -> None:
    """Raise BadRange for a stream that should run, by what is decided about it."""
    if found.desired in (Desired.RUNNING, Desired.PAUSED):
        raise BadRange(
            f"The stream of {name} is to be {found.desired}: while it reads, its position changes.",
            hint=f"`seamline stream stop {name}` first, or pass --restart.",
        )
