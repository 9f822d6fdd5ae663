"""The questions that a pipeline asks of other systems: how far they have come, what failed, and what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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
from seamline.model.protocol.seam import NOTHING
from seamline.model.time.intervals import parse_moment
from seamline.plan.stream.ask_counts import AskCount, describe_silence
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.stream_state import Actual
from seamline.plan.wording.source_text import describe_ask

FILES, ERRORS, DECISIONS = 20, 20, 20
"""How many of the master's newest files are looked into for errors, and how many errors and decisions are listed."""
DONE, WAITS, EARLIER = "carried out", "not carried out yet", "older than the question"
"""What became of a decision to ask again; one that was made before the question was first asked is not about it."""


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
class Failures:
    """Errors of the newest records of answers."""

    listed: tuple[Failure, ...] = ()
    """The most frequent first."""
    more: int = 0
    """How many other errors are not listed."""


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
    stream: Actual
    """What the stream is doing: nobody asks where it does not run."""
    count: AskCount | None
    """What the process that asks last said; None where it never said anything."""
    silence: str
    """That the other system, or the process, is silent; empty while all is well, and where the stream does not run."""
    away: datetime | None
    """Since when the other system has not answered; None while it does."""
    failures: Failures
    """What failed."""
    decisions: tuple[tuple[AskDecision, str], ...]
    """Decisions to ask again, the newest first, and what became of each."""
    more: int
    """How many older decisions are not listed."""

    @property
    def done(self) -> int | None:
        """The epoch up to which each row that is asked about has its record; None where there is none yet."""
        return self.epoch if self.epoch > self.born else None


def list_question_states(
    pipeline: CompiledPipeline, layout: Layout, seen: Observation
) -> list[QuestionState]:
    """List a pipeline's questions; ``seen`` is its stream. What is read does not grow with the log."""
    births, decisions = find_question_births(layout), list_ask_decisions(layout)
    found = []
    for ask in pipeline.asks:
        born, known = births.get(ask.id, (NOTHING, len(decisions)))
        position, count = read_position(layout, ask.id), (seen.asks or {}).get(ask.name)
        own = sort_decisions(ask, decisions, known, position.decided)[::-1]
        found.append(
            QuestionState(
                name=ask.name,
                what=describe_ask(ask.definition),
                topic=ask.topic,
                begun=ask.id in births,
                born=born,
                epoch=position.epoch,
                stream=seen.actual,
                count=count,
                silence=describe_silence(count, seen.at) if count and seen.actual is Actual.RUNNING else "",
                away=find_outage(count),
                failures=read_failures(ask, layout),
                decisions=tuple(own[:DECISIONS]),
                more=max(len(own) - DECISIONS, 0),
            )
        )
    return found


def sort_decisions(
    ask: CompiledAsk, decisions: Sequence[AskDecision], known: int, done: int
) -> list[tuple[AskDecision, str]]:
    """Say what became of each decision about a question; so many of all were made before it, so many carried out."""
    return [
        (each, EARLIER if at < known else DONE if at < done else WAITS)
        for at, each in enumerate(decisions)
        if each.ask == ask.name
    ]


def find_outage(count: AskCount | None) -> datetime | None:
    """Return since when the other system has not answered; None while it does, as far as is known."""
    if count is None or not count.away or not count.at:
        return None
    return parse_moment(count.at) - timedelta(seconds=count.away)


def read_failures(ask: CompiledAsk, layout: Layout) -> Failures:
    """Count the errors of records of answers in the newest of the master's files that have any."""
    if not (paths := list_failed_files(ask, layout)):
        return Failures()
    error = quote_identifier(ask.definition.named("error"))
    version = quote_identifier(ask.definition.named("version"))
    # Files of before the question have no such columns.
    texts = ", ".join(f"NULL::VARCHAR AS {name}" for name in (SOURCE, error, version))
    blank = f"(SELECT {texts}, 0 AS _epoch LIMIT 0)"
    rows = f"{blank} UNION ALL BY NAME SELECT * FROM {read_parquet_sql(paths, uneven=True)}"
    query = (
        f"SELECT {error}, count(*), max(_epoch), count(*) OVER () FROM ({rows}) "
        f"WHERE {SOURCE} = {quote_literal(ask.join.right.source)} "
        f"AND {version} = {quote_literal(ask.definition.version)} AND {error} IS NOT NULL "
        f"GROUP BY {error} ORDER BY 2 DESC, 3 DESC, 1 LIMIT {ERRORS}"
    )
    found = connection().sql(query).fetchall()
    total = found[0][3] if found else 0
    return Failures(tuple(Failure(*row[:3]) for row in found), total - len(found))


def list_failed_files(ask: CompiledAsk, layout: Layout) -> list[str]:
    """List the newest of the master's files that have errors, or may have where their statistics do not say."""
    files = read_cached_table(layout.table("master"), "files", Files.of)
    if files is None:
        return []
    files = files.keep(pc.less(files.nulls(ask.definition.named("error")), files.actions["num_records"]))
    newest = pc.sort_indices(files.high("_epoch").cast("int64"), sort_keys=[("", "descending")])
    return replace(files, actions=files.actions.take(newest.slice(0, FILES))).paths
