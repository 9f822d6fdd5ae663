"""Audits of sinks are written down: who made them, what they found, and what is still to be mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.shop import Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import SINK, send

from seamline import DeadLetterSink
from seamline.lake.tables.sinks import recorded_audits
from seamline.lake.tables.sinks.recorded_audits import (
    forget_verdicts,
    list_numbers,
    locate_verdicts,
    read_verdicts,
    record_verdict,
)
from seamline.lake.tables.sinks.recorded_positions import list_copied_sinks
from seamline.model.errors import KafkaUnavailable
from seamline.model.protocol.audit import Wrong
from seamline.plan.stream.sink_facts import format_sink_notes
from seamline.sinks.audit import made_audits
from seamline.sinks.audit.made_audits import (
    audit_all_sinks,
    list_recorded_audits,
    make_sink_audit,
    make_verdict,
)
from seamline.sinks.sink_facts import read_sink_facts
from seamline.sinks.sink_states import read_sink_states

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]


@pytest.fixture
def store(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A target in memory, to which all is sent; beside it a sink of records, of which no audit is."""
    sinks = [SINK, DeadLetterSink("rejected", topic="bad")]
    shop.compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=sinks))
    store = Store()
    opening: Callable[..., MemoryTarget] = lambda *_, **__: MemoryTarget(store)  # noqa: E731 - a factory
    monkeypatch.setattr(made_audits, "open_target", opening)
    send(shop, store)
    return store


def audit_all(shop: Shop) -> tuple[list[str], list[Any]]:
    """Audit all sinks of the shop."""
    return audit_all_sinks(shop.compiled, shop.layout, actor="ada")


def test_a_red_audit_is_an_alarm_until_it_is_mended(shop: Shop, store: Store) -> None:
    """Metrics, the stream's notes and the page's facts have it, and who has found it."""
    assert list_recorded_audits(shop.compiled, shop.layout) == ["sink sales_kafka: never audited"]
    [state, letters] = read_sink_states(shop.compiled, shop.layout, datetime.now(UTC)).sinks
    assert (state.wrong, state.audited_at, letters.wrong) == (None, None, None)
    place, row = min(store.rows.items(), key=str)
    del store.rows[place]
    lines, [finding] = audit_all(shop)
    assert lines == ["sink sales_kafka: version 1: 1 missing"]
    assert (finding.wrong, finding.place, finding.count) == (Wrong.SINK, "sink sales_kafka", 1)
    assert finding.said.startswith("1 missing; missing {")
    store.rows[place] = row
    [state, _] = read_sink_states(shop.compiled, shop.layout, datetime.now(UTC)).sinks
    assert state.wrong == 1 and state.audited_at
    facts, _ = read_sink_facts(shop.compiled, shop.layout, datetime.now(UTC))
    assert facts.wrong and facts.wrong.actor == "ada" and len(facts.wrong.lines) == 1
    assert f"an audit at {facts.wrong.at} found 1 missing" in next(iter(format_sink_notes((facts,))))
    assert audit_all(shop)[1] == []
    facts, _ = read_sink_facts(shop.compiled, shop.layout, datetime.now(UTC))
    assert facts.wrong is None and facts.audit and facts.audit.passed and not facts.alarms
    [line] = list_recorded_audits(shop.compiled, shop.layout)
    assert line.endswith("rows, nothing wrong")
    assert len(read_verdicts(shop.layout, SINK.id)) == 2


def test_a_target_that_cannot_be_read_is_a_finding(
    shop: Shop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit that was asked for and was not made is not green."""

    def refuse(*_: Any, **__: Any) -> MemoryTarget:
        raise KafkaUnavailable("no broker answers")

    monkeypatch.setattr(made_audits, "open_target", refuse)
    lines, [finding] = audit_all(shop)
    assert (lines, finding.said) == ([], "it cannot be audited: no broker answers")
    assert read_verdicts(shop.layout, SINK.id) == ()


def test_none_of_two_audits_that_end_at_once_is_lost(
    shop: Shop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A green one must not hide that another was red."""
    found = make_sink_audit(
        shop.compiled, shop.layout, SINK, actor="a", opening=lambda *_: MemoryTarget(store)
    )
    create, others = recorded_audits.create_file, ["b", "c"]

    def create_later(*given: Any) -> bool:
        if others:
            monkeypatch.setattr(recorded_audits, "create_file", create)
            record_verdict(shop.layout, SINK.id, make_verdict(found, others.pop()))
            monkeypatch.setattr(recorded_audits, "create_file", create_later)
        return create(*given)

    monkeypatch.setattr(recorded_audits, "create_file", create_later)
    record_verdict(shop.layout, SINK.id, make_verdict(found, "d"))
    assert [each.actor for each in read_verdicts(shop.layout, SINK.id)] == ["d", "b", "c", "a"]
    assert len(list_numbers(locate_verdicts(shop.layout, SINK.id))) == 2
    assert list_copied_sinks(shop.layout) == [SINK.id]
    forget_verdicts(shop.layout, SINK.id)
    assert read_verdicts(shop.layout, SINK.id) == ()


def test_an_audit_that_slept_while_others_ended_is_not_lost(
    shop: Shop, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that it would take may be free again: three others have gone on, and have deleted earlier files."""
    opening: Callable[..., MemoryTarget] = lambda *_: MemoryTarget(store)  # noqa: E731 - a factory
    found = make_sink_audit(shop.compiled, shop.layout, SINK, actor="a", opening=opening)
    create = recorded_audits.create_file

    def create_late(*given: Any) -> bool:
        monkeypatch.setattr(recorded_audits, "create_file", create)
        for other in "bcd":
            record_verdict(shop.layout, SINK.id, make_verdict(found, other))
        return create(*given)

    monkeypatch.setattr(recorded_audits, "create_file", create_late)
    record_verdict(shop.layout, SINK.id, make_verdict(found, "e"))
    assert [each.actor for each in read_verdicts(shop.layout, SINK.id)] == ["e", "d", "c", "b", "a"]
    assert len(list_numbers(locate_verdicts(shop.layout, SINK.id))) == 2
