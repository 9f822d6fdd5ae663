"""The register of a survey: what it keeps, and what it must not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.unit.records import pipeline

from seamline import CountWindow, View, count
from seamline.kernel.survey import survey_schema, view_flag_column
from seamline.kernel.validation import REPEATED
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.spark.stream.register import Register

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


@pytest.fixture
def register(tmp_path):
    return Register(GATE, Layout(tmp_path, "gate"))


def survey(*ids, gate="north", at=AT, first=0):
    """Report records as tasks do."""
    rows = [
        {
            "_topic": "t",
            "_topic_id": "T",
            "_partition": 0,
            "_offset": offset,
            "_event_time": at,
            "id": id,
            "gate": gate,
            view_flag_column(GATE.view("pairs")): True,
        }
        for offset, id in enumerate(ids, first)
    ]
    return pa.Table.from_pylist(rows, survey_schema(GATE))


def said(register, found, watermark=None):
    """Say of each record if it is repeated, and its window."""
    marks = register.decide_marks(found, watermark).sort_by("_offset")
    return list(zip(marks[REPEATED].to_pylist(), marks[GATE.view("pairs").numbered].to_pylist(), strict=True))


def test_a_held_epoch_is_known_and_goes_on(register):
    """a b c: windows 1 1 2; then b again, and d beside c."""
    assert said(register, survey("a", "b", "c")) == [(False, 1), (False, 1), (False, 2)]
    register.commit_survey()
    assert said(register, survey("b", "d", "d", first=3)) == [(True, None), (False, 2), (True, None)]


def test_a_failed_epoch_leaves_nothing(register):
    """It is read again under another number, with the same records: none of them is repeated."""
    found = survey("a", "b", "c")
    first = said(register, found)
    register.forget()
    assert said(register, found) == first


def test_an_epoch_without_a_survey_adds_nothing(register):
    """A condemned record is not surveyed: what the failed attempt at it had found must not be held for it."""
    register.commit_survey()
    found = survey("a", "b", "c")
    first = said(register, found)
    register.forget()
    register.commit_survey()
    assert said(register, found) == first


def test_ids_beyond_the_horizon_are_not_known(register):
    """An hour behind the watermark and not further."""
    said(register, survey("a"))
    register.commit_survey()
    on, beyond = AT + timedelta(hours=1), AT + timedelta(hours=1, microseconds=1)
    assert said(register, survey("a", first=1), on)[0][0]
    assert not said(register, survey("a", first=1), beyond)[0][0]


def test_counts_are_right_however_often_they_are_gathered(register):
    """Ten records of a key, one an epoch, are five windows of two."""
    windows = []
    for offset in range(10):
        windows += [window for _, window in said(register, survey(f"id {offset}", first=offset))]
        register.commit_survey()
    assert windows == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
