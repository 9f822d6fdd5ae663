"""Which files of a sink become one, and that this comes to an end."""

from __future__ import annotations

import pytest

from seamline.model.protocol.sinks.file_manifests import DataFile
from seamline.plan.maintain.merged_files import FEW, MOST_BYTES, QUIET, plan_merge

SIZE = 64 << 20
SMALL = 10_000


def make_files(
    count: int, size: int = SMALL, *, at: float = 0.0, bucket: str = "b", deleted: int = 0
) -> list[DataFile]:
    """Make files of one bucket."""
    return [DataFile(f"{bucket}/{size}-{each}", 1, deleted, size, at) for each in range(count)]


def test_few_files_of_a_folder_that_is_written_stay() -> None:
    """What is written again with each new file would cost more than it saves."""
    assert plan_merge(make_files(FEW - 1), 1.0, SIZE) is None
    merge = plan_merge(make_files(FEW), 1.0, SIZE)
    assert merge and len(merge.files) == FEW and merge.whole and merge.bucket == "b"


def test_files_of_other_sizes_stay_and_so_do_rows_that_are_gone() -> None:
    """A file that stays may have an older row of the same place."""
    merge = plan_merge([*make_files(FEW), *make_files(2, 20 << 20)], 1.0, SIZE)
    assert merge and len(merge.files) == FEW and not merge.whole


@pytest.mark.parametrize(
    ("files", "merged"),
    [
        (make_files(1), 0),
        (make_files(2), 2),
        (make_files(1, deleted=1), 1),
        (make_files(2, SIZE), 0),
        ([*make_files(2, SIZE), *make_files(3)], 5),
        ([*make_files(17, SIZE), *make_files(3)], 3),
        (make_files(17, SIZE, deleted=1), 0),
    ],
)
def test_a_folder_that_is_no_longer_written_becomes_as_few_as_may_be(
    files: list[DataFile], merged: int
) -> None:
    """And what is as it should be is not written again."""
    merge = plan_merge(files, QUIET, SIZE)
    assert (len(merge.files) if merge else 0) == merged
    assert merge is None or sum(each.bytes for each in merge.files) <= MOST_BYTES


def test_history_keeps_rows_that_are_gone() -> None:
    """They would be a reason to write the folder again for ever."""
    assert plan_merge(make_files(1, deleted=1), QUIET, SIZE, history=True) is None
    assert plan_merge(make_files(2, deleted=1), QUIET, SIZE, history=True)


def test_a_row_is_written_again_few_times() -> None:
    """A thousand small files, merged as they come, are written a few times each, and few are left."""
    files: list[DataFile] = []
    written = 0
    for number in range(1000):
        files.append(DataFile(f"b/{number}", 1, 0, SMALL, float(number)))
        while merge := plan_merge(files, float(number), SIZE):
            size = sum(each.bytes for each in merge.files)
            files = [each for each in files if each not in merge.files]
            files.append(DataFile(f"b/{number}-{size}", 1, 0, size, float(number)))
            written += size
    assert len(files) < 4 * FEW
    assert written <= 4 * 1000 * SMALL
