"""What an epoch commits to a bucket goes side by side as far as rule 1 lets it, and no further."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.shop import DEFINITION, sales_pipeline

from seamline.kernel.kernel_result import KernelResult
from seamline.lake.storage.arrow_types import QUARANTINE, partial_schema
from seamline.lake.storage.data_files import write_data_file
from seamline.lake.storage.layout import Layout
from seamline.lake.store.bucket import Bucket
from seamline.lake.store.locations import Location
from seamline.model.protocol.epoch import Epoch
from seamline.spark.stream.commit_threads import CommitThreads
from seamline.spark.stream.epoch_writer import Writer

pytestmark = pytest.mark.slow
ENTRY = re.compile(r"/(\w+)/_delta_log/\d+\.json$")
TWO_VIEWS = DEFINITION.replace(
    "views=[", 'views=[View("twin", keys=["customer"], window=Tumbling("2 hours"), measures={"n": count()}),'
)


@pytest.fixture
def writer(lake: Location) -> Writer:
    """A writer of two views."""
    return Writer(Layout(lake, "shop"), sales_pipeline(text=TWO_VIEWS), 1)


def commit_epoch(writer: Writer) -> Epoch:
    """Commit an epoch with states of each view, and a record that was refused."""
    number = writer.take_number()
    states = {
        view.id: [
            pa.table(
                [pa.array([default_of(field.type)], field.type) for field in partial_schema(view)],
                schema=partial_schema(view),
            )
        ]
        for view in writer.pipeline.views
    }
    refused = pa.table([pa.array([default_of(field.type)], field.type) for field in QUARANTINE], QUARANTINE)
    result = KernelResult(
        quarantine=[write_data_file(refused, writer.quarantine.root, f"{number}.parquet")], states=states
    )
    epoch = Epoch(number, 1, datetime.now(UTC), writer.pipeline.record_version)
    committed = writer.commit(epoch, result, writer.current)
    # Its row in the ledger may still be on its way.
    writer.rows.whole()
    return committed


def default_of(type: pa.DataType) -> object:
    """Return a value of a type."""
    return pa.scalar(1, pa.int64()).cast(type) if pa.types.is_integer(type) else None


def watch_entries(monkeypatch: pytest.MonkeyPatch, look: Callable[[str], object]) -> list[str]:
    """List the tables that are committed to, in order; ``look`` is told of each before, and of other files nothing."""
    made: list[str] = []
    create = Bucket.create

    def create_and_note(self: Bucket, key: str, data: bytes) -> bool:
        found = ENTRY.search(key)
        assert found
        look(found[1])
        done = create(self, key, data)
        made.append(found[1])
        return done

    monkeypatch.setattr(Bucket, "create", create_and_note)
    return made


def test_what_may_be_side_by_side_is(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices and quarantine wait for each other here, and would for ever in a row; the master is after all of them."""
    commit_epoch(writer)
    together = threading.Barrier(3, timeout=30)
    made = watch_entries(
        monkeypatch, lambda table: together.wait() if table in ("slices", "quarantine") else None
    )
    commit_epoch(writer)
    assert sorted(made[:3]) == ["quarantine", "slices", "slices"] and made[3:] == ["master", "ledger"]


def test_the_row_of_an_epoch_that_fails_is_in_no_ledger(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's file is written beside the master's commit: it must not be committed where that is not."""
    commit_epoch(writer)
    before = writer.ledger.last

    def refuse(table: str) -> None:
        if table == "master":
            raise ValueError("no master today")

    with monkeypatch.context() as patched:
        watch_entries(patched, refuse)
        with pytest.raises(ValueError, match="no master today"):
            commit_epoch(writer)
    assert writer.ledger.last == before and not writer.sure
    writer.repair_ledger()
    assert commit_epoch(writer).number == writer.ledger.last


def test_nothing_of_a_failed_epoch_is_under_way(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices that fail leave the view behind; a quarantine that fails is known to have failed before the master."""
    commit_epoch(writer)

    def refuse(table: str) -> None:
        if table == "quarantine":
            raise ValueError("no quarantine today")

    with monkeypatch.context() as patched:
        made = watch_entries(patched, refuse)
        with pytest.raises(ValueError, match="no quarantine today"):
            commit_epoch(writer)
        assert made == ["slices", "slices"]


def test_on_disk_everything_is_in_a_row(tmp_path: Path) -> None:
    """The quarantine follows the slices there, and the ledger's file the master's commit: threads gain nothing."""
    threads, done = CommitThreads(tmp_path), list[int]()
    finish = threads.begin(done.append, 1)
    threads.settle()
    assert not done and not threads.begun
    finish()
    assert done == [1]
