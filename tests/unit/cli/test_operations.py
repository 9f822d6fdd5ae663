"""Orders to a stream change its control table, and only that: what is told, refused and kept."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, opened

from seamline.cli import main
from seamline.lake.log.ledger import Ledger
from seamline.lake.log.master import Master
from seamline.lake.maintain.released_records import LET_GO, count_readable_records
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.publish import forking
from seamline.lake.publish.forking import fork_pipeline
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import QUARANTINE
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import move_folder
from seamline.lake.tables.control_table import Control, ControlTable, Desired
from seamline.lake.tables.decided import list_restatements
from seamline.lake.tables.fencing_tokens import newest_token
from seamline.lake.tables.renewing import keep_renewing
from seamline.model.compile.catalog import load_catalog
from seamline.model.errors import BadRange, LeaseHeld, NotFound, OutOfStep
from seamline.model.protocol.holes import AcceptedGap, Gap
from seamline.model.protocol.offsets import Lane, OffsetRange
from seamline.model.protocol.restatement import Restatement
from seamline.model.protocol.savepoint import Savepoint
from seamline.model.time.intervals import Interval
from seamline.plan.stream.start_positions import From, StartPlace
from seamline.runtime.processes import own_process_name
from seamline.serve.read import read
from seamline.supervisor import operations
from seamline.supervisor.operations import Action, Order, Upgrade, carry_out, request_hole_fills
from seamline.supervisor.sources.source_losses import Offsets

LANE = Lane("t", 0)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path, warehouse, monkeypatch) -> Shop:
    """A shop with three epochs, five offsets long."""
    made = opened(tmp_path, monkeypatch, warehouse)
    made.epoch([Sale(1), Sale(2)])
    made.epoch([Sale(3), Sale(1500)], edge=False)
    made.epoch([Sale(4)])
    quarantine = Table.ensure(made.layout.table("quarantine"), QUARANTINE)
    for epoch in (0, 1, 2):
        row = {
            "_topic": "sales",
            "_topic_id": "t",
            "_partition": 1,
            "_offset": epoch,
            "_epoch": epoch,
            "_reason": "odd",
        }
        rows = pa.Table.from_pylist([row], schema=QUARANTINE)
        quarantine.append([data_files.write_data_file(rows, quarantine.root, f"{epoch}.parquet")])
    return made


@pytest.fixture
def kafka(monkeypatch):
    """A broker that has offsets 3 to 20 of the lane."""

    def asked(compiled, place, env):
        chosen = {From.LATEST: 20, From.EARLIEST: 3, From.TIMESTAMP: 9}.get(place.kind)
        wanted = {LANE: chosen} if chosen is not None else {LANE: place.offsets["", 0]}
        return Offsets({LANE: 3}, {LANE: 20}, wanted)

    monkeypatch.setattr(operations, "offsets_now", asked)


def control(shop: Shop) -> Control:
    return ControlTable.ensure(shop.layout).read()


def order(shop: Shop, action: Action, **asked) -> list[str]:
    return carry_out(Order(action, "ada", **asked), shop.compiled, shop.layout)


def test_an_order_sets_what_is_wanted_and_who_wants_it(shop):
    """The supervisor and the DAG read it there."""
    for action, state in [
        (Action.START, Desired.RUNNING), (Action.PAUSE, Desired.PAUSED), (Action.STOP, Desired.STOPPED),
    ]:  # fmt: skip
        [line] = order(shop, action, reason="why not")
        assert str(state) in line
        found = control(shop)
        assert (found.desired, found.actor, found.reason) == (state, "ada", "why not")


def test_a_restart_is_counted_and_a_start_too_where_nobody_lives(shop):
    """One who has given up waits for a new number; one who lives and is only wanted on is left alone."""
    order(shop, Action.RESTART)
    order(shop, Action.START)
    assert control(shop).restarts == 2
    ControlTable.ensure(shop.layout).take("somebody", now=datetime.now(UTC))
    order(shop, Action.START)
    assert control(shop).restarts == 2
    order(shop, Action.RESTART)
    assert control(shop).restarts == 3


@pytest.mark.parametrize(
    ("place", "end"),
    [("latest", 20), ("2026-01-01T00:00Z", 9), ("0:11", 11), ("earliest", None), ("0:5", None)],
)
def test_what_a_start_passes_over_is_decided_and_told(shop, kafka, place, end):
    """The log ends at 5. What the log has is not read again by a word; only by explicit offsets is it refused."""
    told = order(shop, Action.START, place=StartPlace.parse(place), reason="too much")
    gaps = [each.gap for each in control(shop).accepted]
    assert gaps == ([Gap(LANE, 5, end)] if end else [])
    assert (f"{end - 5} offsets are passed over" in told[0]) if end else ("nothing is passed over" in told[0])
    assert control(shop).fills == ()


def test_what_may_be_lost_has_both_bounds(shop, kafka, capsys):
    """The message names the options that are meant."""
    assert (
        main(["stream", "start", "shop", "--from", "latest", "--lost-to", "2026-01-01"]) == BadRange.exit_code
    )
    assert "--lost-from and --lost-to belong together" in capsys.readouterr().err
    assert control(shop).accepted == ()


@pytest.mark.parametrize(("fill", "answers", "said"), [(False, False, 0), (False, True, 1), (True, True, 0)])
def test_answers_that_are_passed_over_are_no_hole_for_long(fill, answers, said):
    """Who reads of a hole thinks of rows that are lost."""
    gap = AcceptedGap(Gap(LANE, 5, 9), "ada", "latest", NOW)
    move = operations.PositionMove((gap,), (), "latest", answers)
    first, *_ = move.describe("shop", fill=fill)
    assert first.count("answers among them are read anyway") == said


def test_another_word_takes_the_place_of_one_that_no_stream_has_met(shop, kafka):
    """Somebody who thinks better of it before the stream was started passes over nothing."""
    order(shop, Action.START, place=StartPlace(From.LATEST), fill=True)
    assert control(shop).fills == (OffsetRange(LANE, 5, 20),)
    order(shop, Action.START, place=StartPlace(From.TIMESTAMP, NOW))
    assert [each.gap for each in control(shop).accepted] == [Gap(LANE, 5, 9)]
    order(shop, Action.START, place=StartPlace(From.EARLIEST))
    assert control(shop).accepted == ()


def test_back_to_what_was_read_is_refused(shop, kafka):
    """Nothing is read twice; and nothing is filled where nothing is passed over."""
    with pytest.raises(BadRange, match="has been read to offset 5"):
        order(shop, Action.START, place=StartPlace.parse("0:4"))
    with pytest.raises(BadRange, match="not 21"):
        order(shop, Action.START, place=StartPlace.parse("0:21"))
    with pytest.raises(BadRange, match="passes nothing over"):
        order(shop, Action.START, fill=True)
    assert control(shop).desired is Desired.UNSET


def test_a_start_that_is_refused_has_done_nothing(shop, kafka):
    """Neither its savepoint is kept, nor is anything passed over under a name that is taken."""
    with pytest.raises(BadRange, match="not 21"):
        order(shop, Action.START, place=StartPlace.parse("0:21"), name="monday")
    assert control(shop).savepoints == ()
    order(shop, Action.SAVEPOINT, name="monday")
    with pytest.raises(BadRange, match="taken by savepoint monday"):
        order(shop, Action.START, place=StartPlace(From.LATEST), name="monday")
    assert control(shop).accepted == ()


def test_a_stateless_upgrade_passes_over_what_is_unread(shop, kafka):
    """As the operators of stream processors know it."""
    order(shop, Action.RESTART, upgrade=Upgrade.STATELESS)
    assert [each.gap for each in control(shop).accepted] == [Gap(LANE, 5, 20)]


def test_a_savepoint_names_the_newest_epoch_once(shop):
    """With the versions that are served, and what judged the records."""
    order(shop, Action.SAVEPOINT, name="monday", reason="sale")
    [point] = control(shop).savepoints
    assert (point.epoch, point.ends, point.served) == (2, {LANE: 5}, {"sales": shop.view.id})
    assert point.record_version == shop.compiled.record_version
    with pytest.raises(BadRange, match="taken by savepoint monday"):
        order(shop, Action.SAVEPOINT, name="monday")
    [line, _] = order(shop, Action.RESTART, upgrade=Upgrade.SAVEPOINT)
    assert "savepoint before-20" in line
    assert len(control(shop).savepoints) == 2


def test_nothing_can_be_saved_before_the_first_epoch(tmp_path, warehouse, monkeypatch):
    """There is no position to name."""
    with pytest.raises(BadRange, match="no epoch yet"):
        order(opened(tmp_path, monkeypatch, warehouse), Action.SAVEPOINT, name="early")


@pytest.mark.everywhere
def test_a_restore_serves_what_was_served(shop, tmp_path):
    """The log stays as it is; a version that has replaced another gives way, and is said to go on beside it."""
    order(shop, Action.SAVEPOINT, name="monday")
    assert "is served, as then" in order(shop, Action.RESTORE, name="monday")[1]
    with pytest.raises(NotFound, match="sunday"):
        order(shop, Action.RESTORE, name="sunday")
    table = ControlTable.ensure(shop.layout)
    table.save(Savepoint("later", 9, {LANE: 9}, {}, "v", "ada", "", NOW))
    with pytest.raises(BadRange, match="ends at epoch 2, before the savepoint's 9"):
        order(shop, Action.RESTORE, name="later")


def test_holes_are_filled_on_request(shop):
    """Only what is missing; the number must be a hole's."""
    with pytest.raises(BadRange, match="no hole"):
        request_hole_fills(shop.compiled, shop.layout, None, "ada", "")
    gap = AcceptedGap(Gap(LANE, 5, 9), "ada", "latest", NOW)
    last = shop.ledger.read()[-1]
    hole = gap.epoch(3, 0, NOW, record_version="v", last=last)
    shop.master.commit(hole, [])
    shop.ledger.append([hole])
    with pytest.raises(BadRange, match="Epoch 7 is not a hole"):
        request_hole_fills(shop.compiled, shop.layout, 7, "ada", "")
    assert request_hole_fills(shop.compiled, shop.layout, 3, "ada", "") == [OffsetRange(LANE, 5, 9)]
    assert control(shop).fills == (OffsetRange(LANE, 5, 9),)


def test_the_control_table_of_an_earlier_release_is_read():
    """It knew of no restarts, fills and savepoints."""
    row = json.loads(Control(desired=Desired.RUNNING).to_json())
    for name in ("restarts", "fills", "savepoints", "restated"):
        del row[name]
    assert Control.from_json(json.dumps(row)) == Control(desired=Desired.RUNNING)


def test_the_control_table_comes_back_as_it_was(shop):
    """Every field, through JSON."""
    point = Savepoint("monday", 2, {LANE: 5}, {"sales": "sales/1"}, "v", "ada", "sale", NOW)
    state = Control(
        Desired.PAUSED, "ada", "why", restarts=3, fills=(OffsetRange(LANE, 5, 9),), savepoints=(point,)
    )
    assert Control.from_json(state.to_json()) == state


def forked(
    shop: Shop, tmp_path, upto: int, *, name: str = "branch", topic: str = "sales", interval: str = "1 day"
) -> Layout:
    """Fork the shop at an epoch into another pipeline of the same source."""
    text = DEFINITION.replace('name="shop"', f'name="{name}"').replace(
        'sales",\n        schema', f'{topic}",\n        schema'
    )
    text = text.replace('interval="1 day"', f'interval="{interval}"')
    (tmp_path / "definitions" / f"{name}.py").write_text(text)
    known = [each for each in shop.ledger.read() if each.number <= upto]
    end = max(part.end for each in known for part in each.ranges)
    point = Savepoint("p", upto, {LANE: end}, {}, shop.compiled.record_version, "ada", "", NOW)
    to = Layout(shop.warehouse, name)
    fork_pipeline(
        shop.compiled, shop.layout, point, load_catalog(tmp_path / "definitions").pipeline(name), to
    )
    return to


@pytest.mark.parametrize("packed", [False, True])
def test_a_fork_begins_with_the_log_up_to_the_savepoint(shop, tmp_path, packed):
    """Whether its epochs have files of their own or one that upkeep made of them."""
    if packed:
        maintain_tables(shop.compiled, shop.layout)
    to = forked(shop, tmp_path, 1)
    master = Master.open(to)
    assert (master.epoch, master.edge, master.position([LANE])) == (1, 0, {LANE: 4})
    assert sorted(master.table.read(["_offset"])["_offset"].to_pylist()) == [0, 1, 2, 3]
    assert [each.number for each in Ledger.ensure(to).read()] == [0, 1]
    assert [each.number for each in master.missing(0)] == [1], "the ledger can be fixed from it"
    assert sorted(Table.open(to.table("quarantine")).read(["_offset"])["_offset"].to_pylist()) == [0, 1]
    assert len(Master.open(shop.layout).table.read(["_offset"])) == 5, "the source is as it was"
    assert not list(shop.warehouse.glob(".fork-*"))
    assert read("shop.sales", warehouse=shop.warehouse).num_rows == 2


def test_a_fork_is_refused_where_something_has_begun_or_reads_elsewhere(shop, tmp_path):
    """Offsets of another topic mean other records, and intervals of another length other counts."""
    forked(shop, tmp_path, 1)
    with pytest.raises(BadRange, match="already has a log"):
        forked(shop, tmp_path, 2)
    with pytest.raises(BadRange, match="reads elsewhere of"):
        forked(shop, tmp_path, 1, name="other", topic="elsewhere")
    with pytest.raises(BadRange, match="has intervals of 1 hour, shop of 1 day"):
        forked(shop, tmp_path, 1, name="hourly", interval="1 hour")


def test_a_fork_that_was_cut_short_can_be_made_again(shop, tmp_path):
    """The master is put in its place last: without one, what is there gives way."""
    to = forked(shop, tmp_path, 1)
    Master.open(to)
    move_folder(to.table("master"), shop.layout.warehouse / "gone")
    assert Table.exists(to.table("ledger"))
    again = forked(shop, tmp_path, 2)
    assert [each.number for each in Ledger.ensure(again).read()] == [0, 1, 2]


@pytest.mark.parametrize("written", [True, False])
def test_a_fork_begins_at_an_epoch_that_the_log_holds(shop, tmp_path, written):
    """It was lost after the savepoint was made, and its records were read again: they are above it, in no fork."""
    lost = shop.master.epoch + 1
    shop.epoch([Sale(3)], number=lost + 1_000_000, ledger=written)
    with pytest.raises(BadRange, match=f"epoch {lost}, which the log has since lost"):
        forked(shop, tmp_path, lost)
    assert not Table.exists(Layout(shop.warehouse, "branch").table("master"))
    assert Master.open(forked(shop, tmp_path, lost + 1_000_000, name="other")).epoch == lost + 1_000_000


def test_a_fork_waits_for_a_start_that_repairs(shop, tmp_path):
    """The ledger has rows that the master has lost: a start takes them out, and a fork would have begun with them."""
    last = shop.ledger.read()[-1]
    shop.ledger.append([replace(last, number=last.number + 1)])
    with pytest.raises(OutOfStep, match="must be repaired first"):
        forked(shop, tmp_path, 1)


@pytest.mark.parametrize("lives", [True, False])
def test_a_stream_that_starts_while_a_fork_is_made_keeps_its_tables(shop, tmp_path, monkeypatch, lives):
    """Linking takes a while, and Airflow keeps the new pipeline's stream up from the moment it is declared."""
    to, made = Layout(shop.warehouse, "branch"), forking.create_fork_tables
    with ExitStack() as living:

        def meanwhile(*args):
            control = ControlTable.ensure(to)
            lease = control.take("somebody", now=datetime.now(UTC), process=own_process_name())
            Master.ensure(to, shop.compiled).table.fence(lease.token)
            if lives:
                living.enter_context(keep_renewing(lambda: control.try_renew(lease), 0.1))
            else:
                control.release(lease)
            return made(*args)

        monkeypatch.setattr(forking, "create_fork_tables", meanwhile)
        with pytest.raises(LeaseHeld if lives else BadRange):
            forked(shop, tmp_path, 1)
    assert (Master.open(to).epoch, newest_token(to.table(""))) == (-1, 1)
    assert not list(shop.warehouse.glob(".fork-*"))


def test_no_stream_starts_while_a_fork_is_put_in_its_place(shop, tmp_path, monkeypatch):
    """It would make a master of its own, and the fork's would take its place."""
    to, put = Layout(shop.warehouse, "branch"), forking.move_fork_tables

    def meanwhile(*args):
        with pytest.raises(LeaseHeld, match="fork-"):
            ControlTable.ensure(to).take("somebody", now=datetime.now(UTC))
        put(*args)

    monkeypatch.setattr(forking, "move_fork_tables", meanwhile)
    monkeypatch.setattr(forking, "RENEWED_EVERY", 0.1)
    forked(shop, tmp_path, 1)
    assert ControlTable.ensure(to).take("somebody", now=datetime.now(UTC)).token > 1


@pytest.mark.parametrize("let_go", [0, 2])
def test_a_fork_knows_which_refused_records_a_person_let_go(shop, tmp_path, let_go):
    """Else no build of it would ever end that judges its records again: it would miss them."""
    Table.open(shop.layout.table("quarantine")).append([], txns={LET_GO: let_go})
    to = forked(shop, tmp_path, 1)
    [epoch] = [replace(each, refused={"odd": 2}) for each in Ledger.ensure(to).read()[1:]]
    there = epoch.rows + 1
    assert count_readable_records(to, epoch) == (there if let_go >= epoch.number else there + 1)
    assert Table.open(to.table("quarantine")).txn(LET_GO) == min(let_go, 1)


def test_a_fork_goes_by_what_was_restated(shop, tmp_path):
    """A look-up that somebody has corrected would be wrong again in it, and nothing would tell; nor twice."""
    decisions = [
        Restatement("prices", "new", Interval(START, START + DAY), epoch, "ada", "wrong", NOW)
        for epoch in (0, 2)
    ]
    for each in decisions:
        ControlTable.ensure(shop.layout).restate(each)
    to = forked(shop, tmp_path, 1)
    move_folder(to.table("master"), shop.layout.warehouse / "gone")
    assert forked(shop, tmp_path, 1) == to
    assert list_restatements(to) == (decisions[0], replace(decisions[1], epoch=1))


def test_a_restore_tells_that_its_epoch_is_lost(shop):
    """What is served comes back; the log has no such position any more, and no fork begins there."""
    lost = shop.master.epoch + 1
    point = Savepoint("monday", lost, {LANE: 9}, {}, shop.compiled.record_version, "ada", "sale", NOW)
    ControlTable.ensure(shop.layout).save(point)
    shop.epoch([Sale(3)], number=lost + 1_000_000)
    lines = order(shop, Action.RESTORE, name="monday")
    assert f"  the log has lost epoch {lost} since: its records were read again under later numbers" in lines
