"""What a stream goes on from: the tables of rules that the master's epochs name, and nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.model.rules.test_rule_topics import LIMITS, LOOKUP, PAYMENTS, card_limits

from seamline.lake.storage.arrow_types import COORDINATES
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.lake.tables.lookups.rule_versions import IN_FORCE, read_rules
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch, EpochKind
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.rule_counts import RuleCount
from seamline.plan.wording.observation_text import format_observation_notes, serialize_observation
from seamline.spark.tasks import rule_topics
from seamline.spark.tasks.rule_topics import RuleTopics
from seamline.supervisor.driver_report import DriverReport

NOW = datetime(2024, 3, 1, tzinfo=UTC)
PIPELINE = compile_pipeline(card_limits())


@pytest.fixture
def rules(tmp_path: Path) -> RuleTopics:
    """Those of a stream before its first epoch."""
    return start(tmp_path)


def start(folder: Path, *log: Epoch) -> RuleTopics:
    """Start a stream behind a log; Spark is asked for nothing."""
    made = RuleTopics(PIPELINE, Lookups(PIPELINE.lookups, Layout(folder, "cards"), {}), None)  # type: ignore[arg-type]
    made.resume(log)
    return made


def sent(*records: tuple[str, str | None], topic_id: str = "T", start: int = 0) -> pa.Table:
    """Return raw records: keys with the names of rules, None for a tombstone."""
    rows: list[dict[str, Any]] = []
    for offset, (key, name) in enumerate(records, start):
        rule = {"country": "NO", "name": name, "least": 0, "when": "true"}
        rows.append(
            {
                "_topic": "limits",
                "_topic_id": topic_id,
                "_partition": 0,
                "_offset": offset,
                "_kafka_timestamp": NOW,
                "_key": key.encode(),
                "_value": name and json.dumps(rule).encode(),
                "_headers": None,
                "_epoch": 0,
                "_record_version": PIPELINE.record_version,
            }
        )
    return pa.Table.from_pylist(rows, schema=COORDINATES)


def epoch(number: int, versions: Any, **changes: Any) -> Epoch:
    """Return an epoch that has read something, and names versions."""
    made = Epoch(
        number=number,
        token=1,
        committed_at=NOW,
        record_version=PIPELINE.record_version,
        ranges=(OffsetRange(Lane("P", 0), number, number + 1),),
        lookups=versions,
    )
    return replace(made, **changes)


def names(rules: RuleTopics, versions: Any) -> list[str]:
    """Name the rules that are in force."""
    table = read_rules(rules.version_paths(versions)["limits"])
    return table.filter(table[IN_FORCE])["limits_name"].to_pylist()  # type: ignore[no-any-return]


def test_an_attempt_that_fails_is_forgotten(rules: RuleTopics) -> None:
    """The next one goes on from what the last held epoch names."""
    rules.fold(sent(("a", "one")))
    assert rules.fold(sent()) == rules.held
    first = rules.fold(sent(("a", "one"), ("b", "two")))
    assert names(rules, first) == ["one", "two"]
    assert rules.counts == {"limits": RuleCount(0, 0)}
    rules.hold(first)
    assert rules.counts == {"limits": RuleCount(2, 0)}
    assert names(rules, rules.fold(sent(("a", None), start=2))) == ["two"]
    assert names(rules, rules.fold(sent(("b", None), start=2))) == ["one"]


def test_people_are_told_how_many_rules_there_are() -> None:
    """By the driver's heartbeat; those that wait for room are an alert."""
    report = {"pid": 1, "token": 1, "epoch": 1, "state": "running", "at": "2024-03-01T00:00:00Z", "lag": {}}
    said = DriverReport.parse({**report, "rules": {"limits": asdict(RuleCount(2, 1))}})
    assert said.rules == {"limits": RuleCount(2, 1)}
    found = Observation("cards", NOW, rules=said.rules)
    assert "look-up limits has 2 rules in force, 1 wait for room" in [*format_observation_notes(found)]
    assert serialize_observation(found)["rules"] == {"limits": {"in_force": 2, "waiting": 1}}


def test_a_start_goes_on_from_what_the_last_epoch_names(tmp_path: Path, rules: RuleTopics) -> None:
    """Not from the newest file; epochs that read nothing, and those that fill holes, name nothing of their own."""
    first = rules.fold(sent(("a", "one")))
    rules.hold(first)
    second = rules.fold(sent(("b", "two"), start=1))
    log = [
        epoch(0, first),
        epoch(1, {}, ranges=()),
        epoch(2, second, kind=EpochKind.AMEND),
        epoch(3, {}, kind=EpochKind.HOLE),
    ]
    assert start(tmp_path, *log).held == first
    assert start(tmp_path, *log, epoch(4, second)).held == second


def test_what_another_definition_has_named_is_made_again(
    tmp_path: Path, rules: RuleTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an older epoch had this one: rules may have come in between."""
    first = rules.fold(sent(("a", "one")))
    asked = list[str]()

    class History:
        def __init__(self, *_: object) -> None:
            pass

        def finish(self) -> Any:
            asked.append("history")
            return first

    monkeypatch.setattr(rule_topics, "RuleHistory", History)
    made = start(tmp_path, epoch(0, first), epoch(1, first, record_version="another"))
    assert asked == ["history"]
    assert made.held == first
    start(tmp_path, epoch(0, first))
    assert asked == ["history"]


def test_a_topic_that_is_created_again_begins_anew(rules: RuleTopics) -> None:
    """With its first record, whatever that is; until then the rules of the old one are in force."""
    rules.hold(rules.fold(sent(("a", "one"), ("b", "two"))))
    assert names(rules, rules.fold(sent())) == ["one", "two"]
    assert names(rules, rules.fold(sent(("b", "three"), topic_id="U"))) == ["three"]
    assert names(rules, rules.fold(sent(("a", None), topic_id="U"))) == []


def test_a_rule_that_says_the_same_again_changes_nothing(rules: RuleTopics) -> None:
    """Also in between others; after a tombstone it is a new one."""
    first = rules.fold(sent(("a", "one"), ("b", "two")))
    rules.hold(first)
    assert rules.fold(sent(("b", "two"), ("a", "one"), start=2)) == first
    again = rules.fold(sent(("a", None), ("a", "one"), start=2))
    assert again != first
    assert names(rules, again) == ["two", "one"]


@pytest.mark.parametrize(
    "column", ["key", "topic", "topic_id", "partition", "offset", "kafka_timestamp", "in_force", "read"]
)
def test_a_column_may_be_called_as_ours_are(tmp_path: Path, column: str) -> None:
    """A version has a rule's own columns beside the place of its record."""
    limits = replace(LIMITS, schema=LIMITS.schema.replace("country", column))
    payments = replace(PAYMENTS, lookups=[replace(LOOKUP, on={column: "country"})])
    made = compile_pipeline(card_limits(payments, limits))
    rules = RuleTopics(made, Lookups(made.lookups, Layout(tmp_path, "cards"), {}), None)  # type: ignore[arg-type]
    rules.resume([])
    value = {column: "NO", "name": "large", "least": 0, "when": "true"}
    raw = sent(("a", "one")).to_pylist()[0] | {"_value": json.dumps(value).encode()}
    versions = rules.fold(pa.Table.from_pylist([raw], schema=COORDINATES))
    assert names(rules, versions) == ["large"]


def test_a_version_is_named_by_what_it_says(rules: RuleTopics) -> None:
    """The same rules in the same places are the same version, however they came."""
    at_once = rules.fold(sent(("a", "one"), ("b", "two")))
    rules.hold(rules.fold(sent(("a", "one"))))
    assert rules.fold(sent(("b", "two"), start=1)) == at_once
