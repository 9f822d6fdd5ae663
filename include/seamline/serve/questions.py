"""The questions that a pipeline asks of other systems: how far they have come, what failed, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from seamline.asking.positions import read_position
from seamline.lake.engine.duckdb_connections import connection
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.engine.states import quote_identifier
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.table_cache import Files, read_cached_table
from seamline.lake.tables.decided import find_question_births, list_ask_decisions
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SOURCE
from seamline.model.protocol.control import AskDecision
from seamline.plan.stream.ask_counts import AskCount
from seamline.plan.wording.source_text import describe_ask

FILES, ERRORS, DECISIONS = 20, 20, 20
"""How many of the master's newest files are looked into for errors, and how many errors and decisions are listed."""


@dataclass(frozen=True)
class Failure:
    """An error that the newest records of answers have."""

    error: str
    """Why there was no answer."""
    rows: int
    """Records with it."""
    epoch: int
    """The newest epoch that has read one."""


@dataclass(frozen=True)
class QuestionState:
    """One question, and how far it has come."""

    name: str
    """The question's name."""
    what: str
    """What is asked about which rows."""
    topic: str
    """The topic of the answers."""
    begun: bool
    """Whether a stream has ever asked it."""
    born: int
    """The last epoch before it was asked."""
    epoch: int
    """The epoch up to which each row has its record, as far as was saved."""
    count: AskCount | None
    """What the process that asks last said; None where it says nothing."""
    failures: tuple[Failure, ...]
    """Errors of the newest records, the most frequent first."""
    decisions: tuple[tuple[AskDecision, bool], ...]
    """Decisions to ask again, the newest first, and whether they were carried out."""


def list_question_states(
    pipeline: CompiledPipeline, layout: Layout, counts: Mapping[str, AskCount]
) -> list[QuestionState]:
    """List a pipeline's questions; ``counts`` are what the processes that ask last said, by the question's name.

    What is read does not grow with the log.
    """
    births, decisions = find_question_births(layout), list_ask_decisions(layout)
    found = []
    for ask in pipeline.asks:
        position = read_position(layout, ask.id)
        own = [(each, at < position.decided) for at, each in enumerate(decisions) if each.ask == ask.name]
        found.append(
            QuestionState(
                ask.name,
                describe_ask(ask.definition),
                ask.topic,
                ask.id in births,
                births.get(ask.id, (position.epoch, 0))[0],
                position.epoch,
                counts.get(ask.name),
                read_failures(ask, layout),
                tuple(own[::-1][:DECISIONS]),
            )
        )
    return found


def read_failures(ask: CompiledAsk, layout: Layout) -> tuple[Failure, ...]:
    """Count the errors of the records of answers in the master's newest files."""
    files = read_cached_table(layout.table("master"), "files", Files.of)
    if files is None or not files.actions.num_rows:
        return ()
    newest = pc.array_sort_indices(files.high("_epoch").cast("int64").combine_chunks(), order="descending")
    paths = [files.paths[at] for at in newest.to_pylist()[:FILES]]
    error = quote_identifier(ask.definition.named("error"))
    version = quote_identifier(ask.definition.named("version"))
    # Files of before the question have no such columns.
    texts = ", ".join(f"NULL::VARCHAR AS {name}" for name in (SOURCE, error, version))
    blank = f"(SELECT {texts}, 0 AS _epoch LIMIT 0)"
    rows = f"{blank} UNION ALL BY NAME SELECT * FROM {read_parquet_sql(paths, uneven=True)}"
    query = (
        f"SELECT {error}, count(*), max(_epoch) FROM ({rows}) WHERE {SOURCE} = {quote_literal(ask.join.right.source)} "
        f"AND {version} = {quote_literal(ask.definition.version)} AND {error} IS NOT NULL "
        f"GROUP BY ALL ORDER BY 2 DESC, 1 LIMIT {ERRORS}"
    )
    return tuple(Failure(*row) for row in connection().sql(query).fetchall())
