"""A number in a target: which version, since when, and whether it is there, as far as that can be known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store
from tests.unit.sinks.sending_shop import SINK, refresh, send

from seamline.lake.store.locations import Location, delete_files, list_all_files
from seamline.model.errors import KafkaUnavailable
from seamline.serve.explain import explain_number
from seamline.sinks.audit.sent_numbers import SentNumber, list_sent_numbers
from seamline.sinks.audit.sent_words import format_sent_number, format_sent_numbers, serialize_sent_number

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]


@pytest.fixture
def sinking(warehouse: Location) -> Shop:
    """A shop with a sink, whose row of a is shown by the second version as it is."""
    shop = Shop(warehouse)
    shop.compiled = replace(shop.compiled, definition=replace(shop.compiled.definition, sinks=(SINK,)))
    for sales in ([Sale(1)], [Sale(2)], [Sale(25 * 60)]):
        shop.epoch(sales, watermark=START + DAY)
        refresh(shop)
    return shop


def ask(shop: Shop, opening: Any) -> SentNumber:
    """Explain the row of a, and say where it has gone."""
    row = explain_number(shop.compiled, shop.view, shop.layout, {"customer": "a"}, (START, None)).row
    [found] = list_sent_numbers(shop.compiled, shop.layout, "sales", row, opening)
    return found


def test_a_number_that_was_sent_says_since_which_version(sinking: Shop) -> None:
    """The third version changed another row: this one stands since the second."""
    store = Store()
    never = ask(sinking, lambda *_: MemoryTarget(store))
    assert format_sent_number(never) == "nothing has been sent yet"
    send(sinking, store)
    found = ask(sinking, lambda *_: MemoryTarget(store))
    assert found.since is not None
    assert (found.since.version, found.since.exact, found.held) == (2, True, "same")
    [head, line] = format_sent_numbers([found])
    assert head == "Sinks:"
    assert "topic sales.out of kafka_default: shows version 3, the newest, sent by 20" in line
    assert "the row is so since version 2 of 20" in line
    assert line.endswith("read back, it is there")
    told = serialize_sent_number(found)
    assert (told["row_since_version"], told["read_back"], told["differs"]) == (2, "same", {})


def test_a_number_that_somebody_has_changed_or_deleted_is_told(sinking: Shop) -> None:
    """What the position promises is one thing, what is there another."""
    store = Store()
    send(sinking, store)
    [place] = [each for each in store.rows if each[1] == START]
    store.rows[place] = {**store.rows[place], "total": 70}
    found = ask(sinking, lambda *_: MemoryTarget(store))
    assert "there is another: total 70 in place of 2" in format_sent_number(found)
    del store.rows[place]
    assert "it is not there" in format_sent_number(ask(sinking, lambda *_: MemoryTarget(store)))


def test_a_target_that_does_not_answer_is_told_of_from_the_warehouse(sinking: Shop) -> None:
    """The copy of the position is there too; how old it is, the line says."""
    send(sinking, Store())

    def fail(*_: object) -> MemoryTarget:
        raise KafkaUnavailable("Kafka does not answer.")

    found = ask(sinking, fail)
    assert (found.since and found.since.version, found.held) == (2, "")
    assert format_sent_number(found).endswith("Kafka does not answer.")
    assert "the target was not asked" in format_sent_number(ask(sinking, None))


def test_a_row_that_the_version_there_does_not_have(sinking: Shop) -> None:
    """A sink that is behind has sent what there was."""
    store = Store()
    sinking.epoch([Sale(70, "b")], watermark=START + DAY)
    send(sinking, store)
    refresh(sinking)
    row = explain_number(
        sinking.compiled, sinking.view, sinking.layout, {"customer": "b"}, (START + DAY / 24, None)
    ).row
    [found] = list_sent_numbers(
        sinking.compiled, sinking.layout, "sales", row, lambda *_: MemoryTarget(store)
    )
    assert "shows version 3 of 4" in format_sent_number(found)
    assert "which does not have this row" in format_sent_number(found)


def test_how_long_a_row_is_so_is_not_guessed(sinking: Shop) -> None:
    """Upkeep deletes what no sink needs: what the version before showed is not known then."""
    store = Store()
    send(sinking, store)
    live = set(map(str, list_live(sinking)))
    gone = [
        each
        for each in list_all_files(sinking.layout.serving(sinking.view))
        if str(each).endswith(".parquet") and str(each) not in live
    ]
    delete_files(gone)
    found = ask(sinking, lambda *_: MemoryTarget(store))
    assert found.since is not None and not found.since.exact
    assert "or longer" in format_sent_number(found)


def list_live(shop: Shop) -> list[str]:
    """List the files that the newest version has."""
    from seamline.lake.tables.sinks.served_versions import ServedVersions

    versions = ServedVersions(shop.layout.serving(shop.view))
    version = versions.read(versions.find_newest())
    return [version.locate(path) for path in version.files]
