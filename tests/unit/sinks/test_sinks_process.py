"""The process of a pipeline's sinks: it ends with its lease, and says what has failed."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.shop import Sale, Shop, sales_pipeline

from seamline import KafkaSink
from seamline.lake.read import serving_table
from seamline.lake.status.sink_words import read_sink_words
from seamline.lake.tables.control_table import ControlTable
from seamline.lake.tables.sinks.recorded_positions import SinkCopy, begin_copy, list_copied_sinks
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.model.errors import ConnectionMissing, LeaseHeld, SetupError, StoreUnavailable
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.runtime.processes import own_process_name
from seamline.sinks import sink_list
from seamline.sinks.sink_list import clear_target, format_sinks
from seamline.sinks.sinks_process import own_lease, run_sinks, supervised

pytestmark = pytest.mark.slow


@pytest.fixture
def sinking(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CompiledPipeline:
    """The shop with two sinks, whose connection is missing."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AIRFLOW_CONN_NOWHERE", raising=False)
    sinks = [KafkaSink("sales", topic=name, name=name, connection="nowhere") for name in ("a", "b")]
    return compile_pipeline(replace(sales_pipeline().definition, sinks=sinks))


@pytest.fixture
def shop(tmp_path: Path, sinking: CompiledPipeline) -> Shop:
    """A shop that shows a row."""
    shop = Shop(tmp_path / "w", sinking)
    shop.epoch([Sale(1)])
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    return shop


def test_once_raises_what_has_failed(shop: Shop, sinking: CompiledPipeline) -> None:
    """A schedule that sends once has to hear of it."""
    with pytest.raises(ConnectionMissing, match="nowhere"):
        run_sinks(sinking, shop.layout, threading.Event(), lambda: True, once=True)
    said = read_sink_words("shop", "a")
    assert said is not None
    assert said.state == "failed"
    assert "nowhere" in said.error
    assert [line.split(":")[0] for line in format_sinks(sinking, shop.layout)] == ["a", "b"]
    assert all("nothing sent yet of version 1" in line for line in format_sinks(sinking, shop.layout))


def test_a_process_ends_with_its_lease(shop: Shop, sinking: CompiledPipeline) -> None:
    """Two processes that fence each other off for ever would send nothing."""
    held = iter([True, True, False])
    assert run_sinks(sinking, shop.layout, threading.Event(), lambda: next(held)) == LeaseHeld.exit_code


def test_a_process_goes_on_while_nobody_can_tell_whose_the_lease_is(
    shop: Shop, sinking: CompiledPipeline
) -> None:
    """One request that a store does not answer would end all sinks; a target fences off who must not write."""
    said = iter([StoreUnavailable("no answer"), OSError("no route"), False])

    def holds() -> bool:
        found = next(said)
        if isinstance(found, Exception):
            raise found
        return found

    assert run_sinks(sinking, shop.layout, threading.Event(), holds) == LeaseHeld.exit_code


class Stranger:
    """A target that has what is nobody's, and cannot be cleared."""

    def take_over(self) -> SinkPosition | None:
        """Refuse."""
        raise SetupError("the table is somebody else's")

    def clear(self) -> None:
        """Fail, as what was never opened does."""
        raise SetupError("the connection was lost")

    def close(self) -> None:
        """Do nothing."""


def test_what_refuses_to_be_cleared_says_why(
    shop: Shop, sinking: CompiledPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a copy of a view that the sink no longer sends is let go of: another has its place."""
    monkeypatch.setattr(sink_list, "open_target", lambda *_: Stranger())
    begin_copy(shop.layout, "a", SinkCopy("orders", "topic a", "2026", SinkPosition("f", 0)))
    begin_copy(shop.layout, "b", SinkCopy("sales", "topic b", "2026", SinkPosition("f", 0)))
    for sink in sinking.definition.sinks:
        with pytest.raises(SetupError, match="somebody else's"):
            clear_target(sinking, shop.layout, sink)
    assert list_copied_sinks(shop.layout) == ["b"]


def test_who_sends_without_a_stream_holds_its_lease(shop: Shop) -> None:
    """A stream's supervisor has a process of its own for the sinks."""
    control = ControlTable.ensure(shop.layout)
    with own_lease(shop.layout) as holds:
        assert holds()
        lease = control.read().lease
        assert lease is not None
        assert lease.process == own_process_name()
    assert control.read().lease is None


def test_a_supervised_process_ends_when_the_lease_is_anothers(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor may be frozen, and another have taken its place."""
    monkeypatch.setattr("seamline.sinks.sinks_process.RENEWS_EVERY", 0.0)
    with own_lease(shop.layout):
        assert supervised(shop.layout, own_process_name())()
        assert not supervised(shop.layout, "another 1 2")()
        monkeypatch.setattr("os.getppid", iter([1, 2]).__next__)
        assert not supervised(shop.layout, own_process_name())()


def test_a_list_names_what_nobody_declares_any_more(shop: Shop, sinking: CompiledPipeline) -> None:
    """Upkeep keeps files for it until somebody lets go of it."""
    begin_copy(shop.layout, "old", SinkCopy("sales", "topic x", "2026", SinkPosition("f", 0)))
    begin_copy(shop.layout, "a", SinkCopy("sales", "topic a", "2026", SinkPosition("f", 0, 1, 7)))
    first, _, last = format_sinks(sinking, shop.layout)
    assert "shows version 0, 7 changes on the way to 1 of 1 as of 2026" in first
    assert "seamline sinks drop shop old" in last
