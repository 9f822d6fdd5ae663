"""Steps that are no expressions mean the same in the plain engine and in Spark's tasks, and in builds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.records import batch, kernel_run

from seamline import (
    Batch,
    KafkaSource,
    Pipeline,
    Session,
    Tumbling,
    View,
    count,
    distinct,
    first,
    last,
    quantile,
    sum,
)
from seamline.lake.audit.recounted import recount_states
from seamline.lake.engine import states
from seamline.lake.storage.arrow_types import partial_schema
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.serve.explain import explain_number
from seamline.serve.explanation import format_explanation
from seamline.spark.build import general_path
from seamline.spark.tasks import measures

TALK = Pipeline(
    name="talk",
    source=KafkaSource(topic="talk", schema="text STRING NOT NULL, at TIMESTAMP", event_time="at"),
    transform="tests.unit.steps:words",
    transform_schema="words INT",
    views=[View("words", keys=["text"], window=Tumbling("1 day"), measures={"words": sum("words")})],
    batch=Batch("1 day", "2024-01-01"),
)


@pytest.fixture(params=["plain", "spark"])
def engine(request):
    """The session of the engine, none of the plain one."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


def spoken(text: str, at: str = "2024-01-01T10:00Z") -> dict[str, str]:
    return {"text": text, "at": at}


def test_a_transform_is_the_same_in_both_layers(engine, scenario):
    """What it leaves out is counted by the certificate; what it breaks on is refused alone."""
    talk = scenario(TALK, spark=engine, now="2024-01-03")
    talk.send(
        spoken("a b"), spoken("# c"), spoken("boom"), spoken("a b"), spoken("late", "2024-01-02T09:00Z")
    )
    assert dict(talk.epoch().refused) == {"error in transform": 1}
    seen = [(row["text"], row["words"]) for row in talk.answer()]
    assert seen == [("a b", 4), ("late", 1)]
    assert talk.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    assert [(row["words"], row["batch_part"]) for row in talk.answer(text="a b")] == [(4, 2)]


LINES = Pipeline(
    name="lines",
    source=KafkaSource(
        topic="lines",
        schema="id BIGINT, text STRING NOT NULL, at TIMESTAMP",
        event_time="at",
        event_id=["id"],
    ),
    transform="tests.unit.steps:lines",
    transform_schema="word STRING, letters BIGINT",
    transform_rows="words",
    select={"size": "size(words)"},
    where="text <> 'unseen word'",
    side={"long": "size > 4"},
    views=[
        View(
            "by_word",
            keys=["word"],
            window=Tumbling("1 hour"),
            where="letters > 1",
            measures={
                "n": count(),
                "letters": sum("letters * size"),
                "opened": first("text"),
                "end": last("word"),
            },
        ),
        View("all_words", keys=[], window=Tumbling("1 day"), measures={"n": count(), "last": last("word")}),
        View(
            "sketched",
            keys=["letters"],
            window=Tumbling("1 day"),
            measures={"n": count(), "texts": distinct("text"), "half": quantile("letters", 0.5)},
        ),
        View("busy", keys=["word"], window=Session("30 minutes"), measures={"n": count()}),
        View(
            "risky", keys=["word"], window=Tumbling("1 day"), measures={"total": sum("12 div (letters - 7)")}
        ),
    ],
    batch=Batch("1 day", "2024-01-01"),
)
TEXTS = [
    "aa bb aa", "", "ccc", "boom", "aa c", "unseen word", "a b c d e", "- aa", "  ", "aa bb", "refused seven7x",
]  # fmt: skip
"""Of three words, none, one, an error, two, not selected, a side, a NULL, none, two, and one that a view refuses."""


def said(id: int, text: str, day: int = 1, hour: int = 10) -> dict[str, object]:
    return {"id": id, "text": text, "at": f"2024-01-0{day}T{hour}:{id % 60:02d}:00Z"}


@pytest.fixture
def story(engine, scenario):
    made = scenario(LINES, spark=engine, now="2024-01-05")
    made.send(*(said(at, text) for at, text in enumerate(TEXTS)))
    # An event that is there twice counts once: all of its rows, or none.
    made.send(said(0, "aa bb aa"), partition=1)
    made.send({"id": 1}, "{", partition=1)
    return made


def answers(story) -> list[list[tuple[object, ...]]]:
    said_where = ("batch_part", "speed_part", "epoch", "certified", "complete", "phase", "manifest_version")
    return [
        [
            tuple(value for name, value in row.items() if name not in said_where)
            for row in story.answer(view.name)
            if row["window_start"] < datetime(2024, 1, 2, tzinfo=UTC)
        ]
        for view in story.pipeline.views
    ]


def test_rows_of_a_record_are_counted_alike(story):
    """Records with no row, one, several, an error, and a second copy: both layers, and words counted by hand."""
    epoch = story.epoch()
    assert dict(epoch.refused) == {
        "error in transform": 1,
        "error in risky.total": 1,
        "missing field text": 1,
        "malformed json": 1,
    }
    assert epoch.rows == len(TEXTS) - 2 + 1
    story.send(said(98, "end", day=3))
    story.send(said(99, "end", day=3), partition=1)
    story.epoch()
    assert story.batch("2024-01-01") == ["2024-01-01T00:00:00Z"]
    found = answers(story)

    counted = [text.split() for text in TEXTS if text not in ("boom", "unseen word", "a b c d e", TEXTS[-1])]
    words = Counter(word for each in counted for word in each if len(word) > 1)
    letters = Counter[str]()
    for each in counted:
        for word in each:
            letters[word] += len(word) * len(each)
    assert {row["word"]: row["n"] for row in story.answer("by_word") if row["batch_part"]} == words
    assert {row["word"]: row["letters"] for row in story.answer("by_word") if row["batch_part"]} == {
        word: letters[word] for word in words
    }
    [whole] = [row for row in story.answer("all_words") if row["batch_part"]]
    assert (whole["n"], whole["last"]) == (sum_of(counted), "aa")

    # What comes late is added by the stream, and by a second build.
    late = (said(20, "bb late", hour=11), said(21, "", hour=12), said(22, "boom", hour=12))
    story.send(*late)
    story.epoch()
    speed = answers(story)
    assert speed != found
    story.batch()
    assert answers(story) == speed


def sum_of(counted: list[list[str]]) -> int:
    """Count the words."""
    return len([word for each in counted for word in each])


def test_the_slices_and_the_build_agree_before_duplicates(scenario, spark):
    """The same records by the stream alone and by the build alone, in plain Python and in Spark."""
    seen = []
    for session in (None, spark):
        made = scenario(LINES, spark=session, now="2024-01-05")
        made.send(*(said(at, text) for at, text in enumerate(TEXTS)))
        made.epoch()
        made.send(said(99, "end", day=3))
        made.epoch()
        seen.append(answers(made))
        made.batch("2024-01-01")
        seen.append(answers(made))
    assert seen[0] and all(each == seen[0] for each in seen)


def test_a_number_is_taken_apart_to_its_rows(scenario, spark):
    """A certificate and an explanation count rows, and name each by its record and its place in it."""
    story = scenario(LINES, spark=spark, now="2024-01-05")
    story.send(*(said(at, text) for at, text in enumerate(TEXTS)))
    story.epoch()
    story.send(said(99, "end", day=3))
    story.epoch()
    story.batch("2024-01-01")
    story.send(said(20, "aa"))
    story.epoch()
    pipeline, layout = story.pipeline, story.engine.layout
    view = pipeline.view("by_word")
    found = explain_number(
        pipeline, view, layout, {"word": "aa"}, (datetime(2024, 1, 1, 10, tzinfo=UTC), None)
    )
    assert found.proven, found.proofs
    assert [(row["_offset"], row["_ordinal"], row["word"]) for row in found.page] == [
        (0, 0, "aa"),
        (0, 2, "aa"),
        (4, 1, "aa"),
        (7, 0, "aa"),
        (9, 1, "aa"),
        (12, 0, "aa"),
    ]
    assert "words" not in found.page[0]
    told = "\n".join(format_explanation(found))
    assert "  lines/0@0 row 2 epoch 0: " in told
    log = CommittedLog.pin(pipeline, layout)
    for each in pipeline.views:
        assert recount_states(pipeline, each, layout, log).findings == ()
    balances = {
        certificate.view: check.found
        for certificate in Certificates.ensure(layout).of(run="run-1")
        for check in certificate.checks
        if "states" in check.name
    }
    assert any("+" in each or "by explode" in each for each in balances.values()), balances


def test_sparks_own_path_counts_rows_as_the_kernel_does(spark, tmp_path):
    """A build of rows that only Spark can read aggregates in Spark, by columns that are parts of an item."""
    made = compile_pipeline(replace(LINES, source=replace(LINES.source, topic="t")))
    values = [json.dumps(said(at, text)).encode() for at, text in enumerate(TEXTS)]
    result = kernel_run(tmp_path, made, batch(values))
    rows = spark.read.parquet(str(tmp_path / "master"))
    for view in made.views:
        names = [*(key.name for key in view.keys), "pane", "rows"]
        by_spark, by_kernel = (
            states.present_states(view, found.cast(partial_schema(view)), names).to_pylist()
            for found in (
                measures.compute_states(rows, view).toArrow().select(partial_schema(view).names),
                result.states[view.id][0].select(partial_schema(view).names),
            )
        )
        assert sorted(map(str, by_spark)) == sorted(map(str, by_kernel)) and by_kernel
    marked = general_path.mark_duplicates(rows, made).persist()
    found = general_path.count_read_rows(marked, made)
    for view in made.views:
        [(interval, n)] = found.items()
        held = sum_of_rows(result.states[view.id][0])
        assert n.read == result.accepted[interval] == len(TEXTS) - 2
        assert n.read - n.not_selected.get(view.id, 0) - n.duplicates + n.exploded[view.id] == held
    marked.unpersist()


def sum_of_rows(table: pa.Table) -> int:
    """Add up the rows in states."""
    found: int = pc.sum(table["rows"]).as_py()
    return found


def test_another_meaning_makes_all_rows_again(engine, scenario):
    """Records that were read with one row each get the rows that they have now; the master keeps a column of before."""
    one = replace(
        LINES,
        transform="tests.unit.steps:words",
        transform_schema="words INT",
        transform_rows="",
        select={"size": "words", "word": "text"},
        views=[
            View(
                "all_words", keys=[], window=Tumbling("1 day"), measures={"n": count(), "last": last("word")}
            )
        ],
    )
    story = scenario(one, spark=engine, now="2024-01-05")
    story.send(*(said(at, text) for at, text in enumerate(TEXTS)))
    story.epoch()
    story.redefine(replace(LINES, transform_rows="lines", select={"size": "size(lines)"}))
    story.send(said(20, "aa"), said(99, "end", day=3))
    story.epoch()
    story.batch("2024-01-01")
    [whole] = [row for row in story.answer("all_words") if row["batch_part"]]
    assert (whole["n"], whole["last"]) == (11, "aa")
    if engine is not None:
        pipeline, layout = story.pipeline, story.engine.layout
        asked = (datetime(2024, 1, 1, 10, tzinfo=UTC), None)
        found = explain_number(pipeline, pipeline.view("by_word"), layout, {"word": "ccc"}, asked)
        assert found.proven and [row["word"] for row in found.page] == ["ccc"]
        log = CommittedLog.pin(pipeline, layout)
        for view in pipeline.views:
            assert recount_states(pipeline, view, layout, log).findings == ()
