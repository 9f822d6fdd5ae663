"""The look-ups' page: versions by epochs and rows, and the rules in force with those that are not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.examples import declared

from seamline.kernel.epoch_kernel import run
from seamline.kernel.kernel_config import KernelConfig
from seamline.kernel.raw import add_coordinates
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.lake.tables.lookups.lookup_tables import Lookups
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.serve import rules_in_force
from seamline.serve.lookup_versions import lookups_of
from seamline.serve.rules_in_force import list_lookup_states
from seamline.spark.stream.epoch_writer import Writer
from seamline.spark.tasks.rule_topics import RuleTopics
from seamline.testing.engine import RAW
from seamline.web.render import render_template

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
CARDS = compile_pipeline(declared("card_limits"))
IDS = {topic: topic for topic in CARDS.definition.topics}
PAYMENTS, LIMITS = CARDS.definition.topics


class Stream:
    """Holds epochs by the shipped kernel and writer, without Spark."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.writer = Writer(layout, CARDS, 1)
        self.rules = RuleTopics(CARDS, Lookups(CARDS.lookups, layout, {}), None)  # type: ignore[arg-type]
        self.rules.resume([])
        self.ends = dict.fromkeys(IDS, 0)

    def hold(self, *records: tuple[str, str, Any]) -> None:
        """Hold one epoch: topics with keys and values, None for a tombstone."""
        rows, starts = [], dict(self.ends)
        for topic, key, value in records:
            rows.append(
                {
                    "key": key.encode(),
                    "value": value and json.dumps(value).encode(),
                    "headers": None,
                    "topic": topic,
                    "partition": 0,
                    "offset": self.ends[topic],
                    "timestamp": NOW,
                }
            )
            self.ends[topic] += 1
        raw, number = pa.Table.from_pylist(rows, schema=RAW), self.writer.take_number()
        versions = self.rules.fold(add_coordinates(raw, IDS, number, CARDS.record_version))
        self.rules.hold(versions)
        config = KernelConfig(
            pipeline=CARDS,
            topic_ids=IDS,
            token=1,
            epoch=number,
            committed={},
            views=self.writer.current,
            master=self.writer.master.table.root,
            quarantine=self.writer.quarantine.root,
            lookups=self.rules.version_paths(versions),
        )
        result = run(raw.to_batches(), config)
        epoch = Epoch(
            number=number,
            token=1,
            committed_at=NOW,
            record_version=CARDS.record_version,
            edge=True,
            ranges=tuple(
                OffsetRange(Lane(topic, 0), starts[topic], end)
                for topic, end in self.ends.items()
                if end > starts[topic]
            ),
            accepted=dict(result.accepted),
            refused=dict(result.refused),
            lookups=versions,
        )
        self.writer.commit(epoch, result, config.views)


def limit(key: str, above: str, when: str = "true") -> tuple[str, str, Any]:
    country, name = key.split()
    return LIMITS, f"{key} {above}", {"country": country, "name": name, "above": above, "when": when}


def paid(amount: str) -> tuple[str, str, Any]:
    row = {
        "card": "c",
        "country": "DE",
        "channel": "web",
        "amount": amount,
        "paid_at": "2026-03-01T09:00:00Z",
    }
    return PAYMENTS, "c", row


@pytest.fixture
def stream(warehouse: Location) -> Stream:
    return Stream(Layout(warehouse, "card_limits"))


def page(layout: Layout) -> str:
    context = {
        "root": "/seamline",
        "airflow": "",
        "pipeline": "card_limits",
        "here": "lookups",
        "status": 200,
    }
    return render_template("lookups.html", {**context, "found": list_lookup_states(CARDS, layout)})


def test_rules_are_listed_with_the_versions_that_were_read_with(stream: Stream) -> None:
    """Those in force first; of two records with one rule the older is not."""
    stream.hold(limit("DE large", "400.00"), paid("500.00"))
    stream.hold(paid("500.00"), paid("1.00"))
    stream.hold(limit("DE large", "200.00"), limit("DE web", "100.00", "channel = 'web'"), paid("300.00"))
    [state] = list_lookup_states(CARDS, stream.layout)
    assert (state.table, state.version) == ("the records of source limits", stream.rules.held["limits"])
    assert [(use.first, use.last, use.epochs, sum(use.accepted.values())) for use in state.uses] == [
        (2, 2, 1, 3),
        (0, 1, 2, 4),
    ]
    assert state.rules is not None
    assert (state.rules.in_force, state.rules.total) == (2, 3)
    names = state.rules.columns
    rows = [dict(zip(names, row, strict=True)) for row in state.rules.rows]
    assert {(str(row["above"]), row["when"], row["in force"]) for row in rows} == {
        ("200.00", "true", True),
        ("100.00", "channel = 'web'", True),
        ("400.00", "true", False),
    }
    said = page(stream.layout)
    assert "2 rules in force, 1 not" in said
    assert "channel = &#39;web&#39;" in said
    assert state.version in said
    assert any(
        "limits  the records of source limits: pinned" in line for line in lookups_of(CARDS, stream.layout)
    )


def test_a_pipeline_that_has_read_nothing_says_so(stream: Stream) -> None:
    """It has a look-up, of which there is no version yet."""
    [state] = list_lookup_states(CARDS, stream.layout)
    assert (state.version, state.uses, state.rules) == ("", (), None)
    assert "no epoch has read with it yet" in page(stream.layout)


def test_no_more_is_listed_than_a_page_has_room_for(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says how many are left out."""
    monkeypatch.setattr(rules_in_force, "RULES", 2)
    monkeypatch.setattr(rules_in_force, "VERSIONS", 1)
    for number in range(3):
        stream.hold(limit(f"DE r{number}", "1.00"), paid("5.00"))
    said = page(stream.layout)
    assert "1 rule not listed" in said
    assert "2 older versions not listed" in said
