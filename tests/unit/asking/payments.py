"""Payments about which another system is asked: a definition, rows of it, and a log of both that is on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.protocol.shipped import RAW

from seamline import Ask, Batch, KafkaSource, Pipeline, Tumbling, View, count
from seamline.asking.answer_values import encode_answer
from seamline.asking.questions import AskedRow, Outcome
from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.model.compile.asks.compiled_ask import CompiledAsk
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.time.intervals import format_utc_instant
from seamline.model.types.exact_json import dump_exact_json
from seamline.spark.stream.epoch_writer import Writer

PAID, ANSWERS = "paid", "shop.scored.answers"
START = datetime(2026, 1, 5, tzinfo=UTC)
Row = Mapping[str, Any]


async def ask(requests: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Be named by the definition; tests ask by functions of their own."""
    return [{"risk": 0} for _ in requests]


SOURCE = KafkaSource(
    name=PAID, topic=PAID, schema="id INT, user STRING, amount INT, at TIMESTAMP", event_time="at"
)
SCORED = Ask("scored", of=PAID, by=ask, request={"user": "user"}, columns=["risk INT"])
ALL = View("all", of=PAID, keys=["user"], window=Tumbling("1 hour"), measures={"n": count()})
SHOP = Pipeline(
    name="shop", source=[SOURCE], derive=[SCORED], views=[ALL], batch=Batch("1 day", "2026-01-01")
)


def compiled(*, source: KafkaSource = SOURCE, **changes: Any) -> CompiledPipeline:
    """Compile the pipeline with another question, or another source."""
    return compile_pipeline(replace(SHOP, source=[source], derive=[replace(SCORED, **changes)]))


def question(**changes: Any) -> CompiledAsk:
    """Compile the question with some changes."""
    [made] = compiled(**changes).asks
    return made


def row(offset: int, epoch: int = 1, *, decided: bool = False) -> AskedRow:
    """Return a row of the source."""
    return AskedRow("id of paid", 0, offset, format_utc_instant(START), epoch, decided)


def answer_of(made: CompiledAsk, about: AskedRow, outcome: Outcome | None = None) -> Row:
    """Return the record of an answer to a row, as what has read it from the topic gives it."""
    found: Row = json.loads(encode_answer(made, about, outcome or Outcome({"risk": 1})))
    return found


class Log:
    """The master of a pipeline, epoch by epoch, without Spark and Kafka."""

    def __init__(self, folder: Path, pipeline: CompiledPipeline, token: int = 1) -> None:
        self.pipeline, self.layout, self.token = pipeline, Layout(folder, pipeline.name), token
        self.writer = Writer(self.layout, pipeline, token)
        self.writer.repair_ledger()
        lookups = Lookups(pipeline.lookups, self.layout, {})
        self.lookups = lookups.version_paths(lookups.current_versions())

    def pay(self, *rows: Row) -> Epoch:
        """Commit an epoch of payments; what they do not say is as it always is."""
        first = self.end_of(PAID)
        usual = [
            {"id": at, "user": "ada", "amount": 100, "at": format_utc_instant(START)}
            for at in range(first, first + len(rows))
        ]
        return self.commit({PAID: [{**one, **each} for one, each in zip(usual, rows, strict=True)]})

    def answer(self, *records: Row) -> Epoch:
        """Commit an epoch of records of answers."""
        return self.commit({ANSWERS: records})

    def commit(self, records: Mapping[str, Sequence[Row]], *, by: int = 1) -> Epoch:
        """Commit an epoch of records by topic, whose number is so much above the last one's."""
        self.writer.number += by - 1
        number = self.writer.take_number()
        parts = [
            OffsetRange(Lane(f"id of {topic}", 0), self.end_of(topic), self.end_of(topic) + len(some))
            for topic, some in records.items()
        ]
        result = self.judge(number, records) if any(records.values()) else KernelResult()
        assert not result.refused
        made = Epoch(
            number,
            self.token,
            START + timedelta(days=1),
            self.pipeline.record_version,
            edge=True,
            ranges=tuple(parts),
            accepted=dict(result.accepted),
            clock=self.pipeline.clock,
        )
        return self.writer.commit(made, result, self.writer.current)

    def pass_over(self, topic: str, records: int) -> Epoch:
        """Commit a hole of so many records."""
        lane, first = Lane(f"id of {topic}", 0), self.end_of(topic)
        made = Epoch(
            self.writer.take_number(),
            self.token,
            START + timedelta(days=1),
            self.pipeline.record_version,
            kind=EpochKind.HOLE,
            edge=True,
            ranges=(OffsetRange(lane, first, first + records),),
            clock=self.pipeline.clock,
        )
        return self.writer.commit(made, KernelResult(), self.writer.current)

    def amend(self, topic: str, start: int, *records: Row) -> Epoch:
        """Commit an epoch that reads records which were passed over."""
        number, lane = self.writer.take_number(), Lane(f"id of {topic}", 0)
        result = self.judge(number, {topic: records}, start)
        made = Epoch(
            number,
            self.token,
            START + timedelta(days=1),
            self.pipeline.record_version,
            kind=EpochKind.AMEND,
            edge=True,
            ranges=(OffsetRange(lane, start, start + len(records)),),
            accepted=dict(result.accepted),
            clock=self.pipeline.clock,
        )
        return self.writer.commit(made, result, self.writer.current)

    def end_of(self, topic: str) -> int:
        """Return up to where the master has read a topic."""
        lane = Lane(f"id of {topic}", 0)
        return self.writer.master.position([lane]).get(lane, 0)

    def judge(
        self, number: int, records: Mapping[str, Sequence[Row]], start: int | None = None
    ) -> KernelResult:
        """Run the shipped kernel over records from an offset on, or from where the master ends."""
        raw = [
            {
                "key": None,
                "value": dump_exact_json(each).encode(),
                "headers": None,
                "topic": topic,
                "partition": 0,
                "offset": at,
                "timestamp": START + timedelta(days=1),
            }
            for topic, some in records.items()
            for at, each in enumerate(some, self.end_of(topic) if start is None else start)
        ]
        config = KernelConfig(
            pipeline=self.writer.pipeline,
            topic_ids={topic: f"id of {topic}" for topic in self.pipeline.definition.topics},
            token=self.token,
            epoch=number,
            committed={},
            views=self.writer.current,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            at=START + timedelta(days=1),
            lookups=self.lookups,
        )
        return run(pa.Table.from_pylist(raw, schema=RAW).to_batches(), config)
