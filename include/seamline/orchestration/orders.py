"""What people ask of a stream in Airflow: the form of its DAG, which REST fills in too (``conf``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow.sdk import Param

from seamline.model.errors import BadRange
from seamline.orchestration import failover_orders
from seamline.orchestration.run_intervals import form_span, parse_flag, require_known_fields
from seamline.plan.stream.start_positions import StartPlace

if TYPE_CHECKING:
    from seamline.supervisor.clusters.failover_orders import FailoverOrder
    from seamline.supervisor.operations import Order

STEPS = ("start", "stop", "pause", "restart", "savepoint", "restore")
ACTIONS = (*STEPS, *failover_orders.ACTIONS)
UPGRADES = ("last-state", "savepoint", "stateless")
FORM = {
    "action": Param(
        None,
        type=["null", "string"],
        enum=[None, *ACTIONS],
        title="Action",
        description="What the stream should do. Empty: only see to it that it does what it should.",
    ),
    "position": Param(
        "ledger",
        type="string",
        title="Read from",
        description="Of a start or restart: ledger (where the log ends), earliest, latest, group:ID (where a "
        "consumer group is), an instant of Kafka's time, or offsets like 0:1200,1:1180.",
    ),
    "then_backfill_gap": Param(
        False,
        type="boolean",
        title="Backfill the gap",
        description="Read what is passed over by it too, beside the live stream.",
    ),
    "from": Param(None, type=["null", "string"], format="date-time", title="Passed over from",
                  description="First event time, with its zone, that may be passed over, or missing after a failover; "
                  "empty for any."),
    "to": Param(None, type=["null", "string"], format="date-time", title="Passed over to",
                description="Exclusive end of it."),
    "upgrade": Param(
        "last-state",
        type="string",
        enum=list(UPGRADES),
        title="Upgrade mode",
        description="Of a restart: savepoint names the position before it, stateless passes over what is unread.",
    ),
    "name": Param(None, type=["null", "string"], title="Savepoint", description="Of a savepoint, restore or restart."),
    "reason": Param(None, type=["null", "string"], title="Reason", description="Reason, recorded in the control log."),
    **failover_orders.FORM,
}  # fmt: skip


def read_order(params: Mapping[str, object], actor: str) -> Order | FailoverOrder | None:
    """Read the form; None if nothing is asked for. BadRange names the field that is wrong."""
    require_known_fields(params, FORM)
    if params.get("action") in failover_orders.ACTIONS:
        return failover_orders.read_failover_order(params, actor)
    return order_of(params, actor)


def order_of(params: Mapping[str, object], actor: str) -> Order | None:
    """Read what the form says of the stream alone."""
    from seamline.supervisor.operations import Action, Order, Upgrade

    asked = params.get("action")
    if asked in (None, ""):
        return None
    if asked not in STEPS:
        raise BadRange(f"action: {asked!r} does not exist.", hint=f"available: {', '.join(ACTIONS)}.")
    name = str(params.get("name") or "")
    if asked in ("savepoint", "restore") and not name:
        raise BadRange(f"name: the action {asked} needs one.", hint="set the savepoint's name.")
    upgrade = str(params.get("upgrade") or UPGRADES[0])
    if upgrade not in UPGRADES:
        raise BadRange(f"upgrade: {upgrade!r} is not a mode.", hint=f"available: {', '.join(UPGRADES)}.")
    return Order(
        Action(str(asked)),
        actor,
        reason=str(params.get("reason") or ""),
        place=StartPlace.parse(str(params.get("position") or "ledger")),
        fill=bool(parse_flag("then_backfill_gap", params.get("then_backfill_gap"))),
        lost=form_span(params),
        name=name,
        upgrade=Upgrade(upgrade),
    )
