"""Writers of files that are killed, again and again: each change is in a file that counts, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.faults.rig.store_settings import set_store
from tests.faults.sinks.file_place import FilesPlace
from tests.faults.sinks.file_writer import LAST, list_versions
from tests.faults.sinks.forked import forking
from tests.faults.sinks.shown_shop import ShownShop
from tests.services.addresses import Bucket
from tests.unit.sinks.files.file_rows import (
    Clock,
    expect_rows,
    make_target,
    read_changes,
    read_rows,
    spell,
    spell_all,
)

from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location, parse_location
from seamline.model.errors import AuditFailed, DiskFull, StoreRefused
from seamline.model.protocol.sinks.file_manifests import FileManifest, find_claim
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.reading import list_current_files
from seamline.sinks.row_shape import RowShape

pytestmark = pytest.mark.faults
ROOT = Path(__file__).resolve().parents[3]
POINTS = ("sink_half", "sink_rows", "sink_written", "sink_merging", "sink_merged")
"""After a file, after all files, after the manifest; after the files of a merge, and after its manifest."""
IDENTITY = RowShape.of(make_view()).identity
BEFORE = ("sink_half", "sink_rows", "sink_merging")
"""Points between files and their manifest: what is there then does not count."""


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Where files are."""
    if request.param == "folder":
        return tmp_path
    bucket: Bucket = request.getfixturevalue("bucket")
    set_store(monkeypatch, bucket, bucket.endpoint, tmp_path / "home")
    return parse_location(bucket.url) / "exports"


def start(place: Location, seed: int, form: str, fails: str = "") -> subprocess.Popen[str]:
    """Start a writer."""
    command = [sys.executable, "-m", "tests.faults.sinks.file_writer"]
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SEAMLINE_FAIL": fails},
    )
    assert child.stdin is not None
    told = {"path": str(place / "out"), "format": form, "history": True, "seed": seed}
    child.stdin.write(json.dumps(told))
    child.stdin.close()
    child.stdin = None
    return child


def read_newest(place: Location) -> FileManifest:
    """Read the newest manifest."""
    manifests = ManifestLog(place / "out", "")
    number = manifests.list_numbers()[-1]
    return FileManifest.from_bytes(manifests.fetch(number), number)


def count_orphans(place: Location) -> int:
    """Count the files of the last writer that are there and do not count."""
    claim = int(read_newest(place).writer.partition("-")[0])
    there = {each for each in list_found_files(place / "out") if find_claim(each) == claim}
    counting = [each.removeprefix(f"{place / 'out'}/") for each in list_current_files(str(place / "out"))]
    return len(there.difference(counting))


def require_each_change_once(place: Location, seed: int) -> int:
    """Require that files have each change up to the position once, and no others; return the position's version."""
    position = read_newest(place).position
    version = position.version if position else -1
    wanted: Counter[tuple[str, int, bool]] = Counter()
    for served, changes in list_versions(seed):
        if served.version > version:
            break
        for batch in changes:
            wanted.update(identify(row, served.version, gone=False) for row in batch.upserts.to_pylist())
            wanted.update(identify(row, served.version, gone=True) for row in batch.deletions.to_pylist())
    found = Counter(identify(row, row["_version"], gone=row["_deleted"]) for row in read_changes(place))
    assert found == wanted
    return version


def identify(row: dict[str, Any], version: int, *, gone: bool) -> tuple[str, int, bool]:
    """Return what tells a change from others."""
    return spell([row[name] for name in IDENTITY]), version, gone


@pytest.mark.seeds(2)
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_a_writer_killed_at_any_point(place: Location, form: str, seed: int) -> None:
    """Files without a manifest do not count, and whoever goes on writes no change again."""
    pick = random.Random(seed)
    struck = 0
    for point in pick.sample(POINTS, len(POINTS)):
        fails = f"{point}:{pick.randrange(1, 3)}:python"
        child = start(place, seed, form, fails)
        told, _ = child.communicate(timeout=120)
        assert child.returncode == -signal.SIGKILL, (fails, told)
        require_each_change_once(place, seed)
        if point in BEFORE:
            assert count_orphans(place), fails
            struck += 1
    assert struck == len(BEFORE)
    child = start(place, seed, form)
    told, _ = child.communicate(timeout=120)
    assert child.returncode == 0, told
    assert require_each_change_once(place, seed) == LAST


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A small file system, which only root can mount."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small file system needs root: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("left", [0, 8_000])
def test_a_full_disk(small: Path, left: int) -> None:
    """What does not go in does not count, and once there is room the sink goes on where it was."""
    served = ServedRows(make_view(), 1, 200)
    target = make_target(small, served, Clock())
    target.take_over()
    target.write(served.whole(), served.position)
    before, position = expect_rows(served, list(IDENTITY)), served.position
    ballast = small / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 1024)
    os.truncate(ballast, ballast.stat().st_size - left)
    change = served.change(100, 20, 20)
    with pytest.raises(OSError, match="No space left") as full:
        target.write([change], served.position)
    assert isinstance(explain_storage_failure(full.value), DiskFull)
    assert spell_all(read_rows(small, list(IDENTITY))) == spell_all(before)
    ballast.unlink()
    assert target.take_over() == position
    target.write([change], served.position)
    assert spell_all(read_rows(small, list(IDENTITY))) == spell_all(expect_rows(served, list(IDENTITY)))


def test_wrong_keys_of_a_store(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which key was refused, and no secret; with the right one it goes on."""
    set_store(monkeypatch, replace(bucket, secret_key="s3cret-of-mine"), bucket.endpoint, tmp_path / "home")
    place = parse_location(bucket.url) / "exports"
    served = ServedRows(make_view(), 2, 20)
    target = make_target(place, served, Clock())
    with pytest.raises(StoreRefused) as refused:
        target.take_over()
    assert "s3cret" not in f"{refused.value} {refused.value.hint}"
    set_store(monkeypatch, bucket, bucket.endpoint, tmp_path / "home")
    assert target.take_over() is None
    target.write(served.whole(), served.position)
    assert len(read_rows(place, list(IDENTITY))) == 20


AGAIN_POINTS = ("sink_begun", "sink_half", "sink_rows", "sink_written", "sink_sent")
"""Before and after a folder, after all files of a commit, after its manifest; after the warehouse was told."""


@pytest.mark.seeds(2)
def test_a_writer_killed_while_a_range_is_sent_again(tmp_path: Path, seed: int) -> None:
    """Damaged folders are as they were until a manifest has them whole; who goes on mends what is left."""
    place = FilesPlace(tmp_path / "out")
    shown, dice = ShownShop(tmp_path, [place], seed), random.Random(seed)
    with forking() as made:

        def seamline(*words: str, fail: str = "") -> tuple[int, str]:
            return made.run({**os.environ, **shown.env, "SEAMLINE_FAIL": fail}, ["sinks", *words])

        for point in dice.sample(AGAIN_POINTS, len(AGAIN_POINTS)):
            shown.move_on()
            assert seamline("run", "shop", "--once")[0] == 0
            for text in dice.sample(files := list_current_files(str(place.folder)), -(-len(files) // 2)):
                data = Path(text).read_bytes()
                Path(text).write_bytes(data[: len(data) // 2])
            assert seamline("audit", "shop", "out")[0] == AuditFailed.exit_code
            assert seamline("resend", "shop", "out", "--from", "2013-01-01T00:00Z")[0] == 0
            before = list_current_files(str(place.folder))
            code, said = seamline("run", "shop", "--once", fail=f"{point}:1")
            assert code == -signal.SIGKILL, said
            moved = list_current_files(str(place.folder)) != before
            assert moved == (point in ("sink_written", "sink_sent")), point
            assert seamline("run", "shop", "--once")[0] == 0
            assert place.read() == shown.newest
            code, said = seamline("audit", "shop", "out")
            assert code == 0, said
