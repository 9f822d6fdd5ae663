"""What is left to copy is decided from three listings."""

from __future__ import annotations

from seamline.plan.maintain.transfers import (
    FoundFile,
    Transfer,
    list_pipelines,
    list_tables,
    plan_transfer,
    select_files,
)

LOG = "shop/master/_delta_log"
ENTRY = f"{LOG}/{0:020d}.json"


def found(*files: FoundFile) -> dict[str, FoundFile]:
    return {each.way: each for each in files}


def file(way: str, size: int = 1, mark: int = 1) -> FoundFile:
    return FoundFile(way, size, 0, mark)


def test_what_is_missing_or_shorter_is_copied_and_the_rest_compared() -> None:
    """That a file is there in its size says nothing of its content; that it was verified does, until it changes."""
    source = found(file("new"), file("cut", 5), file("there", 3), file("seen", 3), file("changed", 3, mark=2))
    there = found(file("cut", 2), file("there", 3), file("seen", 3), file("changed", 3), file("gone"))
    done = found(file("seen", 3), file("changed", 3, mark=1), file("new"))
    plan = plan_transfer(source, there, done)
    assert plan == Transfer(
        (file("cut", 5), file("new")), (file("changed", 3, mark=2), file("there", 3)), ("gone",)
    )
    assert plan.size == 12
    assert plan_transfer(source, source, source).is_nothing
    assert plan_transfer(source, {}, source).copied == tuple(source[way] for way in sorted(source))


def test_a_table_begins_once_all_of_it_is_there() -> None:
    """Whoever opens the new place half-way sees no half of a table."""
    checkpoint, mark = f"{LOG}/{1:020d}.checkpoint.parquet", f"{LOG}/_last_checkpoint"
    ways = [ENTRY, mark, checkpoint, f"{LOG}/{2:020d}.json", "shop/master/a.parquet", "shop/x/b"]
    stages = plan_transfer(found(*map(file, ways)), {}, {}).stages()
    assert [[each.way for each in stage] for stage in stages] == [
        ["shop/master/a.parquet", "shop/x/b"],
        [f"{LOG}/{2:020d}.json"],
        [checkpoint],
        [mark],
        [ENTRY],
    ]


def test_drafts_and_marks_are_no_part_of_a_warehouse() -> None:
    """What a killed writer has left is not carried along, and is cleared away where a copy has left it."""
    ways = [
        ENTRY,
        f"{LOG}/_commit_1.json.tmp",
        ".fork-shop/master/_delta_log/0.json",
        "shop/master/.1.copy",
        "_moved_to.json",
        "shop/control/_delta_log/0.json",
    ]
    files = found(*map(file, ways))
    assert [*select_files(files, tables=["control"])] == [ENTRY]
    assert [*select_files(files, drafts=True)] == sorted({*ways} - {"_moved_to.json"}, key=ways.index)
    assert list_pipelines([*ways, "mine/_delta_log/0.json"]) == ["shop"]
    assert list_tables([*ways[:1], "tea/views/v/1/slices/_delta_log/0.json"]) == [
        "shop/master",
        "tea/views/v/1/slices",
    ]
    assert list_tables(ways[:1], below="tea") == []
