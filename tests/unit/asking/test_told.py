"""What the driver says to a process that asks, in lines of which the newest counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

import pytest

from seamline.asking.told import Listener, Word

Line = tuple[IO[bytes], int]


@pytest.fixture
def line() -> Iterator[Line]:
    """The ends of a line between two processes."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as heard:
        yield heard, writing
        with suppress(OSError):
            os.close(writing)


@pytest.mark.parametrize("word", [Word(), Word(0, 0), Word(1_000_007, 3)])
def test_a_word_is_heard_as_it_was_said(word: Word) -> None:
    assert Word.from_line(word.to_line()) == word
    assert word.to_line().endswith(b"\n")
    assert word.to_line().count(b"\n") == 1


def test_a_word_is_written_whole_or_not_at_all() -> None:
    """A pipe takes 4096 bytes in one piece: the driver does not wait for a process that does not listen."""
    assert len(Word(2**63, 2**31).to_line()) < os.pathconf("/", "PC_PIPE_BUF")


def test_the_newest_word_counts(line: Line) -> None:
    heard, said = line
    listener = Listener(heard, Word(3))
    assert (listener.word, listener.over.is_set()) == (Word(3), False)
    os.write(said, Word(4).to_line() + Word(5, 1).to_line())
    os.close(said)
    assert listener.over.wait(30)
    assert listener.word == Word(5, 1)


def test_a_line_that_ends_is_the_end(line: Line) -> None:
    """The driver has gone, however it went."""
    heard, said = line
    listener = Listener(heard, Word(3))
    os.close(said)
    assert listener.over.wait(30)
    assert listener.word == Word(3)


def test_half_a_word_is_none(line: Line) -> None:
    """Nobody knows which number a driver was writing when it was killed: epoch 12 is the beginning of 123."""
    heard, said = line
    listener = Listener(heard, Word(3))
    os.write(said, Word(4).to_line() + Word(123).to_line()[:-1])
    os.close(said)
    assert listener.over.wait(30)
    assert listener.word == Word(4)
