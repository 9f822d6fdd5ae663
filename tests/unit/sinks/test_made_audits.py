"""Audits of sinks are written down: who made them, what they found, and what is still to be mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.shop import Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import SINK, send

from seamline import DeadLetterSink, KafkaSink
from seamline.lake.tables.audits_table import Audits
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
from seamline.model.protocol.alert import AlertKind
from seamline.model.protocol.audit import Audit, Finding, Wrong
from seamline.plan.stream.alerts import find_stream_problems
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.sink_facts import format_sink_notes
from seamline.serve.trust.happenings import Happening, list_happenings
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


@pytest.mark.parametrize("error", [RuntimeError("Broken\nwidths"), KafkaUnavailable("no broker answers")])
def test_a_target_whose_reading_fails_keeps_no_other_from_its_audit(
    shop: Shop, store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A driver of another system fails as it likes; what failed is red, and says how."""
    other = KafkaSink("sales", topic="other", name="other")
    shop.compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=[SINK, other]))
    send(shop, store, other)

    def fail(sink: KafkaSink, *_: Any, **__: Any) -> MemoryTarget:
        if sink is SINK:
            raise error
        return MemoryTarget(store)

    monkeypatch.setattr(made_audits, "open_target", fail)
    lines, [finding] = audit_all(shop)
    said = "RuntimeError: Broken" if isinstance(error, RuntimeError) else "no broker answers"
    assert (finding.wrong, finding.place) == (Wrong.SINK, "sink sales_kafka")
    assert finding.said == f"it cannot be audited: {said}"
    assert [each.partition(":")[0] for each in lines] == ["sink other"]


def test_a_red_audit_is_an_alert_and_on_the_time_line(shop: Shop, store: Store) -> None:
    """Whoever made it by the command line; readers of the target are misled until it is mended."""

    def alerts() -> Mapping[str, str]:
        facts = read_sink_facts(shop.compiled, shop.layout, datetime.now(UTC))
        found = find_stream_problems(Observation("shop", datetime.now(UTC), sinks=facts))[AlertKind.SINK]
        assert found is not None
        return found

    assert alerts() == {} and list_happenings(shop.layout, 9) == []
    place, row = min(store.rows.items(), key=str)
    del store.rows[place]
    opening: Callable[..., MemoryTarget] = lambda *_: MemoryTarget(store)  # noqa: E731 - a factory
    make_sink_audit(shop.compiled, shop.layout, SINK, actor="cli:ada", opening=opening)
    [(name, said)] = alerts().items()
    assert name == "sales_kafka" and said.endswith("found 1 missing")
    assert find_stream_problems(Observation("shop", datetime.now(UTC)))[AlertKind.SINK] is None
    [happened] = list_happenings(shop.layout, 9)
    assert (happened.kind, happened.who) == (Happening.AUDIT, "cli:ada")
    assert happened.what == "sink: sink sales_kafka: 1 missing" and happened.why.startswith("missing {")
    store.rows[place] = row
    make_sink_audit(shop.compiled, shop.layout, SINK, actor="cli:ada", opening=opening)
    assert alerts() == {} and len(list_happenings(shop.layout, 9)) == 1


def test_what_an_audit_of_the_log_finds_in_a_sink_is_on_the_time_line_once(shop: Shop, store: Store) -> None:
    """It is written down with the sink's audits too; of what could not be read there alone."""
    store.rows.clear()
    began = datetime.now(UTC)
    _, findings = audit_all(shop)
    lost = Finding(Wrong.SINK, "sink sales_kafka", 0, "it cannot be audited: no broker answers")
    for at, found in ((began, findings), (began - timedelta(days=1), [*findings, lost])):
        seconds = (datetime.now(UTC) - began).total_seconds()
        Audits.ensure(shop.layout).append(made_audit(at, seconds, found))
    [first, *earlier] = list_happenings(shop.layout, 9)
    assert first.why.startswith("missing {")
    # That of yesterday is known by the audit of the log alone.
    assert sorted(each.what for each in earlier) == sorted(map(str, [*findings, lost]))


def made_audit(at: datetime, seconds: float, findings: list[Finding]) -> Audit:
    """Make an audit of the log that has found something."""
    return Audit("shop", at, seconds, "ada", 1, (), {}, {}, (), tuple(findings))


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
