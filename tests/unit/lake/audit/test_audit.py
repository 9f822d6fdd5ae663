"""Audits of a log whose faults are known: each is found, named and counted, and what is no fault is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.past import build
from tests.unit.shop import DAY, START, Sale, Shop, sales_pipeline

from seamline.lake.audit.recounted import recount_states
from seamline.lake.audit.volumes import check_published_generations
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import PRUNES
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.data_files import describe_data_file
from seamline.lake.storage.fenced_commits import build_commit_properties
from seamline.lake.store.locations import Location, copy_unchanging_file, delete_folder
from seamline.lake.tables.committed_log import CommittedLog
from seamline.model.protocol.audit import (
    LaneEvidence,
    Wrong,
    audit_lane,
    by_interval,
    list_miscounted_epochs,
    ranges_of,
)
from seamline.model.protocol.offsets import Lane
from seamline.model.time.intervals import Interval

LANE = Lane("t", 0)
FIRST = "2013-01-01T00:00:00Z"


def evidence(**known: object) -> LaneEvidence:
    """A lane of which Kafka has offsets 10 to 99, all of them read and held."""
    whole = LaneEvidence(LANE, kept=(10, 100), read=[(0, 100)], passed=[], held=[(0, 100)])
    return replace(whole, **known)  # type: ignore[arg-type]


def test_a_lane_that_is_all_there_has_nothing_wrong() -> None:
    """An audit that cries wolf is switched off."""
    lane, found = audit_lane(evidence())
    assert found == []
    assert (lane.records, lane.blank, lane.untold, lane.waiting) == (100, 0, 0, 0)


def test_a_record_that_kafka_still_has_is_lost_and_named() -> None:
    """One in a million has to be found, with its offset."""
    one = evidence(held=[(0, 42), (43, 100)])
    assert one.askable == [(42, 43)]
    lane, [finding] = audit_lane(replace(one, there=[(40, 45)]))
    assert (finding.wrong, finding.count) == (Wrong.LOST, 1)
    assert finding.said.endswith("not in the log: 42")
    assert (lane.records, lane.blank) == (99, 0)


def test_an_offset_without_a_record_is_none_that_was_lost() -> None:
    """Markers of transactions, aborted records and compacted ones are offsets, too."""
    lane, found = audit_lane(evidence(held=[(0, 42), (43, 50), (60, 100)], there=[(41, 42), (43, 45)]))
    assert found == [] and lane.blank == 11


def test_what_kafka_no_longer_has_is_not_called_lost() -> None:
    """Nobody can tell a marker from a record any more; it is counted apart."""
    lane, found = audit_lane(evidence(held=[(0, 5), (6, 100)]))
    assert found == [] and (lane.untold, lane.blank) == (1, 0)
    gone, _ = audit_lane(evidence(kept=None, held=[(0, 90)]))
    assert (gone.untold, gone.end, gone.waiting) == (10, None, 0)


def test_what_waits_and_what_was_passed_over_is_no_loss() -> None:
    """New partitions, lag and registered holes are known by other names."""
    new, found = audit_lane(evidence(read=[], held=[]))
    assert found == [] and new.waiting == 90
    holed, found = audit_lane(evidence(read=[(0, 20), (30, 80)], held=[(0, 20), (30, 80)], passed=[(20, 30)]))
    assert found == [] and (holed.holes, holed.waiting, holed.read_to) == (10, 20, 80)


@pytest.mark.parametrize("known", [{}, {"read": [], "held": [], "read_to": 100}], ids=["whole", "a day"])
def test_records_that_kafka_has_lost_after_they_were_read_are_told(known: dict[str, object]) -> None:
    """A leader that lacked them gives their offsets to others: once it is as far as before nobody can tell."""
    lane, [finding] = audit_lane(evidence(kept=(10, 93), **known))
    assert (finding.wrong, finding.count, lane.waiting) == (Wrong.TRUNCATED, 7, 0)
    assert finding.said == "the log was read to 100, and Kafka ends at 93: it has lost what was read"
    assert audit_lane(evidence(kept=(100, 100)))[1] == []


def test_records_that_are_there_twice_or_were_never_read_are_named() -> None:
    """Either is a number that is too high somewhere."""
    _, found = audit_lane(evidence(held=[(0, 103)], twice={7: 2, 8: 3}))
    assert [(each.wrong, each.count) for each in found] == [(Wrong.DUPLICATE, 3), (Wrong.UNSTATED, 3)]
    assert "7..8" in found[0].said and found[1].said.endswith("100..102")


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """Three epochs over two days."""
    made = Shop(warehouse)
    made.epoch([Sale(1), Sale(2)])
    made.epoch([Sale(3), Sale(1500)])
    made.epoch([])
    return made


def lanes(shop: Shop) -> dict[Lane, tuple[object, object]]:
    """Return what the log holds by lane."""
    return {
        lane: (runs, twice) for lane, runs, twice in CommittedLog.pin(shop.compiled, shop.layout).offsets()
    }


def test_the_log_is_read_as_runs_and_counts(shop: Shop) -> None:
    """Of a sound one all agree."""
    log = CommittedLog.pin(shop.compiled, shop.layout)
    read, passed = ranges_of(log.epochs)
    assert lanes(shop) == {LANE: ([(0, 4)], {})} and (read, passed) == ({LANE: [(0, 4)]}, {})
    assert list_miscounted_epochs(log.epochs, log.rows()) == []
    assert {id: (day.accepted, day.rows) for id, day in by_interval(log.epochs, log.rows()).items()} == {
        FIRST: (3, 3),
        "2013-01-02T00:00:00Z": (1, 1),
    }


def test_a_file_that_is_there_twice_shows_in_offsets_and_counts(shop: Shop) -> None:
    """The same rows under another name: what a careless restore does."""
    root = shop.master.table.root
    copy_unchanging_file(root / "000000.parquet", root / "again.parquet")
    shop.master.table.append([describe_data_file(root, "again.parquet", stats=PRUNES)])
    assert lanes(shop) == {LANE: ([(0, 4)], {0: 2, 1: 2})}
    log = CommittedLog.pin(shop.compiled, shop.layout)
    [finding] = list_miscounted_epochs(log.epochs, log.rows())
    assert (finding.wrong, finding.place, finding.count) == (Wrong.MISCOUNTED, "epoch 0", 2)
    assert finding.said == f"4 rows of interval {FIRST}, the ledger says 2"


def test_a_file_that_is_gone_shows_as_absent_offsets(shop: Shop) -> None:
    """What Kafka would be asked about."""
    shop.master.table.handle.delete(
        "_epoch = 1 AND _offset = 2", commit_properties=build_commit_properties({})
    )
    shop.master.table.refresh()
    log = CommittedLog.pin(shop.compiled, shop.layout)
    [(lane, runs, twice)] = log.offsets()
    assert (lane, runs, twice) == (LANE, [(0, 2), (3, 4)], {})
    [finding] = list_miscounted_epochs(log.epochs, log.rows())
    assert finding.said == f"0 rows of interval {FIRST}, the ledger says 1"


def test_what_no_master_holds_is_no_part_of_the_log(shop: Shop) -> None:
    """Files of a dead epoch lie beside the others until upkeep comes."""
    dead = shop.records([Sale(5)], 99)
    shop.master.table.append([dead])
    assert lanes(shop) == {LANE: ([(0, 4)], {})}
    assert Ledger.ensure(shop.layout).read()[-1].number == 2


def recount(shop: Shop) -> list[str]:
    """Make the slices' states again; give what is wrong."""
    found = recount_states(
        shop.compiled, shop.view, shop.layout, CommittedLog.pin(shop.compiled, shop.layout)
    )
    return [each.said for each in found.findings]


@pytest.mark.everywhere
def test_slices_are_what_their_records_make(shop: Shop) -> None:
    """Compacted or not, above a floor or below it."""
    log = CommittedLog.pin(shop.compiled, shop.layout)
    assert recount_states(shop.compiled, shop.view, shop.layout, log).states == 3
    assert recount(shop) == []
    interval = shop.build(0, 1, "g")
    maintain_tables(shop.compiled, shop.layout)
    assert recount(shop) == []
    assert check_published_generations(shop.compiled, shop.view, shop.layout) == (1, [])
    assert interval.id == FIRST


def test_a_state_that_was_changed_is_found(shop: Shop) -> None:
    """As many records, another total: no count tells it."""
    shop.slices.table.handle.delete("from_epoch = 1", commit_properties=build_commit_properties({}))
    shop.slices.table.refresh()
    changed = shop.partials([Sale(3, amount=6), Sale(1500)])
    shop.slices.append(changed, from_epoch=1, to_epoch=1)
    [said] = recount(shop)
    assert said == (
        "1 states of epochs 1 are not what their records make (0 missing, 0 without records); "
        "customer=a, pane=2013-01-01T00:00:00Z has 1 records of 1, and other total__sum, largest__value"
    )


def test_slices_that_are_gone_or_of_nothing_are_found(shop: Shop) -> None:
    """A reader would count too little, or too much."""
    shop.slices.table.handle.delete("from_epoch = 0", commit_properties=build_commit_properties({}))
    shop.slices.table.refresh()
    shop.slices.append(shop.partials([Sale(7, "b")]), from_epoch=2, to_epoch=2)
    [said] = recount(shop)
    assert said.startswith(
        "2 states of epochs 0, 2 are not what their records make (1 missing, 1 without records)"
    )


def test_slices_whose_table_is_gone_are_found(shop: Shop) -> None:
    """Nothing to compare with is not nothing wrong."""
    delete_folder(shop.layout.slices(shop.view))
    [said] = recount(shop)
    assert said.startswith("3 states of epochs 0..1 are not what their records make (3 missing")


def test_what_upkeep_merged_meanwhile_is_left_for_the_next_time(shop: Shop) -> None:
    """A block that ends beyond what was pinned cannot be divided, and is no fault."""
    log = CommittedLog.pin(shop.compiled, shop.layout)
    shop.epoch([Sale(4)], edge=False)
    shop.epoch([Sale(5)])
    maintain_tables(shop.compiled, shop.layout)
    assert recount_states(shop.compiled, shop.view, shop.layout, log).findings == ()
    held = CommittedLog.pin(shop.compiled, shop.layout).epochs[:4]
    pinned = replace(log, log=held, epochs=held, frontiers={shop.view.id: 3})
    found = recount_states(shop.compiled, shop.view, shop.layout, pinned)
    assert (found.until, found.findings) == (2, ())


def test_a_view_that_is_not_born_yet_is_not_behind(shop: Shop) -> None:
    """A definition was edited, and its stream has not been started since."""
    later = sales_pipeline("2 hours")
    assert later.views[0].id != shop.view.id
    assert (
        recount_states(later, later.views[0], shop.layout, CommittedLog.pin(later, shop.layout)).findings
        == ()
    )


def test_a_view_that_is_behind_is_named(shop: Shop) -> None:
    """Nothing is wrong with what it has."""
    shop.epoch([Sale(9)], frontier=2)
    assert recount(shop) == ["complete to epoch 2, the log is at 3: 1 records are not counted yet"]


def test_a_generation_that_lost_rows_is_found(shop: Shop) -> None:
    """The manifest and the build have written down what was in it."""
    build(shop, "g", cut=1)
    shop.generations.refresh()
    shop.generations.handle.delete("generation = 'g'", commit_properties=build_commit_properties({}))
    said = [each.said for each in check_published_generations(shop.compiled, shop.view, shop.layout)[1]]
    assert said == [
        "generation g has 0 rows, the manifest says 1",
        "generation g counts 0 records, its build wrote 3",
    ]


def test_an_audit_of_a_day_looks_at_what_brought_its_rows(warehouse: Location) -> None:
    """It finds what the whole one finds of that day, and nothing of another."""
    shop = Shop(warehouse)
    for _ in range(3):
        shop.epoch([Sale(1), Sale(2000)])
    shop.epoch([Sale(2000)])
    first, second = (Interval(START + day * DAY, START + (day + 1) * DAY) for day in (0, 1))
    log = CommittedLog.pin(shop.compiled, shop.layout, first)
    assert [each.number for each in log.epochs] == [0, 1, 2]
    assert log.epoch == 3
    assert list_miscounted_epochs(log.epochs, log.rows()) == []
    assert by_interval(log.epochs, log.rows())[first.id].rows == 3
    assert len(by_interval(log.epochs, log.rows())) == 1
    found = recount_states(shop.compiled, shop.view, shop.layout, log)
    assert (found.states, found.findings) == (3, ())
    shop.slices.append(shop.partials([Sale(2000), Sale(2001)]), from_epoch=3, to_epoch=3)
    assert recount_states(shop.compiled, shop.view, shop.layout, log).findings == ()
    [wrong] = recount_states(
        shop.compiled, shop.view, shop.layout, CommittedLog.pin(shop.compiled, shop.layout, second)
    ).findings
    assert wrong.count == 1
    [lane] = log.offsets()
    assert lane[1:] == ([(0, 6)], {})
