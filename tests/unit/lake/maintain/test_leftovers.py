"""What killed builds left goes, and no build that is asleep can bring it back."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.past import build
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.maintain import run_leftovers
from seamline.lake.maintain.retention import clean_generations, forget_generations
from seamline.lake.maintain.run_leftovers import clean_run_leftovers
from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.read.merged_read import read_merged_answer
from seamline.lake.storage import data_files
from seamline.lake.storage.delta_table import Table
from seamline.lake.store.locations import Location, copy_folder, move_folder, replace_file
from seamline.lake.tables.generations import CLOSED, Generations
from seamline.model.errors import Conflict
from seamline.model.protocol.claims import Claim
from seamline.model.time.intervals import EPOCH, Interval
from seamline.plan.maintain.unneeded import (
    BUILT_WITHIN,
    REPORTED,
    SECOND,
    STAMP,
    find_last_abandoned_second,
    parse_build_start,
)

slow = pytest.mark.slow
NOW = datetime.now(UTC)
MONDAY = Interval(START, START + DAY)
GONE = "(folders) of builds that were given up"
LEFT = "generations that no commit names: their build may still run"


@given(ages=st.lists(st.timedeltas(timedelta(0), timedelta(days=9)), max_size=4))
def test_a_build_under_a_claim_is_waited_for_however_long_it_takes(ages: list[timedelta]) -> None:
    """It began after it had its claim; without any claim it has a day."""
    claims = [Claim("r", "o", (MONDAY,), NOW - age, NOW) for age in ages]
    last = EPOCH + find_last_abandoned_second(claims, now=NOW) * SECOND
    assert all(last < claim.since - timedelta(0) for claim in claims)
    assert NOW - max([BUILT_WITHIN, *ages]) - 2 * SECOND < last <= NOW - BUILT_WITHIN


def test_an_id_says_when_its_build_began() -> None:
    """One that does not is of no build of ours."""
    assert parse_build_start("19700102T000001-abc") == 86401
    assert (
        parse_build_start("first"),
        parse_build_start("2024-01-01"),
        parse_build_start("20241301T000000-abc"),
    ) == (None, None, None)


@pytest.fixture
def shop(warehouse: Location) -> Shop:
    """A day of which a generation is served."""
    made = Shop(warehouse)
    made.epoch([Sale(1)])
    made.build(0, 0, "first")
    return made


class Build:
    """A build of the first day that writes its file, and commits when it is told."""

    def __init__(self, shop: Shop, began: datetime) -> None:
        self.shop = shop
        self.generations = Generations.ensure(shop.layout, shop.view)
        self.id = f"{began:{STAMP}}-{uuid.uuid4().hex[:12]}"
        rows = shop.partials([Sale(1)])
        whole = rows.append_column("generation", pa.array([self.id] * rows.num_rows))
        self.path = self.generations.folder(self.id) / "_cell=0" / "part.parquet"
        self.path.parent.mkdir(parents=True)
        data_files.write_data_file(whole, self.path.parent, self.path.name)

    def commit(self) -> None:
        self.generations.append([(self.path, MONDAY)])

    @property
    def committed(self) -> bool:
        return self.id in Table.open(self.generations.table.root).read()["generation"].to_pylist()


@slow
def test_a_killed_builds_folder_goes_and_others_stay(shop: Shop) -> None:
    """One is old and was killed, one has just begun, one has committed, one is nobody's that we know."""
    killed, young, done = Build(shop, NOW - 2 * DAY), Build(shop, NOW), Build(shop, NOW - 2 * DAY)
    done.commit()
    replace_file(shop.generations.root / "backup" / "x", b"x")
    before = read_merged_answer(shop.compiled, shop.view, shop.layout).table
    found = maintain_tables(shop.compiled, shop.layout)
    assert (found.deleted[GONE], found.left[LEFT]) == (1, 2)
    assert [each.path.exists() for each in (killed, young, done)] == [False, True, True]
    assert read_merged_answer(shop.compiled, shop.view, shop.layout).table.equals(before)
    young.commit()
    assert maintain_tables(shop.compiled, shop.layout).deleted == {}
    assert young.committed and done.committed


@slow
def test_while_a_claim_holds_a_build_that_takes_days_is_left_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is at work; what began before its claim is not its own."""
    long, before = Build(shop, NOW), Build(shop, NOW - 2 * SECOND)
    claim = Claim("long", "test", (MONDAY,), NOW, NOW + 9 * DAY, "elsewhere 1 1")
    monkeypatch.setattr(run_leftovers, "claims_of", lambda *_, **__: (claim,))
    found = clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW + 3 * DAY)
    assert (found.deleted, found.left) == ({GONE: 1}, {LEFT: 1})
    assert not before.path.exists()
    long.commit()
    assert long.committed


@slow
def test_a_build_that_slept_without_its_claim_commits_nothing(shop: Shop) -> None:
    """Counter-example to "no claim and old, so dead": it wakes at its last step, and its files are gone."""
    asleep = Build(shop, NOW - 2 * DAY)
    assert clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW).deleted == {GONE: 1}
    with pytest.raises((Conflict, FileNotFoundError)):
        asleep.commit()
    # Even with its files in its hands: another second of the same sleep.
    described = data_files.DataFile(f"{asleep.id}/_cell=0/part.parquet", 1, 1, "{}", {"interval": MONDAY.id})
    with pytest.raises(Conflict, match="was abandoned"):
        asleep.generations.commit([described])
    assert not asleep.committed


def between(build: Build, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let something happen after a build has looked whether the table is closed, and before it commits."""
    append, waiting = build.generations.table.append, [act]

    def interrupted(*given: object, **named: object) -> int:
        if waiting:
            waiting.pop()()
        return append(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(build.generations.table, "append", interrupted)


@slow
def test_a_build_that_is_given_up_at_its_last_step_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen an open table; the closing came in between, and its files may be gone by now."""
    late = Build(shop, NOW - 2 * DAY)
    kept, folder = shop.warehouse / "kept", late.generations.folder(late.id)
    copy_folder(folder, kept)

    def give_up() -> None:
        assert clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW).deleted == {GONE: 1}
        # As if the deletion had been slower than the commit.
        move_folder(kept, folder)

    between(late, monkeypatch, give_up)
    with pytest.raises(Conflict, match="was abandoned"):
        late.commit()
    assert late.path.exists()
    assert not late.committed


@slow
def test_a_build_that_commits_while_upkeep_looks_is_kept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upkeep has listed its folder as nobody's: its commit comes first, and upkeep's is refused."""
    late = Build(shop, NOW - 2 * DAY)
    look, waiting = run_leftovers.list_uncommitted_folders, [late.commit]

    def listed(table: Table) -> object:
        found = look(table)
        if waiting:
            waiting.pop()()
        return found

    monkeypatch.setattr(run_leftovers, "list_uncommitted_folders", listed)
    found = clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW)
    assert "changed since" in found.refused[0]
    assert late.committed and late.path.exists()
    assert clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW).deleted == {}


@slow
def test_builds_do_not_refuse_each_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs at different days commit to one table, and neither lowers what upkeep has closed."""
    Build(shop, NOW - 2 * DAY)
    clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW)
    closed = Table.open(shop.generations.root).txn(CLOSED)
    one, other = Build(shop, NOW), Build(shop, NOW)
    between(one, monkeypatch, other.commit)
    one.commit()
    assert one.committed and other.committed
    assert Table.open(shop.generations.root).txn(CLOSED) == closed is not None


@slow
def test_files_of_forgotten_generations_keep_their_folder_for_readers(shop: Shop) -> None:
    """They are out of the table, and a reader may have pinned them."""
    old = Build(shop, NOW - 2 * DAY)
    old.commit()
    shop.publish(MONDAY, 0, old.id, 1)
    shop.build(0, 0, "second")
    assert {each.generation for each in forget_generations(shop.layout, keep=0, actor="x", reason="x")} >= {
        old.id
    }
    clean_generations(shop.layout, shop.manifest.read())
    assert not old.committed
    assert clean_run_leftovers(shop.layout, shop.manifest.read(), now=NOW).deleted == {}
    assert old.path.exists()


@slow
def test_reports_stay_while_what_they_are_about_may_be_served(shop: Shop) -> None:
    """And for a month after the build, whatever became of it; of runs nobody knows nothing can be said."""
    build(shop, "served", cut=0, at=START)
    build(shop, "red", cut=0, at=START, passed=False, publish=False)
    build(shop, "again", cut=0, at=START)
    for run in ("run-served", "run-red", "run-again", "unknown"):
        shop.layout.report(run).mkdir(parents=True)
        (shop.layout.report(run) / "index.html").write_text("<p>")

    def there() -> set[str]:
        return {
            run
            for run in ("run-served", "run-red", "run-again", "unknown")
            if shop.layout.report(run).exists()
        }

    clean_run_leftovers(shop.layout, shop.manifest.read(), now=START + REPORTED)
    assert len(there()) == 4
    clean_run_leftovers(shop.layout, shop.manifest.read(), now=START + REPORTED + SECOND)
    assert there() == {"run-served", "run-again", "unknown"}
    forget_generations(shop.layout, keep=0, actor="x", reason="x")
    clean_run_leftovers(shop.layout, shop.manifest.read(), now=START + REPORTED + SECOND)
    assert there() == {"run-again", "unknown"}
