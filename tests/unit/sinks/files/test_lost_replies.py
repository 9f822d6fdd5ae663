"""Manifests whose creation nobody has confirmed: what is there says whether they count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.unit.sinks.files.file_rows import Clock, expect_rows, make_target, read_rows, spell_all

from seamline.lake.store import created_files
from seamline.lake.store.locations import Location
from seamline.model.errors import Fenced, SetupError, StoreUnavailable
from seamline.sinks.files import manifest_log
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.row_shape import RowShape

pytestmark = pytest.mark.everywhere


@pytest.fixture
def fates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What becomes of the next creations: "lost" is done without a reply, "away" is not done."""
    given: list[str] = []

    @contextmanager
    def draft_file(folder: Location, data: bytes, **more: Any) -> Iterator[Callable[[str], bool]]:
        with created_files.draft_file(folder, data, **more) as put:

            def fail(name: str) -> bool:
                fate = given.pop(0) if given else ""
                done = put(name) if fate != "away" else False
                if fate:
                    raise StoreUnavailable("nobody says what became of it")
                return done

            yield fail

    monkeypatch.setattr(manifest_log, "draft_file", draft_file)
    return given


@pytest.mark.parametrize("fate", [["lost"], ["away"], ["away", "lost"], ["lost", "away"]], ids=str)
def test_a_lost_reply_is_settled_by_what_is_there(
    warehouse: Location, fates: list[str], fate: list[str]
) -> None:
    """Neither is a change written twice, nor is one taken for written that is not."""
    served = ServedRows(make_view(), 1, 20)
    names = RowShape.of(served.view).identity
    target = make_target(warehouse, served, Clock())
    fates += fate
    assert target.take_over() is None
    fates += fate
    target.write(served.whole(), served.position)
    assert spell_all(read_rows(warehouse, list(names))) == spell_all(expect_rows(served, list(names)))
    assert ManifestLog(warehouse / "out", "").list_numbers() == [0, 1]


def test_a_store_that_stays_away_is_an_error_that_passes(warehouse: Location, fates: list[str]) -> None:
    """Whoever takes over sees whether it was written."""
    served = ServedRows(make_view(), 2, 20)
    target = make_target(warehouse, served, Clock())
    target.take_over()
    fates += ["away"] * manifest_log.ATTEMPTS
    with pytest.raises(StoreUnavailable):
        target.write(served.whole(), served.position)
    assert target.take_over() is None
    fates[:] = ["lost"] * manifest_log.ATTEMPTS
    with pytest.raises(StoreUnavailable):
        target.write(served.whole(), served.position)
    fates.clear()
    assert target.take_over() == served.position


def test_a_number_that_another_has_taken_is_no_commit(warehouse: Location, fates: list[str]) -> None:
    """The one who hears nothing may have been passed meanwhile."""
    served = ServedRows(make_view(), 3, 20)
    first, second = (make_target(warehouse, served, Clock()) for _ in range(2))
    first.take_over()
    second.take_over()
    fates += ["away"]
    with pytest.raises(Fenced, match="manifest 1 is of 1-"):
        first.write(served.whole(), served.position)


@pytest.mark.on_disk
def test_a_place_that_must_not_be_written_says_so(tmp_path: Path) -> None:
    """A file where the folder should be is found out at once, and no traceback is all that people see."""
    served = ServedRows(make_view(), 4, 5)
    (tmp_path / "out").write_bytes(b"a file")
    with pytest.raises(SetupError, match=r"/out.*: Not a directory"):
        make_target(tmp_path, served, Clock()).take_over()
