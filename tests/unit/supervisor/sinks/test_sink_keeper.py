"""The process of the sinks: started where there are any, again after its end, anew for another definition."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.shop import sales_pipeline

from seamline import KafkaSink
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline, compile_pipeline
from seamline.supervisor.sinks import sink_keeper
from seamline.supervisor.sinks.sink_keeper import SinkKeeper, make_sinks_command

SINK = KafkaSink("sales", topic="out")
WAITS = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(600)"


def with_sinks(*sinks: KafkaSink) -> CompiledPipeline:
    """Declare the shop with sinks."""
    return compile_pipeline(replace(sales_pipeline().definition, sinks=sinks))


def make(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: list[str]) -> SinkKeeper:
    """Make a keeper whose process is a script."""
    monkeypatch.setenv("SEAMLINE_HOME", str(folder / "home"))
    return SinkKeeper(Layout(folder, "shop"), said.append, command=lambda _: [sys.executable, "-c", script])


@pytest.fixture
def said() -> list[str]:
    """What the keeper says."""
    return []


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> Iterator[SinkKeeper]:
    """A keeper whose process waits."""
    made = make(tmp_path, monkeypatch, WAITS, said)
    yield made
    made.end(within=5.0)


def until(so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 30
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_pipeline_without_sinks_has_no_process(keeper: SinkKeeper) -> None:
    """Most pipelines have none, and pay nothing."""
    keeper.keep(with_sinks())
    assert keeper.process is None


def test_another_definition_has_another_process(keeper: SinkKeeper) -> None:
    """A sink that is added, changed or left out is so without a restart of the stream."""
    keeper.keep(with_sinks(SINK))
    first = keeper.process
    assert first is not None
    keeper.keep(with_sinks(SINK))
    assert keeper.process is first
    keeper.keep(with_sinks(SINK, KafkaSink("sales", topic="b", name="b")))
    assert first.exit_code is not None
    assert keeper.process is not None
    assert keeper.process is not first
    keeper.keep(with_sinks())
    assert keeper.process is None


def test_a_process_that_ends_is_started_again_later_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    """A wrong password must not make a process a second; and nobody waits for it."""
    monkeypatch.setattr(sink_keeper, "FIRST_PAUSE", 0.01)
    keeper = make(tmp_path, monkeypatch, "raise SystemExit(7)", said)
    keeper.pause = 0.01
    pauses = []
    for _ in range(3):
        until(lambda: (keeper.keep(with_sinks(SINK)), keeper.process is not None)[1])
        assert keeper.process is not None
        keeper.process.child.wait(30)
        keeper.keep(with_sinks(SINK))
        assert keeper.process is None
        pauses.append(keeper.pause)
    assert pauses == [0.02, 0.04, 0.08]
    assert said == ["the process of the sinks ended with exit code 7: see sinks.log"] * 3


def test_the_command_names_the_supervisor() -> None:
    """The process ends when its supervisor has lost the lease, which it knows by the supervisor's name."""
    command = make_sinks_command("shop")
    assert command[1:5] == ["-P", "-m", "seamline.sinks", "shop"]
    assert " " in command[5]
