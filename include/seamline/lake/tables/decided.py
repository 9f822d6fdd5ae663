"""What people have decided about a pipeline, as whoever only reads finds it."""

from __future__ import annotations

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.ask_decision import AskDecision
from seamline.model.protocol.restatement import Restatement


def list_restatements(layout: Layout) -> tuple[Restatement, ...]:
    """List the restatements of a pipeline in the order of their decisions."""
    found = read_cached_table(
        layout.table("control"), "restated", lambda table: ControlTable(table).see().restated
    )
    return found or ()


def list_ask_decisions(layout: Layout) -> tuple[AskDecision, ...]:
    """List the decisions to ask other systems again, in their order."""
    found = read_cached_table(layout.table("control"), "asks", lambda table: ControlTable(table).see().asks)
    return found or ()
