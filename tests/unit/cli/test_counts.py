"""What a person and an audit read of producers' counts: gaps by name, what a certificate said, what is no statement."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.counts_world import DAY, FIRST, SAID, START, Orders, order, says

from seamline import Counts
from seamline.cli import main
from seamline.lake.audit.counted_intervals import find_certified_counts
from seamline.lake.store.locations import Location
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.counts.statements_table import LaneState, StatementsTable
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.counts.statement import TakenStatement
from seamline.model.time.intervals import Interval
from seamline.supervisor.auditing import audit_producers

DEFINITION = """
from tests.unit.counts_world import declare
from seamline import Counts

orders = declare(Counts("orders.counts", producer="shop"))
"""


@pytest.fixture
def orders(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Orders:
    """Two orders of a day that is over, of three that were sent; the certificate was made before anybody said so."""
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    (definitions / "orders.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    made = Orders(warehouse, Counts("orders.counts", producer="shop"))
    made.read([order(1, "01:10"), order(2, "02:10")], watermark=FIRST.end)
    before = made.counted()
    view = made.compiled.views[0]
    kept = Certificate("by_shop", view.fingerprint, "g", FIRST, 0, "run-1", "", START, (), counts=(before,))
    Certificates.ensure(made.layout).append([kept])
    made.state(says("eu", "00:00", "2026-01-02", 3))
    return made


@pytest.mark.everywhere
def test_a_gap_is_told_with_what_the_certificate_said(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was green, and would not be now."""
    assert main(["counts", "orders", "--no-take"]) == 1
    told = capsys.readouterr().out
    assert "eu 2026-01-01T00:00:00Z/2026-01-02T00:00:00Z: 1 missing, 3 sent and 2 read" in told
    assert "the certificate of run run-1 says: no producer has said what it sent" in told
    orders.read([order(3, "03:10")], watermark=FIRST.end)
    assert main(["counts", "orders", "--no-take"]) == 0
    assert "3 sent by 1 producer, 3 read\n" in capsys.readouterr().out


def test_an_interval_of_which_nothing_was_read_is_told_too(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is never built, so no certificate tells of it."""
    orders.state(says("eu", "2026-01-03", "2026-01-04", 9))
    orders.read([], watermark=START + 5 * DAY)
    assert main(["counts", "orders", "--no-take", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [(each["interval"][:10], each["complete"]) for each in told] == [
        ("2026-01-01", False),
        ("2026-01-03", False),
    ]
    assert told[1]["now"]["counts"][0]["gaps"] == [["2026-01-03T00:00:00Z/2026-01-04T00:00:00Z", 9, 0]]


def test_a_statement_about_a_time_to_come_hides_no_interval(
    orders: Orders, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer with a wrong clock says it once, and nothing takes it back."""
    orders.state(says("eu", "2199-01-01", "2199-01-02", 9))
    main(["counts", "orders", "--no-take", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert [each["interval"][:10] for each in told] == ["2026-01-01"]


def test_an_audit_finds_what_is_missing_and_where_the_certificate_differs(orders: Orders) -> None:
    """Of intervals that are over; a broker that does not answer is told, and harms nothing."""
    told, findings = audit_producers(orders.compiled, orders.layout, None, {})
    assert [str(each.wrong) for each in findings] == ["missing"]
    assert findings[0].place == "producer eu 2026-01-01T00:00:00Z/2026-01-02T00:00:00Z"
    assert "were not taken" in told[0]
    assert [line.partition(":")[0].strip() for line in told[1:]] == [
        "orders 2026-01-01T00", "the certificate of run run-1 says"
    ]  # fmt: skip
    orders.read([order(3, "03:10"), order(4, "03:20"), order(5, "2026", amount=0)], watermark=FIRST.end)
    _, findings = audit_producers(orders.compiled, orders.layout, FIRST, {})
    assert [(str(each.wrong), each.count) for each in findings] == [("surplus", 1)]


def test_one_look_finds_the_newest_certificate_of_each_interval(orders: Orders) -> None:
    """A look for each interval would open the table as often as there are intervals: an audit has years of them."""
    days = [Interval(START + at * DAY, START + (at + 1) * DAY) for at in range(5)]
    view, said = orders.compiled.views[0], orders.counted()
    for number, day in ((2, days[1]), (3, days[0]), (4, days[3]), (5, days[3])):
        kept = Certificate(
            "by_shop",
            view.fingerprint,
            "g",
            day,
            0,
            f"run-{number}",
            "",
            START + number * DAY,
            (),
            counts=(said,),
        )
        Certificates.ensure(orders.layout).append([kept])
    found = find_certified_counts(orders.layout, "", [days[0], days[2], days[3], days[4]])
    assert {id[:10]: run for id, (_, run) in found.items()} == {"2026-01-01": "run-3", "2026-01-04": "run-5"}
    assert find_certified_counts(orders.layout, "other", days) == {}


def test_an_open_interval_has_no_findings(warehouse: Location) -> None:
    """Its records may be on their way."""
    made = Orders(warehouse, Counts("orders.counts", producer="shop"))
    made.read([order(1, "01:10")], watermark=START + timedelta(hours=20))
    made.state(says("eu", "00:00", "2026-01-02", 3))
    assert audit_producers(made.compiled, made.layout, None, {})[1] == []


def test_what_is_no_statement_is_shown_for_a_week(orders: Orders, capsys: pytest.CaptureFixture[str]) -> None:
    """With its place, its reason and how it begins."""
    table = StatementsTable.ensure(orders.layout)
    table.table.refresh()
    now = datetime.now(UTC)
    for offset, taken in ((10, now), (11, now - timedelta(days=8))):
        row = TakenStatement(SAID, offset, START, None, "not JSON", f"{{{offset}")
        table.append("", [row], {SAID: LaneState(offset + 1, START)}, now=taken)
    main(["counts", "orders", "--no-take"])
    told = capsys.readouterr().err
    assert "no statement: orders.counts/0@10: not JSON: {10" in told
    assert "@11" not in told


def test_without_statements_there_is_nothing_to_compare(
    orders: Orders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error says what to declare; and of too many intervals that they are too many."""
    assert main(["counts", "orders", "--no-take", "--from", "2026-01-01", "--to", "2030-01-01"]) == 5
    assert "has more than 400 intervals" in capsys.readouterr().err
    text = (tmp_path / "definitions" / "orders.py").read_text()
    (tmp_path / "definitions" / "orders.py").write_text(
        text.replace('Counts("orders.counts", producer="shop")', "None")
    )
    assert main(["counts", "orders"]) == 4
    assert 'counts=Counts("orders.counts")' in capsys.readouterr().err
