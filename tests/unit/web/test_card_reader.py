"""The process that reads for the page of all pipelines: it reads what the server would, and outlives nobody."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from tests.unit.past import build
from tests.unit.shop import Sale, Shop, opened

from seamline.lake.storage.kept.cached_table import find_cached_table
from seamline.lake.storage.layout import definitions_folder
from seamline.web.glance import card_reader
from seamline.web.glance.card_halves import ANSWERS, STREAM, AnswersHalf, load_half
from seamline.web.glance.card_reader import CardReader, answer


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """Two days of sales, the first of them built; the definition prints something."""
    made = opened(tmp_path, monkeypatch)
    made.epoch([Sale(1, "a", 10), Sale(1500, "a", 1)])
    build(made, "g", cut=0)
    file = definitions_folder() / "shop.py"
    file.write_text("print('not an answer')\n" + file.read_text())
    return made


def test_it_reads_what_the_server_would_and_ends_with_it(shop) -> None:
    """One that was killed is started again by the next question; closing the pipe ends it."""
    with CardReader() as read:
        reader = read.__self__
        for half in (STREAM, ANSWERS):
            key = (half, "here", "shop")
            own = load_half(key, None)
            assert read(key, None) == (own if half == STREAM else replace(own, seen=None))
        first = psutil.Process(reader.process.pid)
        first.kill()
        first.wait(30)
        assert read((ANSWERS, "here", "shop"), None) == replace(own, seen=None)
        second = psutil.Process(reader.process.pid)
        assert second.pid != first.pid
    assert not second.is_running()


def test_that_it_ends_again_and_again_is_an_alarm(monkeypatch) -> None:
    """Of the pipeline that it was to read: the others are tried too."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", "pass"]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(card_reader, "start_process", start)
    with CardReader() as read:
        for half in (STREAM, ANSWERS):
            assert "does not run" in read((half, "here", "shop"), None).alarms[0]
    assert len(started) == 4 and all(each.returncode == 0 for each in started)


def test_that_it_cannot_be_started_is_an_alarm(monkeypatch) -> None:
    """As where there is no memory for another process: the thread that asks goes on."""

    def start() -> subprocess.Popen[bytes]:
        raise OSError("no memory")

    monkeypatch.setattr(card_reader, "start_process", start)
    with CardReader() as read:
        assert "does not run" in read((STREAM, "here", "shop"), None).alarms[0]


def test_answers_are_kept_and_tables_are_not(shop, monkeypatch) -> None:
    """What does not change is not read again; thousands of intervals of hundreds of pipelines are not remembered."""
    key = (ANSWERS, "here", "shop")
    read: list[object] = []

    def load(key, before):
        found = load_half(key, before)
        read.append(found)
        return found

    monkeypatch.setattr(card_reader, "load_half", load)
    answers = io.BytesIO()
    answer(io.BytesIO(pickle.dumps(key) * 3), answers)
    answers.seek(0)
    found = [pickle.load(answers) for _ in range(3)]
    assert found[0] == found[1] == found[2] and found[0].seen is None
    assert read[0] is read[1] is read[2] and isinstance(read[0], AnswersHalf)
    held = find_cached_table(shop.layout.table("manifest"))
    assert held is not None and "state" not in {*held.seen}


def test_it_ends_quietly_when_nobody_takes_its_answer(shop) -> None:
    """As when the server is killed while it reads: nothing is wrong, and the log says nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", card_reader.__name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    process.stdout.close()
    pickle.dump((ANSWERS, "here", "shop"), process.stdin)
    process.stdin.close()
    assert process.stderr.read() == b"not an answer\n"
    process.stderr.close()
    assert process.wait(60) == 0


def test_it_ends_when_memory_is_short(monkeypatch) -> None:
    """Before it answers anything: another takes its place."""
    monkeypatch.setattr(card_reader, "MOST_BYTES", 0)
    asked = io.BytesIO(pickle.dumps((STREAM, "here", "shop")))
    answer(asked, io.BytesIO())
    assert asked.tell() == 0
