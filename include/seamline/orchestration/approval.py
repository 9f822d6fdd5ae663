"""A large replay, or a change of many numbers, waits for a person, who sees it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

WAITS = timedelta(days=1)


class ApprovalOfPlan(ApprovalOperator):
    """Ask whether to go on where that is ``needed``, else go on; unanswered for a day is rejected.

    A rejected run is skipped: nothing is built and nothing changes. Nothing is claimed while it waits, but the
    DAG has one run at a time, and the others wait behind it.
    """

    template_fields: Sequence[str] = (*ApprovalOperator.template_fields, "needed")

    def __init__(self, *, needed: Any, **given: Any) -> None:
        super().__init__(defaults=ApprovalOperator.REJECT, response_timeout=WAITS, **given)
        self.needed = needed

    def execute(self, context: Context) -> Any:
        """Wait for an answer, or go on."""
        if not self.needed:
            print("no approval is needed")
            return None
        return super().execute(context)
