"""Two pipelines, each with its tables in a place of its own: both in folders, or one of them in a bucket."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree

import pytest
from prometheus_client import generate_latest
from tests.faults.rig.store_settings import set_store
from tests.services.addresses import Bucket
from tests.unit.shop import DEFINITION, Sale, Shop, opened, sales_pipeline

from seamline import read
from seamline.cli import main
from seamline.cli.context import load_configured_catalog
from seamline.cli.machine_checks import check_folders, check_neighbours, check_variables
from seamline.lake.storage.layout import locate_tables
from seamline.lake.store import bucket as buckets
from seamline.lake.store import promises
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.lake.tables.occupied_places import require_no_log_elsewhere
from seamline.model.errors import BadRange, NotFound, SetupError, StoreUnavailable
from seamline.model.protocol.offsets import Lane
from seamline.model.protocol.savepoint import Savepoint
from seamline.supervisor.metrics.registry import make_metrics_registry
from seamline.supervisor.observe import streams_of
from seamline.supervisor.outside import list_own_layouts, list_shared_layouts, read_stream_status, stop_all

KIOSK = DEFINITION.replace('name="shop"', 'name="kiosk"')
LANE = Lane("sales", 0)
NOW = datetime(2013, 1, 9, tzinfo=UTC)


in_bucket = pytest.mark.parametrize("place", ["bucket"], indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Location:
    """Where the kiosk's own variable says that its warehouse is: in a folder, or in a bucket."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    url = str(tmp_path / "own")
    if getattr(request, "param", "folder") == "bucket":
        bucket: Bucket = request.getfixturevalue("shared_bucket")
        set_store(monkeypatch, bucket, bucket.endpoint, tmp_path / "home")
        url = f"{bucket.url}/{uuid.uuid4().hex[:12]}"
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_KIOSK", url)
    return parse_location(url)


@pytest.fixture
def shops(place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Shop, Shop]:
    """A shop and a kiosk, with one sale and with two; somebody has stopped both streams."""
    made = opened(tmp_path, monkeypatch), Shop(place, sales_pipeline(text=KIOSK))
    (tmp_path / "definitions" / "kiosk.py").write_text(KIOSK)
    for count, each in enumerate(made, start=1):
        each.epoch([Sale(minute) for minute in range(count)])
        ControlTable.ensure(each.layout).want(Desired.STOPPED, actor="ada", reason="", now=NOW)
    return made


@in_bucket
def test_each_answers_from_its_own_place(shops: tuple[Shop, Shop], place: Location, tmp_path: Path) -> None:
    """One installation has what must be near on its disk, and the rest where it costs less."""
    assert read("shop.sales")["orders"].to_pylist() == [1]
    assert read("kiosk.sales")["orders"].to_pylist() == [2]
    assert read("kiosk.sales", warehouse=str(place))["orders"].to_pylist() == [2]
    with pytest.raises(NotFound, match=f"no master yet at {tmp_path}"):
        read("kiosk.sales", warehouse=tmp_path / "w")
    assert {way.partition("/")[0] for way in list_found_files(place)} == {"kiosk"}
    assert [each.name for each in (tmp_path / "w").iterdir()] == ["shop"]


@in_bucket
def test_commands_metrics_and_those_who_stop_streams_see_both(
    shops: tuple[Shop, Shop], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is in no list is one that nobody misses when it is down."""
    assert main(["stream", "list", "--no-broker", "--format", "json"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(row["pipeline"], row["epoch"]) for row in rows] == [("kiosk", 0), ("shop", 0)]
    told = generate_latest(make_metrics_registry(broker=False)).decode()
    assert 'seamline_epoch{pipeline="kiosk"}' in told and 'seamline_epoch{pipeline="shop"}' in told
    assert [each.pipeline for each in [*list_shared_layouts(), *list_own_layouts()]] == ["shop", "kiosk"]
    assert main(["stream", "pause", "kiosk", "--reason", "x"]) == 0
    assert read_stream_status("kiosk").desired is Desired.PAUSED
    assert read_stream_status("shop").desired is Desired.STOPPED


def test_a_variable_that_is_wrong_takes_nothing_from_the_others(
    shops: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The list of streams is where somebody looks for what is wrong."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_KIOSK", "ftp://lake")
    assert main(["stream", "list", "--no-broker", "--format", "json"]) == 0
    kiosk, shop = map(json.loads, capsys.readouterr().out.splitlines())
    assert shop["epoch"] == 0 and "ftp://lake" in str(kiosk)
    assert [each.pipeline for each in [*list_shared_layouts(), *list_own_layouts()]] == ["shop"]
    found = {each.name: each for each in check_folders()}
    assert found["SEAMLINE_WAREHOUSE"].good and not found["SEAMLINE_WAREHOUSE_KIOSK"].good
    with pytest.raises(SetupError, match="ftp://lake"):
        read("kiosk.sales")


def test_a_shared_bucket_that_is_away_takes_nothing_from_the_others(
    shops: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is on a disk is seen, and stopped; that the bucket is away is said all the same."""
    nobody = Bucket("http://127.0.0.1:1", "lake", "key", "secret")
    set_store(monkeypatch, nobody, nobody.endpoint, shops[1].warehouse.parent / "home")
    monkeypatch.setattr(buckets, "PATIENCE", timedelta(seconds=0.1))
    monkeypatch.setattr(promises, "REOPENED", ())
    ControlTable.ensure(shops[1].layout).want(Desired.RUNNING, actor="ada", reason="", now=NOW)
    assert main(["stream", "list", "--no-broker", "--format", "json"]) == 0
    kiosk, shop = map(json.loads, capsys.readouterr().out.splitlines())
    assert kiosk["epoch"] == 0 and shop["epoch"] is None and "127.0.0.1:1 did not do" in str(shop)
    told = generate_latest(make_metrics_registry(broker=False)).decode()
    assert 'seamline_stream_wanted{pipeline="kiosk"} 1.0' in told
    with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1 did not do"):
        stop_all(timeout=5)
    assert read_stream_status("kiosk").desired is Desired.STOPPED


def test_a_pipeline_that_has_its_log_asks_nothing_of_the_shared_bucket(
    shops: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process that opens it would wait for a store that has nothing of it, and fail while that is away."""
    nobody = Bucket("http://127.0.0.1:1", "lake", "key", "secret")
    set_store(monkeypatch, nobody, nobody.endpoint, shops[1].warehouse.parent / "home")
    require_no_log_elsewhere.cache_clear()
    before = buckets.requests.total()
    assert ControlTable.ensure(shops[1].layout).read().desired is Desired.STOPPED
    assert buckets.requests.total() == before


def test_who_knows_of_no_stream_but_in_a_bucket_that_is_away_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty list would say that there are none."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", "ftp://lake")
    with pytest.raises(SetupError, match="ftp://lake"):
        streams_of({})


def test_a_pipeline_is_not_looked_for_where_it_was_before_it_had_its_own(
    shops: tuple[Shop, Shop], tmp_path: Path
) -> None:
    """What is left in the shared warehouse is named, and is no second stream of that name."""
    Shop(tmp_path / "w", sales_pipeline(text=KIOSK))
    ControlTable.ensure(locate_tables("kiosk", tmp_path / "w"))
    assert [*list_shared_layouts(), *list_own_layouts()] == [each.layout for each in shops]
    [found] = check_neighbours(["shop", "kiosk"])
    assert found.note and "tables of kiosk, which are not read: SEAMLINE_WAREHOUSE_KIOSK says" in found.found


def test_no_second_log_begins_beside_one_in_the_shared_warehouse(
    shops: tuple[Shop, Shop],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A variable moves nothing: a stream would read Kafka from the beginning, and one could not be stopped."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_SHOP", str(tmp_path / "own"))
    start, stop = (["stream", word, "shop", "--reason", "x"] for word in ("start", "stop"))
    for command in (start, stop, ["query", "shop.sales"]):
        assert main(command) == SetupError.exit_code
        told = capsys.readouterr().err
        assert (
            "SEAMLINE_WAREHOUSE_SHOP says" in told and "unset SEAMLINE_WAREHOUSE_SHOP to go on there" in told
        )
    assert not (tmp_path / "own" / "shop").exists()
    # A copy that was moved there with its log is one that goes on.
    copytree(tmp_path / "w" / "shop", tmp_path / "own" / "shop")
    assert main(stop) == 0


def test_doctor_tries_each_place_and_names_its_variable(
    shops: tuple[Shop, Shop], place: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable of a pipeline that is not defined, or in lower case, does nothing: nobody else would say so."""
    found = {each.name: each for each in check_folders()}
    assert found["SEAMLINE_WAREHOUSE"].found == str(tmp_path / "w")
    assert found["SEAMLINE_WAREHOUSE_KIOSK"].found == str(place)
    assert [*check_variables(load_configured_catalog().pipelines)] == []
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_CIOSK", "/w")
    monkeypatch.setenv("SEAMLINE_WAREHOUSE_shop", "/w")
    lost = [*check_variables(load_configured_catalog().pipelines)]
    assert [each.name for each in lost] == ["SEAMLINE_WAREHOUSE_CIOSK", "SEAMLINE_WAREHOUSE_shop"]
    assert all(each.note for each in lost)
    assert "lower case" in lost[1].found and lost[1].hint == "write SEAMLINE_WAREHOUSE_SHOP."
    assert lost[0].hint.endswith("SEAMLINE_WAREHOUSE_KIOSK, SEAMLINE_WAREHOUSE_SHOP.")


def test_a_fork_has_both_pipelines_in_one_warehouse(
    shops: tuple[Shop, Shop], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its files are links, and there is none from a disk into a bucket."""
    point = Savepoint("before", 0, {LANE: 1}, {}, shops[0].compiled.record_version, "ada", "", NOW)
    ControlTable.ensure(shops[0].layout).save(point)
    assert main(["stream", "fork", "shop", "before", "--as", "kiosk"]) == BadRange.exit_code
    told = capsys.readouterr().err
    assert "a fork has both in one" in told
    assert f"set SEAMLINE_WAREHOUSE_KIOSK={shops[0].warehouse}, where shop is" in told
