"""The processes of a driver that ask: what they are told, and what becomes of the driver where one ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest
from tests.unit.asking.payments import START, compiled
from tests.unit.clocks import Clock

from seamline.asking import askers as module
from seamline.asking.askers import Askers, require_committed_reads
from seamline.asking.told import Word
from seamline.lake.storage.layout import Layout
from seamline.model.compile.stored_definition import from_json
from seamline.model.errors import ConnectionMissing
from seamline.plan.stream.ask_counts import AskCount, describe_silence


class Process:
    """A process that a test plays: it hears its line, and ends when it is let."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.heard: IO[bytes] = os.fdopen(reading, "rb", buffering=0)
        self.stdin: IO[bytes] = os.fdopen(writing, "wb")
        self.code: int | None = None

    def poll(self) -> int | None:
        return self.code

    def lines(self) -> list[dict[str, Any]]:
        """Hear what was said meanwhile."""
        os.set_blocking(self.heard.fileno(), False)
        return [json.loads(line) for line in (self.heard.read(1 << 20) or b"").splitlines()]

    def close(self) -> None:
        """Close both ends."""
        self.heard.close()
        with suppress(OSError):
            self.stdin.close()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Process]]:
    """The processes that were started."""
    found: list[Process] = []

    def start(command: list[str], **options: object) -> Process:
        assert command == [sys.executable, "-m", "seamline.asking", "shop", "scored"]
        found.append(Process())
        return found[-1]

    monkeypatch.setattr("seamline.asking.askers.subprocess.Popen", start)
    yield found
    for each in found:
        each.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The driver's clock."""
    made = Clock()
    monkeypatch.setattr("seamline.asking.askers.time.monotonic", made)
    return made


@pytest.fixture
def askers(tmp_path: Path, clock: Clock, started: list[Process]) -> Askers:
    """The processes of a driver that holds epoch 7."""
    made = Askers(compiled(), Layout(tmp_path, "shop"))
    made.word = Word(7)
    for ask in made.pipeline.asks:
        made.open(ask, module.FIRST_WAIT)
    return made


def test_a_process_is_told_the_definition_and_where_the_stream_stands(
    askers: Askers, started: list[Process]
) -> None:
    [one] = started
    [first] = one.lines()
    assert from_json(first["definition"]) == askers.pipeline.definition
    assert Word(**first["word"]) == Word(7)


def test_it_is_told_what_is_new(askers: Askers, started: list[Process]) -> None:
    """And nothing twice: the driver looks every second."""
    [one] = started
    one.lines()
    askers.tell(epoch=8)
    askers.tell(epoch=9)
    askers.keep_up(0)
    askers.keep_up(2)
    askers.keep_up(2)
    assert [Word(**each) for each in one.lines()] == [Word(8), Word(9), Word(9, 2)]


def test_a_process_that_does_not_listen_keeps_nobody_waiting(askers: Askers, started: list[Process]) -> None:
    """What it has no room for it is told with the next word."""
    [one] = started
    one.lines()
    for epoch in range(8, 5000):
        askers.tell(epoch=epoch)
    heard = [each["epoch"] for each in one.lines()]
    assert heard == [*range(8, 8 + len(heard))]
    assert len(heard) < 4992
    askers.keep_up(0)
    assert one.lines() == [vars(Word(4999))]


def test_a_process_that_has_ended_is_started_again(
    askers: Askers, started: list[Process], clock: Clock
) -> None:
    """Each time later, where it ends soon; and it is told where the stream stands by then."""
    for wait in (1, 2, 4, 8, 16, 30, 30):
        started[-1].code = 1
        before = len(started)
        askers.tell(epoch=askers.word.epoch + 1)
        askers.keep_up(0)
        clock.now += wait - 0.1
        askers.keep_up(0)
        assert len(started) == before
        clock.now += 0.2
        askers.keep_up(0)
        assert len(started) == before + 1
        [first] = started[-1].lines()
        assert first["word"] == vars(askers.word)


def test_one_that_does_not_stay_up_is_told_of(askers: Askers, started: list[Process], clock: Clock) -> None:
    """Nobody is asked then, and no word of the process's own says so; what stays up has recovered."""

    def end() -> None:
        started[-1].code = 20
        askers.keep_up(0)
        clock.now += 31
        askers.keep_up(0)

    end()
    end()
    assert not askers.ended
    end()
    said = (
        "the process that asks has ended 3 times in a row, with code 20; see `seamline stream logs PIPELINE`"
    )
    assert askers.ended == {"scored": said}
    assert describe_silence(AskCount(ended=said), START) == said
    clock.now += module.CALM + 1
    askers.keep_up(0)
    assert not askers.ended


def test_one_that_ran_for_a_while_is_started_again_soon(
    askers: Askers, started: list[Process], clock: Clock
) -> None:
    """What ends once a day has not got worse each day."""
    for _ in range(8):
        clock.now += module.CALM + 1
        started[-1].code = 1
        askers.keep_up(0)
        clock.now += 1
        askers.keep_up(0)
    assert len(started) == 9


def test_a_process_that_ends_at_once_does_not_end_the_driver(
    askers: Askers, started: list[Process], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dead before it has read the definition: a line that nobody reads breaks under the one who writes."""

    def start(command: list[str], **options: object) -> Process:
        started.append(Process())
        started[-1].heard.close()
        started[-1].code = 1
        return started[-1]

    monkeypatch.setattr("seamline.asking.askers.subprocess.Popen", start)
    started[-1].code = 1
    askers.keep_up(0)
    clock.now += 2
    askers.keep_up(0)
    assert len(started) == 2
    askers.keep_up(0)
    clock.now += 3
    askers.keep_up(0)
    assert len(started) == 3


def test_uncommitted_reads_are_refused_where_somebody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that was written in vain would be counted beside the one that was not."""
    address = {
        "conn_type": "kafka",
        "extra": {"bootstrap.servers": "nowhere:1", "isolation.level": "read_uncommitted"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(address))
    with pytest.raises(ConnectionMissing, match="reads uncommitted records"):
        require_committed_reads(compiled(), Layout(tmp_path, "shop"))
    address["extra"] = {"bootstrap.servers": "nowhere:1"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(address))
    require_committed_reads(compiled(), Layout(tmp_path, "shop"))


def test_a_real_process_is_a_module_that_there_is() -> None:
    """Its name is only a text to whoever starts it."""
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import importlib.util as u; print(u.find_spec('seamline.asking.__main__').name)",
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "seamline.asking.__main__"
