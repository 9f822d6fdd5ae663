"""Files that are written on this machine's disk and belong to a warehouse, wherever that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from seamline.lake.store.drafted_files import forget_drafts, name_draft, open_draft, send_draft
from seamline.lake.store.locations import Location, list_places


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    """What was there stays where the next one is not written, and no draft is left."""
    path = tmp_path / "new" / "1.parquet"
    with open_draft(path) as file:
        file.write(b"whole")
        assert not path.exists()
    half = open_draft(path)
    half.__enter__().write(b"half")
    assert not half.__exit__(OSError, OSError("no more"), None)
    assert [*path.parent.iterdir()] == [path]
    assert path.read_bytes() == b"whole"


def test_what_a_killed_process_left_is_deleted(tmp_path: Path) -> None:
    """Of one name, whoever wrote it; what is whole stays."""
    path = tmp_path / "1-[2].parquet"
    for name in (path.name, f"{path.name}.17", f"{path.name}.18", "2.parquet.17"):
        (tmp_path / name).touch()
    forget_drafts(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, "2.parquet.17"]


def test_a_file_on_disk_is_written_where_it_belongs(tmp_path: Path) -> None:
    """Nobody moves it."""
    place = tmp_path / "lake" / "1.parquet"
    path = name_draft(place, tmp_path / "home")
    with open_draft(path) as file:
        file.write(b"whole")
    send_draft(path, place)
    assert place == path and place.read_bytes() == b"whole"


@pytest.mark.slow
def test_a_file_of_a_bucket_is_sent_there(lake: Location, tmp_path: Path) -> None:
    """One that never became whole is not."""
    place = lake / "snapshots" / "1.parquet"
    path = name_draft(place, tmp_path)
    send_draft(path, place)
    assert list_places(lake / "snapshots", "*") == []
    with open_draft(path) as file:
        file.write(b"whole")
    send_draft(path, place)
    assert [each.read_bytes() for each in list_places(lake / "snapshots", "*")] == [b"whole"]
    assert not path.exists()
