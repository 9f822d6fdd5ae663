"""The index of event ids: what it knows after any epochs, committed or not, and what it must not believe."""

from __future__ import annotations

import json
import resource
import signal
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from seamline.kernel import id_index, id_runs
from seamline.kernel.id_index import NEW, IdIndex
from seamline.kernel.id_runs import HASHES, RunFiles, find_known, merge_runs, sort_ids

NAME = "an index"
LOADED = "-1"
"""The epoch up to which it is made."""


def ids(*pairs: tuple[int, int], first: int = 0) -> pa.Table:
    """Make records of ids and event times; ids below a hundred share the first half of their hash by tens."""
    rows = [
        {
            "high": id // 10 if id < 100 else id << 40,
            "low": id,
            "at": at,
            "_topic": "t",
            "_topic_id": "T",
            "_partition": 0,
            "_offset": offset,
        }
        for offset, (id, at) in enumerate(pairs, first)
    ]
    return pa.Table.from_pylist(rows, NEW)


def loaded(folder: Path, *pairs: tuple[int, int]) -> IdIndex:
    """Load an index of ids and event times."""
    return IdIndex.load(folder, NAME, LOADED, [ids(*pairs).select(HASHES.names)])


def mark(folder: Path, after: str, epoch: str, found: pa.Table, oldest: int | None = None) -> list[bool]:
    """Open the index as a task does, and ask it for an epoch."""
    index = IdIndex.open(folder, NAME, after)
    assert index
    return index.mark(found, epoch, oldest).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_an_index_knows_what_was_committed_within_the_horizon(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compared with a look at every id that came before; runs are small, so that they are merged all the time."""
    monkeypatch.setattr(id_runs, "MOST", 40)
    monkeypatch.setattr(id_runs, "MERGED_AT_ONCE", 7)
    monkeypatch.setattr(id_index, "GATHERED", 5)
    chance = Random(seed)
    held = [(chance.randrange(60), chance.randrange(50)) for _ in range(chance.randrange(30))]
    loaded(tmp_path, *held)
    after, horizon = LOADED, None
    for number in range(30):
        horizon = max(horizon or 0, number * 2 + chance.randrange(4)) if number > 3 else None
        pairs = [
            (chance.randrange(60), number * 2 + chance.randrange(50)) for _ in range(chance.randrange(12))
        ]
        new, expected = list[tuple[int, int]](), list[bool]()
        for id, at in pairs:
            known = any(id == other and (horizon is None or then >= horizon) for other, then in [*held, *new])
            expected.append(known)
            new += [] if known else [(id, at)]
        assert mark(tmp_path, after, str(number), ids(*pairs), horizon) == expected
        if chance.random() < 0.7:
            after, held = str(number), [*held, *new]


def test_the_first_recent_one_counts_in_an_epoch_too(tmp_path: Path) -> None:
    """Of an id beyond the horizon, twice within it, and once more: two count."""
    loaded(tmp_path)
    found = ids((1, 5), (1, 20), (1, 21), (1, 5))
    assert mark(tmp_path, LOADED, "0", found, 10) == [False, False, True, True]


def test_the_order_is_that_of_partitions_and_offsets_and_not_of_arrival(tmp_path: Path) -> None:
    """Tasks report in any order."""
    loaded(tmp_path)
    found = ids((1, 5), (2, 5), (1, 5))
    assert mark(tmp_path, LOADED, "0", found.take([2, 1, 0])) == [True, False, False]


def test_a_task_that_runs_again_says_the_same(tmp_path: Path) -> None:
    """Its first attempt has left what is pending."""
    loaded(tmp_path, (1, 0))
    said = [mark(tmp_path, LOADED, "0", ids((1, 0), (2, 0))) for _ in range(2)]
    assert said == [[True, False]] * 2
    assert mark(tmp_path, "0", "1", ids((1, 0), (2, 0), (3, 0))) == [True, True, False]


def test_no_file_is_left_that_no_state_names(tmp_path: Path) -> None:
    """Runs that were merged, dropped or beyond the horizon are deleted, and what a worker left that was killed."""
    loaded(tmp_path, *((id, 0) for id in range(100, 120)))
    (tmp_path / "half.low").write_bytes(b"half a run")
    (tmp_path / "half.tmp").write_text("half a state")
    for number in range(9):
        mark(tmp_path, LOADED if number < 5 else str(number - 1), str(number), ids((number, number)), number)
    state = json.loads((tmp_path / "state.json").read_text())
    named = {run["name"] for run in [*state["runs"], state["pending"]]}
    assert {file.name.partition(".")[0] for file in tmp_path.iterdir()} == {"state", *named}


@pytest.mark.parametrize("harm", ["gone", "torn", "another", "elsewhere", "state", "future"])
def test_an_index_that_is_not_whole_is_lost(harm: str, tmp_path: Path) -> None:
    """It is made again from the master; nothing else would be right."""
    loaded(tmp_path, *((id, 0) for id in range(100, 200)))
    mark(tmp_path, LOADED, "4", ids((1, 0)))
    assert IdIndex.open(tmp_path, NAME, LOADED)
    file = max(tmp_path.glob("*.low"), key=lambda each: each.stat().st_size)
    match harm:
        case "gone":
            file.unlink()
        case "torn":
            file.write_bytes(file.read_bytes()[:100])
        case "state":
            (tmp_path / "state.json").write_text('{"index": ')
    where = tmp_path / "moved" if harm == "elsewhere" else tmp_path
    name, after = "another" if harm == "another" else NAME, "5" if harm == "future" else LOADED
    assert IdIndex.open(where, name, after) is None


def test_ids_that_share_half_a_hash_are_different(tmp_path: Path) -> None:
    """In every order, in one run and across runs that are merged."""
    files, chance = RunFiles(tmp_path), Random(1)
    runs = []
    for _ in range(3):
        pairs = [(id, 0) for id in chance.sample(range(0, 100, 2), 20)]
        run = files.write([sort_ids(ids(*pairs).select(HASHES.names))])
        assert run
        runs.append(run)
    asked = ids(*((id, 0) for id in range(100)))
    known = find_known(files, runs, asked, None)
    assert not known[1::2].any() and 20 < known.sum() <= 50
    whole = merge_runs(files, runs, None)
    assert whole
    assert whole.rows == known.sum()
    assert np.array_equal(find_known(files, [whole], asked, None), known)


def test_a_question_writes_nothing(tmp_path: Path) -> None:
    """A trial of an epoch asks while the disk may be full."""
    loaded(tmp_path, (1, 0))
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    index = IdIndex.open(tmp_path, NAME, LOADED)
    assert index
    assert index.find_repeated(ids((1, 0), (2, 0), (2, 0)), None).tolist() == [True, False, True]
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_disk_that_is_full_is_an_error_and_no_crash(tmp_path: Path) -> None:
    """A file that is written through its mapping would end the process with SIGBUS."""
    loaded(tmp_path, (1, 0))
    whole = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, whole[1]))
    try:
        index = IdIndex.open(tmp_path, NAME, LOADED)
        assert index
        with pytest.raises(OSError, match="File too large"):
            index.mark(ids(*((id, 0) for id in range(1_000))), "0", None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, whole)
    assert mark(tmp_path, LOADED, "1", ids((1, 0), (2, 0))) == [True, False]
