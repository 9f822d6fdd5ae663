"""Notes in the warehouse that Airflow has asked a person: runs over dirty intervals leave out what is asked about."""

from __future__ import annotations

from airflow.sdk import BaseNotifier, Context

from seamline.orchestration.store_connection import with_store_settings


class AskedNote(BaseNotifier):
    """Called by the task that asks, once the question is among the required actions."""

    def __init__(self, pipeline: str) -> None:
        super().__init__()
        self.pipeline = pipeline

    def notify(self, context: Context) -> None:
        """Note it of the context's run; a task that cannot is tried again, and asks again."""
        note_asked_run(self.pipeline, str(context["run_id"]))


@with_store_settings
def note_asked_run(pipeline: str, run: str) -> None:
    """Note that somebody is asked about a run of a pipeline."""
    from seamline.lake.publish.asked_approvals import note_asked
    from seamline.lake.storage.layout import locate_tables

    note_asked(locate_tables(pipeline), run)
