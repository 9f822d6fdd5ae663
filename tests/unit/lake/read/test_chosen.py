"""Which files answer is looked up: what was published once is not gone through again for each answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.read import answering_files
from seamline.lake.read.merged_read import read_merged_answer
from seamline.model.protocol.read_request import ReadRequest

DAYS = 6


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Days that are built, each with a row."""
    made = Shop(tmp_path)
    for day in range(DAYS):
        made.epoch([Sale(day * 1440 + 5)], edge=True)
    for day in range(DAYS):
        made.build(day, DAYS - 1, f"g{day}")
    return made


def test_an_answer_after_an_epoch_goes_by_what_is_known(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream holds one a second, the manifest names each interval there ever was."""
    read: list[object] = []
    parse, partition = answering_files.parse_moment, answering_files.Files.partition
    monkeypatch.setattr(answering_files, "parse_moment", lambda text: read.append(text) or parse(text))

    def partitions(self: answering_files.Files, column: str) -> object:
        read.extend(range((found := partition(self, column)).length()))
        return found

    monkeypatch.setattr(answering_files.Files, "partition", partitions)
    span = {"start": START + DAY, "end": START + 2 * DAY}
    read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**span))
    assert len(read) >= 2 * DAYS
    for number in range(3):
        shop.epoch([Sale(1440 + 6 + number)])
        read.clear()
        found = read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(**span))
        assert found.table["orders"].to_pylist() == [1 + number + 1]
        # The one file of the day.
        assert len(read) <= 2


def test_what_is_published_later_is_seen(shop: Shop) -> None:
    """A manifest of another version is another, and so are the files."""
    read_merged_answer(shop.compiled, shop.view, shop.layout)
    shop.epoch([Sale(7)], edge=True)
    shop.build(0, DAYS, "g-again")
    found = read_merged_answer(shop.compiled, shop.view, shop.layout)
    assert found.intervals["2013-01-01T00:00:00Z"].generation == "g-again"
    assert found.table["orders"].to_pylist() == [2, *([1] * (DAYS - 1))]
    assert (
        read_merged_answer(shop.compiled, shop.view, shop.layout, ReadRequest(as_of=DAYS - 1)).table.num_rows
        == DAYS
    )
