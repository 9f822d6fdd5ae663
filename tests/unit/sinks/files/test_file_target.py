"""Files as a target, on disk and in a bucket: what they say is what the view showed at the position."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.sinks.served_rows import MEASURES, ServedRows, make_view
from tests.unit.sinks.files.file_rows import (
    Clock,
    expect_rows,
    list_texts,
    make_target,
    read_by_query,
    read_changes,
    read_rows,
    spell,
    spell_all,
)

from seamline.lake.store.locations import Location
from seamline.model.errors import Fenced, SetupError
from seamline.plan.maintain import merged_files
from seamline.sinks.files import file_upkeep, merging
from seamline.sinks.files import target as file_target
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.target import FileTarget
from seamline.sinks.row_shape import RowShape
from seamline.sinks.target import ChangeBatch

pytestmark = pytest.mark.everywhere
FORMATS = ("parquet", "json")


def identity_of(served: ServedRows) -> list[str]:
    """Return the columns that tell rows apart."""
    return list(RowShape.of(served.view).identity)


def require_rows(place: Location, served: ServedRows, form: str) -> None:
    """Require that files have the rows that are served, and no others."""
    names = identity_of(served)
    wanted = expect_rows(served, names, as_json=form == "json")
    assert spell_all(read_rows(place, names)) == spell_all(wanted)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sets", [(), [["shop"], ["shop", "day", "till"]]], ids=["plain", "grouped"])
def test_files_have_what_the_view_shows(warehouse: Location, form: str, sets: list[list[str]]) -> None:
    """Ugly texts, NULL keys, NaN and long decimals come back as they were, version after version, merged or not."""
    served, clock = ServedRows(make_view(grouping_sets=sets), 1, 60 if sets else 150), Clock()
    more: dict[str, Any] = {"format": form, "buckets": ["1 day", "shop"] if sets else ["1 day"]}
    with closing(make_target(warehouse, served, clock, **more)) as target:
        assert target.take_over() is None
        target.write(served.whole(100), served.position)
        require_rows(warehouse, served, form)
        for _ in range(1 if sets else 8):
            target.write([served.change(20, 10, 10)], served.position)
            require_rows(warehouse, served, form)
        target.tidy(lambda: False)
        require_rows(warehouse, served, form)
        clock.now += 7200
        target.tidy(lambda: False)
        require_rows(warehouse, served, form)
        assert len(list_texts(warehouse)) == len({Path(each).parent for each in list_texts(warehouse)})
        assert not any(row["_deleted"] for row in read_changes(warehouse))
        assert target.take_over() == served.position


@pytest.mark.on_disk
def test_the_query_of_the_documentation_reads_them(tmp_path: Path) -> None:
    """Whoever has DuckDB needs nothing of ours."""
    served, clock = ServedRows(make_view(), 2, 60), Clock()
    with closing(make_target(tmp_path, served, clock)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        for _ in range(9):
            target.write([served.change(10, 5, 5)], served.position)
        target.tidy(lambda: False)
        target.write([served.change(10, 5, 5)], served.position)
    names = identity_of(served)
    found = {spell([row[name] for name in names]): row for row in read_by_query(tmp_path, names)}
    assert spell_all(found) == spell_all(expect_rows(served, names))


@pytest.mark.on_disk
@pytest.mark.parametrize("form", FORMATS)
def test_a_merge_of_some_files_keeps_rows_that_are_gone(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A larger file that is left alone has their older values, which would come back."""
    monkeypatch.setattr(merged_files, "SMALL", 16 << 10)
    served, clock = ServedRows(make_view(), 10, 1500), Clock()
    with closing(make_target(tmp_path, served, clock, format=form, buckets=[])) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        for _ in range(8):
            target.write([served.change(2, 5, 1)], served.position)
        target.tidy(lambda: False)
        assert len(list_texts(tmp_path)) == 2
        require_rows(tmp_path, served, form)
        clock.now += 7200
        target.tidy(lambda: False)
        assert len(list_texts(tmp_path)) == 1
        require_rows(tmp_path, served, form)


@pytest.mark.on_disk
@pytest.mark.parametrize("form", FORMATS)
def test_files_of_another_version_of_the_view_are_merged_too(tmp_path: Path, form: str) -> None:
    """A flip may take columns away, or put others in their place, while keys are the same."""
    served, clock = ServedRows(make_view(), 12, 40), Clock()
    with closing(make_target(tmp_path, served, clock, format=form)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
    fewer = {name: MEASURES[name] for name in ("total", "levels", "tills")}
    flipped = ServedRows(make_view(measures=fewer), 12, 40)
    flipped.version = 5
    with closing(make_target(tmp_path, flipped, clock, format=form)) as target:
        target.take_over()
        target.write([*flipped.whole(), *gone_since(served, flipped)], flipped.position)
        clock.now += 7200
        target.tidy(lambda: False)
    found = read_rows(tmp_path, identity_of(flipped))
    wanted = expect_rows(flipped, identity_of(flipped), as_json=form == "json")
    kept = {key: {name: row[name] for name in wanted[key]} for key, row in found.items()}
    assert spell_all(kept) == spell_all(wanted)


def gone_since(before: ServedRows, after: ServedRows) -> list[ChangeBatch]:
    """Return the rows that the later version does not have."""
    gone = [row for place, row in before.rows.items() if place not in after.rows]
    return [ChangeBatch(after.as_table([]), before.as_deletions(gone), None)]


@pytest.mark.on_disk
def test_merged_files_are_of_the_size_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several where one would be too large, in the order of their rows."""
    monkeypatch.setattr(merging, "BATCH", 200)
    monkeypatch.setattr(file_target, "MEGABYTE", 100_000)
    served, clock = ServedRows(make_view(), 11, 2000), Clock()
    with closing(make_target(tmp_path, served, clock, format="json", buckets=[], roll_megabytes=2)) as made:
        made.take_over()
        made.write(served.whole(), served.position)
        made.write([served.change(5, 5)], served.position)
        clock.now += 7200
        made.tidy(lambda: False)
        require_rows(tmp_path, served, "json")
        sizes = [Path(each).stat().st_size for each in list_texts(tmp_path)]
        assert len(sizes) > 2
        assert all(200_000 <= each <= 400_000 for each in sizes[:-1])
        clock.now += 7200
        made.tidy(lambda: False)
        assert [Path(each).stat().st_size for each in list_texts(tmp_path)] == sizes, "it comes to an end"


def test_an_earlier_writer_is_refused(warehouse: Location) -> None:
    """Two processes that both believe that the sink is theirs must not write in turns."""
    served, clock = ServedRows(make_view(), 3, 30), Clock()
    first, second = (make_target(warehouse, served, clock) for _ in range(2))
    first.take_over()
    first.write(served.whole(), served.position)
    before, position = expect_rows(served, identity_of(served)), served.position
    assert second.take_over() == position
    for refused in (lambda: first.write([served.change(5, 5)], served.position), first.clear):
        with pytest.raises(Fenced, match="Another process writes"):
            refused()
    assert spell_all(read_rows(warehouse, identity_of(served))) == spell_all(before)
    assert second.take_over() == position


def test_a_writer_that_has_slept_for_long_is_refused(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number that it creates is free again, since upkeep has deleted the manifest that had it."""
    monkeypatch.setattr(file_upkeep, "GRACE", -1.0)
    monkeypatch.setattr(file_upkeep, "LONGEST_CHAIN", 2)
    served, clock = ServedRows(make_view(), 4, 30), Clock()
    first, second = (make_target(warehouse, served, clock) for _ in range(2))
    first.take_over()
    assert second.take_over() is None
    second.write(served.whole(), served.position)
    for _ in range(3):
        second.write([served.change(5, 0)], served.position)
        clock.now += 60
        second.tidy(lambda: False)
    manifests = ManifestLog(warehouse / "out", "")
    assert manifests.list_numbers()[0] > 1
    with pytest.raises(Fenced, match="has slept since manifest 0"):
        first.write([served.change(5, 5)], served.position)
    assert second.take_over() is not None


def test_rows_are_cleared_and_written_anew(warehouse: Location) -> None:
    """What was there does not count from one manifest on."""
    served, clock = ServedRows(make_view(), 5, 30), Clock()
    with closing(make_target(warehouse, served, clock)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        target.clear()
        assert read_changes(warehouse) == []
        assert target.take_over() is None
        target.write(served.whole(), served.position)
        require_rows(warehouse, served, "parquet")


def test_files_of_killed_writers_and_of_merges_are_deleted(
    warehouse: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what no manifest names any more, and nothing that is somebody else's."""
    monkeypatch.setattr(file_upkeep, "GRACE", -1.0)
    served, clock = ServedRows(make_view(), 6, 30), Clock()
    out = warehouse / "out"
    with closing(make_target(warehouse, served, clock)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        (out / "in_window=2026-11-30").mkdir(parents=True, exist_ok=True)
        orphan, strange = (
            out / "in_window=2026-11-30" / name
            for name in ("0000000000-00000000-000001.parquet", "notes.parquet")
        )
        orphan.write_bytes(b"half")
        strange.write_bytes(b"theirs")
        target.tidy(lambda: False)
        assert orphan.exists(), "its writer may be this one"
    with closing(make_target(warehouse, served, clock)) as target:
        target.take_over()
        target.tidy(lambda: False)
        assert strange.exists() and not orphan.exists()
        require_rows(warehouse, served, "parquet")
        target.clear()
        target.write(served.whole(), served.position)
        clock.now += 7200
        target.tidy(lambda: False)
        require_rows(warehouse, served, "parquet")


@pytest.mark.parametrize("harm", ["newest deleted", "one deleted", "changed", "all deleted", "no JSON"])
def test_manifests_that_somebody_has_touched_are_refused(warehouse: Location, harm: str) -> None:
    """A position that has gone back would send again; the way out is named, and works."""
    served, clock = ServedRows(make_view(), 7, 30), Clock()
    folder = warehouse / "out" / "_manifests"
    with closing(make_target(warehouse, served, clock)) as target:
        target.take_over()
        target.write(served.whole(), served.position)
        target.write([served.change(5, 0)], served.position)
    numbers = ManifestLog(warehouse / "out", "").list_numbers()
    chosen = {"newest deleted": numbers[-1:], "no JSON": numbers[-1:], "all deleted": numbers}.get(harm, [1])
    for each in (folder / f"{number:020d}.json" for number in chosen):
        if "deleted" in harm:
            each.unlink()
        else:
            each.write_bytes(each.read_bytes().replace(b"rows", b"rowz") if harm == "changed" else b"{")
    target = make_target(warehouse, served, clock)
    with pytest.raises(SetupError, match="anifest") as refused:
        take_over_and_tidy(target)
    assert "sinks resend" in refused.value.hint
    target.close()
    target.clear()
    assert target.take_over() is None
    target.write(served.whole(), served.position)
    require_rows(warehouse, served, "parquet")
    clock.now += 60
    target.tidy(lambda: False)


def take_over_and_tidy(target: FileTarget) -> None:
    """Take over, and read all manifests that count."""
    target.take_over()
    target.tidy(lambda: False)


def test_what_is_somebody_elses_is_refused(warehouse: Location) -> None:
    """Neither files of others nor those of another sink are taken over, and resending deletes none of them."""
    served, clock = ServedRows(make_view(), 8, 10), Clock()
    theirs = warehouse / "out" / "report.parquet"
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_bytes(b"theirs")
    target = make_target(warehouse, served, clock)
    with pytest.raises(SetupError, match=r"report\.parquet"):
        target.take_over()
    target.clear()
    target.tidy(lambda: False)
    assert theirs.read_bytes() == b"theirs"
    other = make_target(warehouse, served, clock, name="other")
    for refused in (other.take_over, other.clear):
        with pytest.raises(SetupError, match=r"files of sink shop\.by_till_files, and not of shop\.other"):
            refused()


def test_manifests_do_not_grow_with_history(warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of manifests is a bounded number, however often there was a commit."""
    monkeypatch.setattr(file_upkeep, "GRACE", -1.0)
    monkeypatch.setattr(file_upkeep, "LONGEST_CHAIN", 4)
    served, clock = ServedRows(make_view(), 9, 10), Clock()
    with closing(make_target(warehouse, served, clock)) as target:
        target.take_over()
        for _ in range(15):
            target.write([served.change(1, 0)], served.position)
            clock.now += 60
            target.tidy(lambda: False)
        assert len(ManifestLog(warehouse / "out", "").list_numbers()) <= 8
        assert len(list_texts(warehouse)) < 15
