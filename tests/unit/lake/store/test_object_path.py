"""A place in a bucket has the words of one on disk: the same code works on both."""

from __future__ import annotations

import os
import pickle
from contextlib import closing
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.services.addresses import Bucket

from seamline.lake.storage import log_store
from seamline.lake.storage.parquet_files import read_replaced_file
from seamline.lake.store.fetched_files import localize_file, localize_files, shrink_cache
from seamline.lake.store.locations import (
    Location,
    copy_folder,
    delete_files,
    delete_folder,
    first_entry_last,
    list_all_files,
    list_names,
    list_places,
    move_folder,
    parse_location,
    path_below,
    replace_file,
)
from seamline.lake.store.object_path import ObjectPath
from seamline.local.demo.scene import require_nothing_there
from seamline.model.errors import SetupError

pytestmark = pytest.mark.slow


@pytest.fixture(params=["disk", "bucket"])
def folder(request: pytest.FixtureRequest) -> Location:
    """The same folder on disk and in a bucket."""
    if request.param == "disk":
        return request.getfixturevalue("tmp_path") / "the lake"
    return request.getfixturevalue("lake")


def fill(folder: Location) -> None:
    """Put some files there."""
    for name in ("a/one.txt", "a/b c/two.txt", "a/b c/é=%20.txt", "z.txt"):
        replace_file(folder / name, name.encode())


def test_what_is_there_is_found_under_the_same_names(folder: Location) -> None:
    """A name with a space, a percent sign or an accent is a name."""
    fill(folder)
    assert [path_below(each, folder) for each in list_all_files(folder)] == sorted(
        ["a/one.txt", "a/b c/two.txt", "a/b c/é=%20.txt", "z.txt"]
    )
    assert [each.name for each in list_places(folder, "*/*/two.*")] == ["two.txt"]
    assert [each.name for each in list_places(folder, "a/b*")] == ["b c"]
    assert list_names(folder / "a") == ["one.txt"]
    assert (folder / "a" / "b c" / "é=%20.txt").read_text() == "a/b c/é=%20.txt"
    assert (folder / "a").is_dir() and not (folder / "a").is_file() and (folder / "a").exists()
    assert not (folder / "b").exists() and not (folder / "b").is_dir()
    assert (folder / "z.txt").stat().st_size == 5
    with pytest.raises(FileNotFoundError):
        (folder / "y.txt").read_bytes()
    with pytest.raises(FileNotFoundError):
        (folder / "y.txt").stat()


def test_only_one_writer_puts_an_entry_under_a_version(folder: Location) -> None:
    """Commits are told apart by this, and by nothing else."""
    (folder / log_store.FOLDER).mkdir(parents=True, exist_ok=True)
    with log_store.draft_entry(folder, b"first", synced=False) as put:
        assert put(0)
        assert not put(0)
    with log_store.draft_entry(folder, b"second", synced=False) as put:
        assert not put(0)
    assert log_store.entry_path(folder, 0).read_bytes() == b"first"
    assert list_names(folder / log_store.FOLDER) == [log_store.name_entry(0)]


def test_folders_are_copied_moved_and_cleared_away(folder: Location) -> None:
    """A fork, a repair and upkeep do that."""
    fill(folder)
    copy_folder(folder / "a", folder / "c")
    move_folder(folder / "a", folder / "d")
    assert not list_all_files(folder / "a")
    assert [path_below(each, folder / "c") for each in list_all_files(folder / "c")] == [
        path_below(each, folder / "d") for each in list_all_files(folder / "d")
    ]
    delete_folder(folder / "c")
    delete_folder(folder / "c")
    delete_files([folder / "z.txt", folder / "nothing"])
    assert {path_below(each, folder).partition("/")[0] for each in list_all_files(folder)} == {"d"}


def test_places_are_compared_and_written_as_text() -> None:
    """They are keys of caches, and travel to tasks."""
    place = parse_location("s3://lake//a/b/")
    assert str(place) == "s3://lake/a/b" and place == ObjectPath("s3://lake", "a/b")
    assert pickle.loads(pickle.dumps(place)) == place and hash(place) == hash(place.parent / "b")
    assert (place.name, place.parent.name, str(place.parent.parent)) == ("b", "a", "s3://lake")
    assert (place / "c.d.json").suffix == ".json" and (place / "c.d.json").stem == "c.d"
    assert sorted([place / "b", place / "a"]) == [place / "a", place / "b"]
    assert place.is_relative_to(place.parent) and not place.parent.is_relative_to(place)
    with pytest.raises(ValueError, match="is not below"):
        place.relative_to(place / "c")


def test_a_place_is_a_folder_or_a_known_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error must not make a folder called ``s4:``."""
    monkeypatch.chdir(tmp_path)
    assert parse_location("w") == tmp_path / "w"
    assert parse_location(f"file://{tmp_path}/w") == tmp_path / "w"
    with pytest.raises(SetupError, match="s4://lake"):
        parse_location("s4://lake/w")
    with pytest.raises(SetupError, match="the lake"):
        parse_location("s3://bucket/the lake")


def test_a_bucket_that_is_not_there_is_named(lake: Location) -> None:
    """The store's own answer is a page of XML."""
    gone = parse_location("s3://no-such-bucket/w")
    assert isinstance(gone, ObjectPath)
    for ask in (gone.read_bytes, gone.is_dir, lambda: gone.write_bytes(b"")):
        with pytest.raises(SetupError, match="There is no bucket s3://no-such-bucket"):
            ask()


def test_a_file_that_is_replaced_is_read_anew_and_one_that_never_changes_once(folder: Location) -> None:
    """The look-up that a serving table shows keeps its name; a copy of it would be shown for ever."""
    for number in (1, 2):
        written = pa.BufferOutputStream()
        pq.write_table(pa.table({"n": [number]}), written)
        replace_file(folder / "newest.parquet", written.getvalue().to_pybytes())
        assert read_replaced_file(folder / "newest.parquet")["n"].to_pylist() == [number]


def test_copies_that_nobody_read_for_longest_go_first(
    lake: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk of a reader is not the size of a lake; a file that an engine may be about to open stays."""
    for name in ("old", "new"):
        replace_file(lake / name, b"x" * 1000)
    old, new = localize_files([lake / "old", lake / "new"])
    os.utime(old, (0, 0))
    monkeypatch.setenv("SEAMLINE_STORE_CACHE", "1500")
    assert shrink_cache(force=True) == 1
    assert (Path(old).exists(), Path(new).exists()) == (False, True)
    monkeypatch.setenv("SEAMLINE_STORE_CACHE", "0")
    assert shrink_cache(force=True) == 0
    assert Path(localize_file(lake / "old")).read_bytes() == b"x" * 1000
    with pytest.raises(FileNotFoundError):
        localize_file(lake / "nothing")


def test_a_table_that_is_moved_is_none_until_all_of_it_is_there() -> None:
    """A fork that is cut off must not leave a master that counts."""
    log_folder = "_delta_log/"
    ways = [
        f"{log_folder}{0:020d}.json",
        "a.parquet",
        f"{log_folder}_last_checkpoint",
        f"{log_folder}{1:020d}.json",
        f"{log_folder}{1:020d}.checkpoint.parquet",
        f"{log_folder}{2:020d}.json",
    ]
    assert sorted(ways, key=first_entry_last) == [ways[at] for at in (1, 3, 5, 4, 2, 0)]


def test_the_child_of_a_fork_says_that_it_cannot_use_a_bucket(lake: Location) -> None:
    """Its client's threads are its parent's: it would wait for ever."""
    replace_file(lake / "x", b"x")
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            (lake / "x").read_bytes()
        except RuntimeError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        assert "forked" in said.read()
    assert (lake / "x").read_bytes() == b"x"


def test_a_copy_that_was_used_again_is_the_same_file(lake: Location) -> None:
    """What is kept in memory is found by what a file system says of the copy."""
    replace_file(lake / "x", b"x")
    looks = [Path(localize_file(lake / "x")).stat() for _ in range(2)]
    assert len({(each.st_ino, each.st_mtime_ns) for each in looks}) == 1


def test_a_folder_s_marker_is_no_file(lake: Location, bucket: Bucket) -> None:
    """Consoles make an empty object for a folder, and so does Hadoop beside what Spark writes."""
    fill(lake)
    place = ObjectPath.parse(str(lake))
    for folder in ("", "a", "a/b c", "empty"):
        mark_folder(bucket, f"{place.key}/{folder}".strip("/"))
    assert [path_below(each, lake) for each in list_all_files(lake)] == [
        "a/b c/two.txt",
        "a/b c/é=%20.txt",
        "a/one.txt",
        "z.txt",
    ]
    assert list_names(lake) == ["z.txt"] and list_names(lake / "a") == ["one.txt"]
    assert [each.name for each in list_places(lake, "*")] == ["a", "empty", "z.txt"]
    assert list_places(lake / "empty", "*") == [] and not (lake / "empty").is_file()
    copy_folder(lake / "a", lake / "c")
    move_folder(lake / "a", lake / "d")
    for name in ("c", "d"):
        assert list_names(lake / name) == ["one.txt"] and (lake / name / "b c" / "two.txt").is_file()
    assert not list_all_files(lake / "a")


def mark_folder(bucket: Bucket, key: str) -> None:
    """Put the object of a folder there, as a console does; our own client takes no such key."""
    client = boto3.client(
        "s3",
        endpoint_url=bucket.endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.access_key,
        aws_secret_access_key=bucket.secret_key,
    )
    with closing(client):
        client.put_object(Bucket=bucket.name, Key=f"{key}/", Body=b"")


def test_a_demo_begins_in_a_place_that_nothing_is_in(shaky: Location) -> None:
    """Of a folder of a bucket nothing is listed but what is below it."""
    require_nothing_there(shaky)
    (shaky / "flights" / "master" / "a.parquet").write_bytes(b"a")
    with pytest.raises(SetupError, match="has flights in it already"):
        require_nothing_there(shaky)
