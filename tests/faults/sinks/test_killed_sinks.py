"""Sinks that are killed, again and again: what is there is what the position says, and in the end the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.sinks.drilled import BETWEEN, Drilled, Moving, Q
from tests.faults.sinks.file_place import FilesPlace
from tests.faults.sinks.forked import forking
from tests.faults.sinks.letter_shop import KINDS as LETTERS
from tests.faults.sinks.letter_shop import LetterShop, LettersPlace
from tests.faults.sinks.places import KeysPlace, Place, TablePlace, TopicPlace
from tests.faults.sinks.shown_shop import ShownShop
from tests.services.addresses import KafkaConnection, Postgres, Valkey

pytestmark = pytest.mark.faults
KILLS = 5


def drill(folder: Path, place: Place, seed: int) -> None:
    """Kill a sink of a view."""
    kill_often(ShownShop(folder, [place], seed), place, seed)


def kill_often(world: Moving[Q], place: Q, seed: int) -> None:
    """Kill a sink between rows and position, and elsewhere."""
    with forking() as made:
        drilled = Drilled(world, place, seed, made)
        drilled.drill(KILLS)
    between = sum(each.point == BETWEEN for each in drilled.kills)
    assert between == KILLS
    print(f"{place.kind}: {between} kills between rows and position, {len(drilled.kills)} in all")


@pytest.mark.seeds(2)
def test_a_sink_that_is_killed_leaves_a_table_of_postgresql_as_its_position_says(
    tmp_path: Path, postgres: Postgres, seed: int
) -> None:
    """All rows of a transaction were written, and its position was not: neither is there afterwards."""
    drill(tmp_path, TablePlace(postgres), seed)


@pytest.mark.seeds(2)
def test_a_sink_that_is_killed_goes_on_with_its_keys_of_redis(
    tmp_path: Path, valkey: Valkey, seed: int
) -> None:
    """Some scripts of a write have run: the same rows are written again, whatever the table shows by then."""
    drill(tmp_path, KeysPlace(valkey), seed)


@pytest.mark.seeds(2)
def test_a_sink_that_is_killed_shows_each_change_of_a_topic_once(
    tmp_path: Path, kafka: KafkaConnection, seed: int
) -> None:
    """All records are in the topic, and not committed: whoever reads committed records never sees them."""
    place = TopicPlace(kafka)
    place.forget()
    drill(tmp_path, place, seed)
    place.forget()


@pytest.mark.seeds(2)
def test_a_sink_that_is_killed_leaves_files_that_do_not_count(tmp_path: Path, seed: int) -> None:
    """All files of a commit are there, and its manifest is not: no reader has them, and the next writer writes anew."""
    drill(tmp_path, FilesPlace(tmp_path / "out"), seed)


@pytest.mark.seeds(1)
def test_a_sink_that_is_killed_adds_each_dead_letter_once(
    tmp_path: Path, kafka: KafkaConnection, seed: int
) -> None:
    """All records are in the topic, and not committed; epochs come meanwhile, and some die and are read again."""
    place = LettersPlace(kafka, of=LETTERS[seed % len(LETTERS)])
    place.forget()
    kill_often(LetterShop(tmp_path, place, seed), place, seed)
    place.forget()
