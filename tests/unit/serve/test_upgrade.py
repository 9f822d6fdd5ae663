"""From an edited view to its flip: what is missing, which numbers would change, and the way back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.past import DAYS, NOW, build
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop

from seamline.cli import main
from seamline.cli import upgrade as command
from seamline.lake.storage import data_files
from seamline.lake.storage.arrow_types import generations_schema
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.store.locations import Location
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.generations import Generations
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.errors import CertificateFailed
from seamline.model.protocol.certificate_checks import Certificate, Check
from seamline.model.protocol.manifest import Act, Statement, fold_statements
from seamline.model.protocol.restated_views import Restated
from seamline.model.protocol.restatement import Restatement
from seamline.model.time.intervals import EPOCH, Grid, Interval
from seamline.plan.batch.batch_plan import BatchPlan, needs_approval
from seamline.plan.batch.interval_arrivals import Arrivals
from seamline.plan.batch.view_upgrade import find_common_intervals
from seamline.plan.publish.publication import plan_births

pytestmark = pytest.mark.slow

EDITED = DEFINITION.replace(
    '"total": sum("amount"), "largest": max("amount")', '"total": sum("amount + 1"), "least": min("amount")'
)
EDITED = EDITED.replace("count, max, sum", "count, min, sum")


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days built of the served version; the file was edited and its version born, of which nothing is built."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    (folder / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(folder))
    shop = Shop(warehouse)
    shop.state(Act.BIRTH, epoch=0, definition=to_json(shop.compiled.definition))
    shop.epoch([Sale(1, "a", 4), Sale(2, "a", 5), Sale(25 * 60, "b", 7)], watermark=START + 2 * DAY)
    build(shop, "one", cut=0)
    build(shop, "two", cut=0, day=1)
    (folder / "shop.py").write_text(EDITED)
    return shop


def edited() -> CompiledPipeline:
    return load_catalog(definitions_folder()).pipeline("shop")


def bear(shop: Shop) -> None:
    """Do what the stream's start does: the new version is born."""
    pipeline = edited()
    stored = {pipeline.views[0].id: to_json(pipeline.definition)}
    shop.manifest.commit(plan_births(shop.manifest.read(), stored, held=0, now=NOW, filled=DAYS[1]))


def build_new(shop: Shop, cut: int = 0, *, met: bool = True) -> None:
    """Build both days of the new version as a run would, at a cut."""
    view = edited().views[0]
    table = Generations.ensure(shop.layout, view).table
    for day, own in enumerate(([("a", 2, 11, 4)], [("b", 1, 8, 7)])):
        interval = Interval(START + day * DAY, START + (day + 1) * DAY)
        rows = [
            {
                "customer": key,
                "pane": interval.start + (day * DAY / 24),
                "rows": n,
                "orders__n": n,
                "total__sum": total,
                "least__value": least,
                "generation": "new",
            }
            for key, n, total, least in own
        ]
        schema = generations_schema(view)
        written = pa.Table.from_pylist(rows, schema=schema.remove(len(schema) - 1))
        file = data_files.write_data_file(
            written,
            table.root,
            f"{day}-{cut}.parquet",
            stats=["generation", "pane"],
            partition={"interval": interval.id},
        )
        table.refresh().append([file])
        judged = Certificate(
            view.name,
            view.fingerprint,
            "new",
            interval,
            cut,
            "r",
            "",
            NOW,
            (Check("expectations", met, "too low"),),
        )
        Certificates.ensure(shop.layout).append([judged])
        shop.manifest.read()
        said = Statement(
            Act.PUBLISH, view.id, epoch=cut, interval=interval.id, generation="new", rows=1, certified=True
        )
        shop.manifest.commit([said])


def test_an_upgrade_builds_compares_and_flips_there_and_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever edits a view sees what readers will see before they do."""
    argv = ["upgrade", "shop.sales", "--format", "json"]
    assert main(argv) == 32
    assert "is not born yet" in capsys.readouterr().err
    bear(shop)
    assert main([*argv, "--dry-run"]) == 0
    told = capsys.readouterr().err
    assert "2 not compared, not built of the new version: 2013-01-01, 2013-01-02" in told
    assert "to read" in told
    assert "at most 0 B" not in told
    assert main([*argv, "--via-airflow"]) == 0
    assert capsys.readouterr().out == "seamline backfill shop 2013-01-01T00:00 2013-01-03T00:00\n"

    planned: list[BatchPlan] = []

    def carried_out(
        pipeline: object, layout: object, plan: BatchPlan, reason: str, *, approve: bool, err: bool
    ) -> None:
        planned.append(plan)
        build_new(shop)

    monkeypatch.setattr(command, "execute_plan", carried_out)
    assert main(argv) == 0
    printed = capsys.readouterr()
    assert [each.interval.id for each in planned[0].builds] == list(DAYS)
    assert needs_approval(planned[0], 1) and not needs_approval(planned[0], 2)
    rows = {row["customer"]: row for row in map(json.loads, printed.out.splitlines())}
    assert [
        (rows[key]["_total_before"], rows[key]["_total_after"], rows[key]["_total_difference"])
        for key in "ab"
    ] == [(9, 11, 2), (7, 8, 1)]
    assert rows["a"]["_orders_difference"] == 0 and "_largest_before" not in rows["a"]
    assert "2 intervals certified of both" in printed.err
    assert "0 rows equal, 2 changed, 0 only before, 0 only after." in printed.err
    assert "total: 2 changed, most 9 -> 11 (+2) at customer=a" in printed.err
    assert "lost measures: largest" in printed.err and "new measures: least" in printed.err
    assert "Served as before." in printed.err

    old, new = shop.view.fingerprint, edited().views[0].fingerprint
    version = ManifestTable.ensure(shop.layout).read().version
    assert main([*argv, "--flip"]) == 0
    told = capsys.readouterr().err
    assert f"served as version {new}" in told and f"seamline flip shop.sales --to {old}" in told
    assert ManifestTable.ensure(shop.layout).read().version == version + 1
    assert main(argv) == 0
    assert "is served as its definition has it" in capsys.readouterr().err
    assert main(["flip", "shop.sales", "--to", old]) == 0
    assert ManifestTable.ensure(shop.layout).read().version == version + 2


def test_what_is_red_is_shown_and_not_flipped(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison is what tells why."""
    bear(shop)

    def carried_out(*given: object, approve: bool, err: bool) -> None:
        build_new(shop, met=False)
        raise CertificateFailed("2 generations did not pass")

    monkeypatch.setattr(command, "execute_plan", carried_out)
    assert main(["upgrade", "shop.sales", "--flip"]) == CertificateFailed.exit_code
    told = capsys.readouterr().err
    assert "2 intervals do not meet them" in told and "2013-01-01 too low" in told
    assert ManifestTable.ensure(shop.layout).read().serving["sales"] == shop.view.id


def test_a_range_bounds_the_comparison(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A year of rows is more than one asks for first."""
    bear(shop)
    build_new(shop)
    argv = ["upgrade", "shop.sales", "--format", "csv", "--from", "2013-01-02", "--to", "2013-01-03"]
    assert main(argv) == 0
    printed = capsys.readouterr()
    assert '"b"' in printed.out and '"a"' not in printed.out
    assert "1 intervals certified of both" in printed.err


def test_versions_with_other_keys_are_not_compared_by_key(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row of the one would be only in the one."""
    (definitions_folder() / "shop.py").write_text(EDITED.replace('keys=["customer"]', "keys=[]"))
    bear(shop)
    assert main(["upgrade", "shop.sales", "--dry-run"]) == 0
    assert "have other keys: customer STRING, and none" in capsys.readouterr().err


def test_a_view_that_is_gone_from_the_file_has_no_upgrade(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to go to."""
    (definitions_folder() / "shop.py").write_text(EDITED.replace('"sales",\n', '"other",\n'))
    assert main(["upgrade", "shop.sales"]) == 4
    assert "not in the definition any more" in capsys.readouterr().err
    assert main(["upgrade", "shop.nothing"]) == 4


GRID = Grid(DAY, START)
OLD = Statement(Act.PUBLISH, "v/1", epoch=4, interval=DAYS[0], generation="o", certified=True)
NEW = replace(OLD, view="v/2", generation="n", epoch=9)
DECIDED = Restatement("cities", "b", Interval(START, START + DAY), 3, "ada", "", EPOCH)


@pytest.mark.parametrize(
    ("old", "new", "late", "why"),
    [
        (OLD, NEW, 0, ""),
        (OLD, None, 0, "not built of the new version"),
        (None, NEW, 0, "not built of the served version"),
        (OLD, replace(NEW, certified=False), 0, "not certified of both versions"),
        (OLD, NEW, 1, "rows came between the cuts of the two versions"),
        (OLD, replace(NEW, restated=1), 0, "restated between the builds of the two versions"),
    ],
)
def test_only_what_counts_the_same_events_is_compared(
    old: Statement | None, new: Statement | None, late: int, why: str
) -> None:
    """Else a late flight would be taken for an effect of the edit."""
    from tests.unit.plan.test_batch_plan import epoch

    manifest = fold_statements([each for each in (old, new) if each], 1)
    arrivals = Arrivals([epoch(3, {1: 5}), epoch(7, {1: late} if late else {})], until=9)
    found = find_common_intervals(manifest, "v/1", "v/2", arrivals, GRID, Restated(GRID, (DECIDED,)))
    assert (found.intervals, dict(found.others)) == (((DAYS[0],), {}) if not why else ((), {why: [DAYS[0]]}))
