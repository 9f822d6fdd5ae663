"""The trigger forms of the batch and the audit DAG."""

from __future__ import annotations

from airflow.sdk import Param

FORM = {
    "from": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="From",
        description="First instant to build, with its zone, a boundary of the batch interval. "
        "Empty: the dirty intervals.",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="To",
        description="Exclusive end of the span, with its zone.",
    ),
    "dirty": Param(
        None,
        type=["null", "boolean"],
        title="Dirty intervals too",
        description="The dirty intervals too, up to max_dirty. Not set: as the kind of run says.",
    ),
    "reason": Param(
        None,
        type=["null", "string"],
        title="Reason",
        description="Reason, recorded with every generation and certificate.",
    ),
}
AUDIT = {
    "fail": Param(
        True,
        type="boolean",
        title="Fail",
        description="Fail the task if anything is wrong. Not set: findings are reported and kept all the same.",
    ),
    "sinks": Param(
        False,
        type="boolean",
        title="Sinks",
        description="Also read back all that targets of sinks hold. Not set: what was found last is told.",
    ),
}
