"""Files go from place to place in pieces, whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from seamline.lake.store import bucket, file_copies
from seamline.lake.store.file_copies import (
    are_nested,
    copy_file,
    count_requests,
    digest_file,
    find_free_bytes,
    list_found_files,
    write_file,
)
from seamline.lake.store.locations import Location, create_file, parse_location
from seamline.lake.store.object_path import ObjectPath
from seamline.plan.maintain.transfers import FoundFile

pytestmark = pytest.mark.slow
MEBI = 1 << 20


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the smallest pieces that a store takes."""
    monkeypatch.setattr(file_copies, "PIECE", 5 * MEBI)


@pytest.mark.parametrize("size", [0, 1000, 5 * MEBI, 11 * MEBI + 1])
def test_a_file_is_the_same_there_and_back(lake: Location, tmp_path: Path, size: int) -> None:
    """Of one piece, of several, and of none; on disk it is as old as it was."""
    data = os.urandom(size)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "é %3A=.parquet").write_bytes(data)
    os.utime(tmp_path / "here" / "é %3A=.parquet", ns=(10**18, 10**18))
    [found] = list_found_files(tmp_path / "here").values()
    sha = hashlib.sha256(data).hexdigest()
    bucket.requests.clear()
    assert copy_file(tmp_path / "here" / found.way, lake / "sub" / found.way, found) == sha
    [there] = list_found_files(lake / "sub").values()
    assert (there.way, there.size) == (found.way, size)
    assert digest_file(lake / "sub" / there.way, size) == sha
    assert copy_file(lake / "sub" / there.way, lake / "else" / "x", found) == sha
    assert copy_file(lake / "else" / "x", tmp_path / "back" / "x", found) == sha
    assert (tmp_path / "back" / "x").read_bytes() == data
    assert (tmp_path / "back" / "x").stat().st_mtime_ns == 10**18
    assert bucket.requests["get"] == 3 * count_requests(lake, size, writes=False)
    assert [each.name for each in (tmp_path / "back").iterdir()] == ["x"]


def test_a_copy_that_ends_early_is_not_there(lake: Location, tmp_path: Path) -> None:
    """What was there stays, and no draft."""
    (tmp_path / "x").write_bytes(b"before")
    (lake / "x").write_bytes(b"before")

    def ends() -> Iterator[bytes]:
        yield b"half" * (2 * MEBI)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        write_file(tmp_path / "x", ends(), 0)
    assert isinstance(lake, ObjectPath)
    with pytest.raises(OSError, match="gone"):
        lake.bucket.put_pieces((lake / "x").key, ends(), 5 * MEBI)
    for folder in (tmp_path, lake):
        assert (folder / "x").read_bytes() == b"before"
        assert [*list_found_files(folder)] == ["x"]


def test_a_file_that_is_gone_is_said_to_be_gone(lake: Location, tmp_path: Path) -> None:
    """Its name is told, not that of the copy, and nothing of it is there: from disk and from a bucket."""
    for source in (tmp_path / "here", lake / "here"):
        for to in (tmp_path / "to", lake / "to"):
            with pytest.raises(FileNotFoundError, match="here/x"):
                copy_file(source / "x", to / "x", FoundFile("x", 11 * MEBI, 0, 1))
            assert list_found_files(to) == {}


def test_a_folder_that_is_linked_in_is_part_of_it(tmp_path: Path) -> None:
    """A pipeline may be on another disk."""
    (tmp_path / "disk" / "shop").mkdir(parents=True)
    (tmp_path / "disk" / "shop" / "x").touch()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "shop").symlink_to(tmp_path / "disk" / "shop")
    assert [*list_found_files(tmp_path / "w")] == ["shop/x"]
    assert list_found_files(tmp_path / "nothing") == {}


def test_a_file_is_created_once(lake: Location, tmp_path: Path) -> None:
    """On disk as in a bucket the second one is told so."""
    for place in (lake / "once", tmp_path / "new" / "once"):
        assert create_file(place, b"first")
        assert not create_file(place, b"second")
        assert place.read_bytes() == b"first"


def test_places_within_each_other_are_known(tmp_path: Path) -> None:
    """A warehouse cannot be copied into itself; a name that begins alike is another."""
    bucket_place = parse_location("s3://lake/a")
    assert are_nested(tmp_path, tmp_path / "w") and are_nested(tmp_path / "w", tmp_path)
    assert are_nested(bucket_place, parse_location("s3://lake/a/b"))
    assert not are_nested(bucket_place, parse_location("s3://lake/ab"))
    assert not are_nested(tmp_path / "w", tmp_path / "w2")
    assert not are_nested(tmp_path, bucket_place) and not are_nested(bucket_place, tmp_path)
    assert find_free_bytes(bucket_place) is None and (find_free_bytes(tmp_path / "a" / "b") or 0) > 0
    assert count_requests(tmp_path, 1 << 30, writes=True) == 0
    assert count_requests(bucket_place, 11 * MEBI, writes=True) == 5
