"""Snapshots of tables as a start reads them: those that cannot be read go, and a machine in trouble costs none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
from tests.unit.lake.engine.test_changed_index import find_changelog, make_log
from tests.unit.model.changes.test_changelogs import BANK

from seamline.lake.engine.changed_index import ChangedIndex
from seamline.lake.joins.changed_rows import write_snapshot
from seamline.lake.joins.snapshot_files import SnapshotFiles
from seamline.model.errors import StoreUnavailable
from seamline.model.protocol.seam import NOTHING
from seamline.spark.stream.derived import saved_images
from seamline.spark.stream.derived.saved_images import SavedImages, write_image

EPOCHS = (2, 4)
STAMPS: Any = SimpleNamespace(
    find_row=lambda number: number, stamp=lambda row, _: SimpleNamespace(to_json=lambda: f"epoch {row}")
)


@pytest.fixture
def index(tmp_path: Path) -> ChangedIndex:
    """Return an index that knows nothing."""
    return ChangedIndex(find_changelog(BANK), tmp_path / "index")


@pytest.fixture
def saved(tmp_path: Path, index: ChangedIndex) -> SavedImages:
    """Return the snapshots of two epochs; the newest is the first one that a start reads."""
    writer: Any = SimpleNamespace(restated=0, layout=None)
    made, changelog, files = SavedImages(writer, ()), index.changelog, []
    known = ChangedIndex(changelog, tmp_path / "known")
    for number, rows in enumerate(make_log(changelog, 5)):
        known.take(rows)
        if number in EPOCHS:
            path = tmp_path / f"{number}.parquet"
            write_snapshot(path, changelog, known.con.sql(known.named_sql("kept.images")).to_arrow_reader(9))
            files.insert(0, SnapshotFiles(number, number, (path,)))
    known.close()
    made.files.found[changelog.id] = files
    return made


def list_left(saved: SavedImages) -> list[int]:
    """List the epochs whose snapshots are on disk."""
    [found] = saved.files.found.values()
    return sorted(each.epoch for each in found if all(Path(str(place)).exists() for place in each.places))


@pytest.mark.parametrize("broken", ["torn", "gone"])
def test_a_start_goes_on_from_an_older_snapshot(saved: SavedImages, index: ChangedIndex, broken: str) -> None:
    """The one that cannot be read is deleted; without any it reads the whole log."""
    [found] = saved.files.found.values()
    for wanted in (4, 2, NOTHING):
        left = [each for each in EPOCHS if each <= wanted]
        assert saved.load(index.changelog, index, 9, STAMPS) == wanted
        assert list_left(saved) == left
        if wanted > NOTHING:
            assert index.stamp == f"epoch {wanted}"
            path = Path(str(found[0].places[0]))
            if broken == "torn":
                path.write_bytes(path.read_bytes()[:-9])
            else:
                path.unlink()


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("localize_files", StoreUnavailable("The store is away.", hint="try again.")),
        ("localize_files", OSError(28, "No space left on device")),
        ("load_snapshot", OSError(24, "Too many open files")),
        ("load_snapshot", duckdb.IOException("No space left on device")),
        ("load_snapshot", duckdb.OutOfMemoryException("malloc")),
        ("load_snapshot", duckdb.FatalException("the database is gone")),
    ],
)
def test_a_machine_or_store_in_trouble_costs_no_snapshot(
    saved: SavedImages, index: ChangedIndex, monkeypatch: pytest.MonkeyPatch, at: str, error: Exception
) -> None:
    """Its view is behind until the next epoch; else a start would delete all of them, and read the whole log."""

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(saved_images, at, fail)
        with pytest.raises(duckdb.Error):
            saved.load(index.changelog, index, 9, STAMPS)
    assert list_left(saved) == [2, 4]
    assert saved.load(index.changelog, index, 9, STAMPS) == 4


def test_a_slow_store_holds_no_transaction_of_an_index(
    tmp_path: Path, index: ChangedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written of it is on this machine before it is sent; else its file would take in nothing meanwhile."""
    for rows in make_log(index.changelog, 5):
        index.take(rows)
    cursor, sent = index.con.cursor(), []
    cursor.begin()

    def send(draft: Path, place: Path) -> None:
        with pytest.raises(duckdb.ConnectionException):
            cursor.execute("SELECT 1")
        sent.append((draft, place, draft.exists()))

    monkeypatch.setattr(saved_images, "send_draft", send)
    place = tmp_path / "snapshot.parquet"
    write_image((index.changelog, index, cursor, place))
    assert sent == [(place, place, True)]
