"""The survey of an epoch: which records repeat an event id, and in which window each event is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from tests.lives.frames import Frame
from tests.unit.records import pipeline

from seamline import CountWindow, View, count
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.spark.stream.surveying import Surveys
from seamline.testing.engine import RAW

AT = datetime(2024, 3, 1, 9, tzinfo=UTC)
PAIRS = View("pairs", keys=["gate"], window=CountWindow(2), measures={"n": count()})
GATE = compile_pipeline(
    pipeline(
        "id STRING, gate STRING, at TIMESTAMP",
        event_id=["id"],
        dedup_within="1 hour",
        views=[PAIRS],
    )
)


@dataclass
class Surveyed:
    """A driver's surveys; each epoch has a number of its own."""

    surveys: Surveys
    folder: Path
    epoch: int = -1
    offset: int = 0

    def said(
        self, *ids: str, watermark: datetime | None = None, dry: bool = False
    ) -> list[tuple[bool, int | None]]:
        """Survey records of so many ids; say of each if it is repeated, and its window."""
        self.epoch += 1
        values = [json.dumps({"id": id, "gate": "north", "at": AT.isoformat()}).encode() for id in ids]
        offsets = range(self.offset, self.offset + len(ids))
        rows = [
            {"value": value, "topic": "t", "partition": 0, "offset": offset, "timestamp": AT}
            for value, offset in zip(values, offsets, strict=True)
        ]
        config = KernelConfig(
            pipeline=GATE,
            topic_ids={"t": "T"},
            token=1,
            epoch=self.epoch,
            committed={},
            views=frozenset(),
            master=self.folder,
            quarantine=self.folder,
            watermark=watermark,
            dry=dry,
        )
        marks = self.surveys.survey(Frame(pa.Table.from_pylist(rows, RAW)), config).marks
        assert marks
        marks = marks.sort_by("_offset")
        assert marks["_offset"].to_pylist() == [*offsets]
        return list(
            zip(marks[REPEATED].to_pylist(), marks[GATE.view("pairs").numbered].to_pylist(), strict=True)
        )

    def commit(self, records: int) -> None:
        """Let the last epoch be committed, of so many records."""
        self.surveys.commit(self.epoch)
        self.offset += records


@pytest.fixture
def gate(tmp_path: Path) -> Surveyed:
    return Surveyed(Surveys(GATE, Layout(tmp_path, "gate"), tmp_path / "ids"), tmp_path)


def test_a_held_epoch_is_known_and_goes_on(gate: Surveyed) -> None:
    """a b c: windows 1 1 2; then b again, and d beside c."""
    assert gate.said("a", "b", "c") == [(False, 1), (False, 1), (False, 2)]
    gate.commit(3)
    assert gate.said("b", "d", "d") == [(True, None), (False, 2), (True, None)]


@pytest.mark.parametrize("dry", [False, True])
def test_a_failed_epoch_leaves_nothing(dry: bool, gate: Surveyed) -> None:
    """It is read again under another number, with the same records: none of them is repeated."""
    first = gate.said("a", "b", "c", dry=dry)
    gate.surveys.settle(-1)
    assert gate.said("a", "b", "c") == first


def test_an_epoch_that_landed_without_an_answer_is_known(gate: Surveyed) -> None:
    """The driver has read the master again, and found it there."""
    gate.said("a", "b", "c")
    gate.surveys.settle(gate.epoch)
    assert [repeated for repeated, _ in gate.said("b", "d")] == [True, False]


def test_an_epoch_that_landed_after_it_was_given_up_is_known(gate: Surveyed) -> None:
    """Its ids were dropped: the index is made again."""
    gate.said("a")
    late = gate.epoch
    gate.surveys.settle(late - 1)
    gate.said("b")
    assert gate.surveys.ids
    before = gate.surveys.ids.asked
    gate.surveys.settle(late)
    assert gate.surveys.ids.asked is None
    gate.said("b")
    assert before and gate.surveys.ids.asked
    assert gate.surveys.ids.asked.names != before.names


def test_an_earlier_horizon_makes_the_index_again(gate: Surveyed) -> None:
    """What was older than the horizon is not known any more."""
    names = []
    for hours in (5, 6, 4):
        gate.said("a", watermark=AT + timedelta(hours=hours))
        assert gate.surveys.ids and gate.surveys.ids.asked
        names.append(gate.surveys.ids.asked.names)
    assert names[0] == names[1] != names[2]


def test_an_epoch_without_a_survey_adds_nothing(gate: Surveyed) -> None:
    """A condemned record is not surveyed: what the failed attempt at it had found must not be held for it."""
    gate.surveys.commit(7)
    first = gate.said("a", "b", "c")
    gate.surveys.settle(-1)
    gate.surveys.commit(8)
    assert gate.said("a", "b", "c") == first


def test_an_epoch_of_another_survey_adds_nothing(gate: Surveyed) -> None:
    """A part of a hole is surveyed, Kafka goes away before its commit, and a condemned record is committed next."""
    first = gate.said("a", "b", "c")
    gate.surveys.commit(gate.epoch + 1)
    gate.epoch += 1
    assert gate.said("a", "b", "c") == first


def test_ids_beyond_the_horizon_are_not_known(gate: Surveyed) -> None:
    """An hour behind the watermark and not further."""
    gate.said("a")
    gate.commit(1)
    on, beyond = AT + timedelta(hours=1), AT + timedelta(hours=1, microseconds=1)
    assert gate.said("a", watermark=on)[0][0]
    assert not gate.said("a", watermark=beyond)[0][0]


def test_counts_are_right_however_often_they_are_gathered(gate: Surveyed) -> None:
    """Ten records of a key, one an epoch, are five windows of two."""
    windows = []
    for number in range(10):
        windows += [window for _, window in gate.said(f"id {number}")]
        gate.commit(1)
    assert windows == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_an_index_that_is_lost_is_made_again(gate: Surveyed) -> None:
    """From the master, which is not there: what only the index knew is not known, and nothing fails."""
    gate.said("a")
    gate.commit(1)
    for file in (gate.folder / "ids").rglob("state.json"):
        file.write_text("torn")
    assert not gate.said("a")[0][0]
    gate.commit(1)
    assert gate.said("a")[0][0]
