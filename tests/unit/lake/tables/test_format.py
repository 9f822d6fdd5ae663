"""The format's version: what is refused, and how tables are brought to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.shop import DAY, START, Sale, Shop, opened

from seamline.cli import main
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables import table_format
from seamline.lake.tables.claims_table import claim_intervals, claims_of
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.manifest_table import STAMP
from seamline.lake.tables.renewing import keep_renewing
from seamline.lake.tables.table_format import ALWAYS, FIRST, Step, format_of, migrate, require_format
from seamline.model.errors import IntervalRunning, LeaseHeld, NotFound, OtherFormat
from seamline.model.time.intervals import Interval

pytestmark = pytest.mark.slow

Release = Callable[..., list[str]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A pipeline with an epoch, made by this release."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1)])
    return made


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Release:
    """Make this a release of another format, with steps that note that they were done."""

    def become(version: int, *, fails: int = 0) -> list[str]:
        done: list[str] = []

        def step(to: int) -> Step:
            def do(layout: Layout) -> None:
                assert not free(layout)
                if to == fails:
                    raise KeyboardInterrupt
                done.append(f"to {to}")

            return Step(to, f"step to {to}", do)

        monkeypatch.setattr(table_format, "RENEWED_EVERY", 0.01)
        monkeypatch.setattr(table_format, "FORMAT", version)
        monkeypatch.setattr(table_format, "STEPS", tuple(step(to) for to in range(FIRST + 1, version + 1)))
        return done

    return become


def free(layout: Layout) -> bool:
    """Return whether a stream could begin."""
    try:
        control = ControlTable.ensure(layout)
        control.release(control.take("stream", now=datetime.now(UTC)))
    except LeaseHeld:
        return False
    return claims_of(layout, now=datetime.now(UTC)) == ()


def test_tables_are_stamped_when_they_are_made_and_known_without_a_stamp(shop: Shop, tmp_path: Path) -> None:
    """Nobody sees tables that have no version yet; those of before have the first."""
    assert Table.open(shop.layout.table("manifest")).txn(STAMP) == table_format.FORMAT
    assert format_of(shop.layout) == table_format.FORMAT
    assert format_of(Layout(tmp_path, "none")) is None
    assert require_format(Layout(tmp_path, "none")).pipeline == "none"
    Table.ensure(tmp_path / "old" / "manifest", Table.open(shop.layout.table("manifest")).read().schema)
    assert format_of(Layout(tmp_path, "old")) == FIRST
    assert migrate(Layout(tmp_path, "old"), actor="ada") == ["the version 1 is written on the tables"]
    assert migrate(Layout(tmp_path, "old"), actor="ada") == []
    with pytest.raises(NotFound):
        migrate(Layout(tmp_path, "none"), actor="ada")


def test_older_tables_are_refused_until_they_are_migrated(
    shop: Shop, release: Release, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release that misreads them would serve wrong numbers."""
    done = release(3)
    assert main(["status", "shop"]) == OtherFormat.exit_code == 38
    said = capsys.readouterr().err
    assert (
        "have format 1, but this release uses format 3" in said
        and "Hint: run `seamline migrate shop`" in said
    )
    # Else the way out would be shut.
    assert main(["stream", "stop", "shop"]) == 0
    capsys.readouterr()
    assert main(["migrate", "shop"]) == 0
    assert capsys.readouterr().out == "shop: step to 2.\nshop: step to 3.\n"
    assert (done, format_of(shop.layout)) == (["to 2", "to 3"], 3)
    assert main(["status", "shop"]) == 0
    capsys.readouterr()
    assert main(["migrate", "shop"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert free(shop.layout)


def test_newer_tables_are_refused_and_never_migrated_back(
    shop: Shop, release: Release, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An older release knows nothing of what it would take away."""
    release(2)
    migrate(shop.layout, actor="ada")
    monkeypatch.undo()
    for act in (require_format, lambda layout: migrate(layout, actor="ada")):
        with pytest.raises(OtherFormat, match="have format 2, but this release uses format 1") as told:
            act(shop.layout)
        assert "newer" in told.value.hint
    assert format_of(shop.layout) == 2


def test_a_step_that_is_cut_short_is_done_again(shop: Shop, release: Release) -> None:
    """The version rises step by step; the lease and the claim are given back."""
    done = release(3, fails=3)
    with pytest.raises(KeyboardInterrupt):
        migrate(shop.layout, actor="ada")
    assert (done, format_of(shop.layout)) == (["to 2"], 2)
    assert free(shop.layout)
    done = release(3)
    assert migrate(shop.layout, actor="ada") == ["step to 3"]
    assert done == ["to 3"]


def test_nothing_is_migrated_under_a_stream_or_a_build(shop: Shop, release: Release) -> None:
    """They write what they know."""
    done, now = release(2), datetime.now(UTC)
    control = ControlTable.ensure(shop.layout)
    lease = control.take("supervisor", now=now)
    with keep_renewing(lambda: control.try_renew(lease), 0.01), pytest.raises(LeaseHeld):
        migrate(shop.layout, actor="ada")
    control.release(lease)
    with (
        claim_intervals(shop.layout, "run", "ada", [Interval(START, START + DAY)]),
        pytest.raises(IntervalRunning),
    ):
        migrate(shop.layout, actor="ada")
    assert (done, format_of(shop.layout)) == ([], 1)
    assert free(shop.layout)
    assert ALWAYS.end - ALWAYS.start > timedelta(days=3_000_000)
