"""What people have decided about a pipeline, as whoever only reads finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import read_cached_table
from seamline.lake.tables.control_table import ControlTable
from seamline.model.protocol.control import AskDecision
from seamline.model.protocol.restatement import Restatement


def list_restatements(layout: Layout) -> tuple[Restatement, ...]:
    """List the restatements of a pipeline in the order of their decisions."""
    found = read_cached_table(
        layout.table("control"), "restated", lambda table: ControlTable(table).see().restated
    )
    return found or ()


def find_question_births(layout: Layout) -> Mapping[str, int]:
    """Find the last epoch before each question to another system was asked, by its id."""
    found = read_cached_table(
        layout.table("control"), "questions", lambda table: ControlTable(table).see().questions
    )
    return found or {}


def begin_questions(control: ControlTable, ids: Iterable[str], held: int, *, now: datetime) -> None:
    """Record of questions that are new that nobody is asked about rows of epochs up to one."""
    said = dict.fromkeys(ids, held)
    row = {"state": "questions", "actor": "stream", "reason": ", ".join(said), "at": now}
    control.decide(row, lambda found: replace(found, questions={**said, **found.questions}))


def list_ask_decisions(layout: Layout) -> tuple[AskDecision, ...]:
    """List the decisions to ask other systems again, in their order."""
    found = read_cached_table(layout.table("control"), "asks", lambda table: ControlTable(table).see().asks)
    return found or ()
