"""What attempts at judging again left: dead ones leave, those that may still count stay."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.shop import Sale, Shop

from seamline.lake.maintain import reprocessing_attempts
from seamline.lake.maintain.reprocessing_attempts import REASON
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location
from seamline.lake.tables import reprocessed
from seamline.lake.tables.reprocessed import ATTEMPT, Reprocessed, rows_schema
from seamline.model.errors import Conflict
from seamline.plan.batch.reprocessing_plan import Verdict
from seamline.plan.maintain.failed_attempts import dead_attempts

slow = pytest.mark.slow


@given(st.dictionaries(st.sampled_from("abc"), st.frozensets(st.integers(0, 4), min_size=1), max_size=3))
def test_an_attempt_is_dead_when_it_can_never_have_its_verdicts(epochs: dict[str, frozenset[int]]) -> None:
    """Whichever of them commits first: its own rows count, and exactly those that meet it are dead."""
    for first, numbers in epochs.items():
        dead = dead_attempts(epochs, dict.fromkeys(numbers, first))
        assert dead == {each for each, some in epochs.items() if each != first and some & numbers}
    assert dead_attempts(epochs, {}) == set()


def test_an_attempt_that_has_verdicts_is_not_dead() -> None:
    """Of "12 13" a power cut has left "12 1", and upkeep deleted rows that count."""
    assert dead_attempts({"cut": {12, 1}}, {12: "cut", 13: "cut", 1: "other"}) == set()


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Four epochs that some attempts judge again."""
    made = Shop(warehouse)
    for number in range(4):
        made.epoch([Sale(number)])
    return made


class Attempt:
    """A job that judges epochs again, step by step."""

    def __init__(self, shop: Shop, name: str, epochs: list[int]) -> None:
        self.held, self.name, self.epochs = Reprocessed(shop.compiled, shop.layout), name, epochs
        self.root = self.held.begin(name, epochs)
        rows = [{"_epoch": number, "id": number} for number in epochs]
        table = pa.Table.from_pylist(rows, schema=rows_schema(shop.compiled))
        place = f"{ATTEMPT}={name}/0.parquet"
        self.file = data_files.write_data_file(table, self.root, place, partition={ATTEMPT: name})

    def rows(self) -> None:
        self.held.rows().append([self.file])

    def verdicts(self, *, rows: bool = True) -> None:
        self.held.commit([self.file] if rows else [], [Verdict(number, self.name) for number in self.epochs])


def alive(shop: Shop) -> set[str]:
    root = shop.layout.records(Reprocessed(shop.compiled, shop.layout).hash) / "rows"
    return set(Table.open(root).read([ATTEMPT])[ATTEMPT].to_pylist())


@slow
def test_dead_attempts_leave_their_table_and_a_day_later_the_disk(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between rows and verdicts, killed before, done, and asleep: two of the four go."""
    killed, unwritten = Attempt(shop, "killed", [0, 1]), Attempt(shop, "unwritten", [1])
    asleep = Attempt(shop, "asleep", [2, 3])
    killed.rows()
    asleep.rows()
    assert maintain_tables(shop.compiled, shop.layout).deleted == {}
    done = Attempt(shop, "done", [0, 1])
    done.verdicts()
    counted = done.held.files()
    assert counted is not None
    first = maintain_tables(shop.compiled, shop.layout)
    assert alive(shop) == {"asleep", "done"}
    assert first.deleted == {REASON: 1}
    assert (killed.root / killed.file.path).is_file()
    assert not (unwritten.root / unwritten.file.path).parent.exists()
    assert maintain_tables(shop.compiled, shop.layout).deleted == {}

    monkeypatch.setattr(reprocessing_attempts, "PINNED_HOURS", 0)
    assert maintain_tables(shop.compiled, shop.layout).deleted == {REASON: 1}
    assert not (killed.root / killed.file.path).parent.exists()
    again = done.held.files()
    assert again is not None and again.paths == counted.paths
    assert (asleep.root / asleep.file.path).is_file()
    assert maintain_tables(shop.compiled, shop.layout).deleted == {}


@slow
def test_one_that_wakes_when_it_is_dead_is_told_and_changes_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows may even come back into the table: without verdicts they count for nobody, and go again."""
    sleeper = Attempt(shop, "sleeper", [0, 1])
    Attempt(shop, "done", [1]).verdicts()
    real = reprocessed.Reprocessed.rows

    def rows(held: Reprocessed) -> Table:
        # It has looked whether its file is there; now upkeep comes.
        table = real(held)
        monkeypatch.setattr(reprocessed.Reprocessed, "rows", real)
        append = table.append

        def late(written: list[data_files.DataFile]) -> int:
            version = append(written)
            maintain_tables(shop.compiled, shop.layout)
            return version

        monkeypatch.setattr(table, "append", late)
        return table

    monkeypatch.setattr(reprocessed.Reprocessed, "rows", rows)
    with pytest.raises(Conflict, match="Another run has reprocessed epoch 1"):
        sleeper.verdicts()
    assert set(sleeper.held.verdicts()) == {1}
    assert alive(shop) == {"done"}


@slow
@pytest.mark.on_disk
@pytest.mark.parametrize("left", [None, b"", b"\0" * 8], ids=["none", "empty", "zeros"])
def test_without_its_note_an_attempt_is_known_by_its_rows(left: bytes | None, shop: Shop) -> None:
    """Earlier releases wrote none, power cuts take it; of a file cut short nothing is known, and it stays."""
    old, cut = Attempt(shop, "old", [0]), Attempt(shop, "cut", [0])
    for each in (old, cut):
        note = each.root / f"{ATTEMPT}={each.name}" / reprocessed.EPOCHS
        note.unlink() if left is None else note.write_bytes(left)
    (cut.root / cut.file.path).write_bytes(b"PAR1")
    Attempt(shop, "done", [0]).verdicts()
    assert maintain_tables(shop.compiled, shop.layout).deleted == {REASON: 1}
    assert not (old.root / old.file.path).exists()
    assert (cut.root / cut.file.path).is_file()
