"""The fields of a stream's form that are of a failover, and an order read from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.sdk import Param

from seamline.model.time.intervals import format_utc_instant
from seamline.orchestration.run_intervals import form_span, parse_bound, parse_flag

if TYPE_CHECKING:
    from seamline.supervisor.clusters.failover_orders import FailoverOrder

ACTIONS = ("plan-failover", "failover", "cancel-failover")
WAYS = ("offsets", "event_id", "timestamp")
FORM = {
    "connection": Param(
        None,
        type=["null", "string"],
        title="Connection",
        description="Of a failover: the Airflow connection of the other cluster.",
    ),
    "by": Param(
        None,
        type=["null", "string"],
        enum=[None, *WAYS],
        title="Continue by",
        description="Of a failover: offsets that are stated, or the margin before the last record that was read; "
        "records that are read again are recognised by their ids (event_id), or may count twice.",
    ),
    "offsets": Param(
        None,
        type=["null", "string"],
        title="Offsets",
        description='Of a failover by offsets: {"TOPIC": {"0": 1200}}, the first one of every partition there.',
    ),
    "margin": Param(
        "5 minutes", type="string", title="Margin", description="Of a failover by the other ways."
    ),
    "since": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="Since",
        description="Of a failover: read from this Kafka timestamp on instead of the margin.",
    ),
    "nothing_missing": Param(
        False,
        type="boolean",
        title="Nothing missing",
        description="Of a failover: declare that the other cluster has all records of this one.",
    ),
    "fewer_partitions": Param(
        False,
        type="boolean",
        title="Fewer partitions",
        description="Of a failover: allow a topic to have fewer partitions there.",
    ),
}


def read_failover_order(params: Mapping[str, object], actor: str) -> FailoverOrder:
    """Read the order; BadRange names the field that is wrong."""
    from seamline.supervisor.clusters.failover_orders import FailoverAction, FailoverOrder

    action, lost = FailoverAction(str(params["action"])), form_span(params)
    since = params.get("since")
    order = FailoverOrder(
        action,
        actor,
        reason=str(params.get("reason") or ""),
        connection=str(params.get("connection") or ""),
        by=str(params.get("by") or ""),
        offsets=str(params.get("offsets") or ""),
        margin=str(params.get("margin") or "5 minutes"),
        since=format_utc_instant(parse_bound("since", since)) if since else None,
        lost_from=format_utc_instant(lost.start) if lost else None,
        lost_to=format_utc_instant(lost.end) if lost else None,
        nothing_missing=bool(parse_flag("nothing_missing", params.get("nothing_missing"))),
        fewer_partitions=bool(parse_flag("fewer_partitions", params.get("fewer_partitions"))),
    )
    if action is not FailoverAction.CANCEL:
        order.read()
    return order
