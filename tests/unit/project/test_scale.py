"""The model of scale counts what the product does, and the page says what the model says."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import pytest
from benchmarks.scale import bottleneck, compaction, epoch, parsing, requests
from benchmarks.scale.calibration import CALIBRATION, list_measured
from benchmarks.scale.figures import FITTED, predict
from benchmarks.scale.fitting import fit_units, read_observations
from benchmarks.scale.load import Load, LoadRefused
from benchmarks.scale.page import EXTREMES, LATENCIES, PAGE, load_at, write_page
from benchmarks.scale.predictions import WITHIN, read_predictions
from benchmarks.scale.units import Unit, Units, read_units
from tests.unit.shop import DAY, START, Sale, Shop

from seamline.lake.maintain.upkeep import maintain_tables
from seamline.model.definition.layers import Batch, Stream

ROOT = Path(__file__).parents[3]
UNITS = read_units()
SIZES = defaultdict(lambda: 10.0)


def test_an_epoch_asks_for_what_the_writer_puts(tmp_path: Path) -> None:
    """On a disk each request to put an object is a new file; a bill that is wrong by one is wrong by dollars."""
    shop = Shop(tmp_path)
    shop.epoch([Sale(1)], watermark=START)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    shop.epoch([Sale(2)], watermark=START + DAY)
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    counted = requests.count_epoch(1, 1, UNITS)["PUT"]
    assert len(made) == math.floor(counted)
    share = 2 * requests.epoch_tables(1) / requests.CHECKPOINT
    assert counted - math.floor(counted) == pytest.approx(share)


def test_upkeep_leaves_the_files_that_are_simulated(tmp_path: Path) -> None:
    """The simulation takes the shipped decisions; what it does between them must be what upkeep does."""
    shop, epochs = Shop(tmp_path), 10
    for number in range(epochs):
        shop.epoch([Sale(number)], watermark=START, edge=number % 3 == 2)
    maintain_tables(shop.compiled, shop.layout)
    told = compaction.simulate(compaction.Pace(1, 1, 1, 1, 1, 3), epochs=epochs, upkeep_epochs=epochs)
    slices, master = shop.slices.table.refresh(), shop.master.table.refresh()
    assert (slices.actions().num_rows, master.actions().num_rows) == (2, 1)
    assert (told.slice_files, told.master_files) == (2, 1)


def test_a_log_keeps_what_its_retention_says() -> None:
    """Two days of an epoch every ten seconds: a day of the master's entries stays, an hour of the ledger's."""
    pace = compaction.Pace(10, 1000, 1, 10, 10, 30)
    told = compaction.simulate(pace, epochs=17_280, upkeep_epochs=360)
    assert 8_640 <= told.master_entries <= compaction.kept_entries("master", 10, 3600) == 9_050
    assert 360 <= told.ledger_entries <= compaction.kept_entries("ledger", 10, 3600) == 770
    assert told.slice_files < told.most_slice_files <= 400


@pytest.mark.parametrize("field", ["events", "views", "partitions", "keys", "intervals", "pipelines"])
def test_more_never_uses_less(field: str) -> None:
    """A model in which a larger load is cheaper would send people the wrong way."""
    low = Load(rtt=11.0, trigger=10.0)
    high = replace(low, **{field: getattr(low, field) * 2})
    few, many = (
        {each.name: each.used for each in bottleneck.list_limits(load, UNITS)} for load in (low, high)
    )
    assert not {name for name, used in few.items() if used > 1.02 * many[name]}
    assert any(many[name] > 1.02 * used for name, used in few.items())


def test_a_longer_way_never_takes_less() -> None:
    """Each round trip is waited for."""
    on_disk, *others = [epoch.cost_of_epoch(Load(rtt=rtt), 1000, UNITS).seconds(2) for rtt in LATENCIES]
    assert on_disk < others[0] < others[1] < others[2]
    assert others[2] - others[1] == pytest.approx((requests.TRIPS_TO_READERS + 1) * 0.016)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("cores", 16, bottleneck.STREAM),
        ("max_offsets", 10_000_000, bottleneck.STREAM),
        ("trigger", 10.0, bottleneck.EPOCHS),
        ("serve_every", 60.0, "serving tables"),
        ("interval", 86_400.0, "the run of an interval"),
    ],
)
def test_a_setting_moves_what_it_is_named_for(field: str, value: float, name: str) -> None:
    """Advice that changes nothing is worse than none."""
    load = Load(cores=4, partitions=64, trigger=0.1 if field == "max_offsets" else 1.0)
    before, after = (
        next(each.used for each in bottleneck.list_limits(some, UNITS) if each.name == name)
        for some in (load, replace(load, **{field: value}))
    )
    assert after < before


@pytest.mark.parametrize("rtt", [None, 27.0])
@pytest.mark.parametrize(("dimension", "value", "base"), [(each[0], each[1], each[3]) for each in EXTREMES])
def test_an_extreme_is_finite(dimension: str, value: float, base: Load, rtt: float | None) -> None:
    """What cannot be sustained is said as a share, not as infinity or nothing."""
    for each in bottleneck.list_limits(load_at(base, dimension, value, rtt), UNITS):
        assert math.isfinite(each.used) and each.used >= 0, each


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("events", -1.0, "events is -1"),
        ("events", math.nan, "events is nan"),
        ("partitions", 0, "partitions is 0"),
        ("rtt", math.inf, "rtt is inf"),
        ("views", True, "views is True"),
        ("keys", "many", "keys is 'many'"),
    ],
)
def test_nonsense_is_refused(field: str, value: object, said: str) -> None:
    """A table of nonsense looks like any other."""
    with pytest.raises(LoadRefused, match=said) as problem:
        replace(Load(), **{field: value})
    assert "Hint: " in str(problem.value)


def test_units_of_different_kinds_are_not_added() -> None:
    """Seconds and megabytes make a number, too."""
    units = Units({"a": Unit(1, "s", "x"), "b": Unit(1, "MB", "x")})
    with pytest.raises(ValueError, match=r"different kinds: \['MB', 's'\]"):
        units.total({"a": 1, "b": 1})
    with pytest.raises(KeyError, match="no unit 'c'"):
        units.total({"c": 1})


def test_every_unit_says_who_measured_it() -> None:
    """A cost that nobody can measure again is a guess."""
    for name, unit in UNITS.known.items():
        assert unit.value >= 0 and math.isfinite(unit.value), name
        module = unit.command.removeprefix("python -m ").split()[0].replace(".", "/")
        said = unit.command.startswith("docs/") or "assumed" in unit.command or "Amazon" in unit.command
        assert said or (ROOT / f"{module}.py").exists() or (ROOT / module).is_dir(), name


def test_the_units_are_those_of_the_observations() -> None:
    """Who changes one file by hand and not the other has made up a cost."""
    observed = read_observations()
    assert {spelled(each.kind, each.sizes) for each in observed} == {spelled(*each) for each in CALIBRATION}
    fitted = fit_units(list_measured())
    assert {name for terms in FITTED.values() for name in terms(SIZES)} <= {"round_trip", *UNITS.known}
    for name, unit in fitted.items():
        assert UNITS[name] == pytest.approx(unit.value, rel=1e-3, abs=1e-12), name


def spelled(kind: str, sizes: Mapping[str, float]) -> str:
    """Spell a trial."""
    return f"{kind} {sorted((name, float(size)) for name, size in sizes.items())}"


def test_what_was_observed_is_what_the_model_says() -> None:
    """A form of cost that does not fit the trials it was made from fits nothing."""
    errors = [
        abs(said - each.figures[figure]) / each.figures[figure]
        for each in read_observations()
        for figure, said in predict(each.kind, each.sizes, UNITS).items()
        if each.figures.get(figure)
    ]
    assert sum(error <= WITHIN for error in errors) > 0.9 * len(errors)


def test_every_setting_is_one_of_ours() -> None:
    """Whoever reads the table turns the knob."""
    code = "\n".join(path.read_text() for path in (ROOT / "include" / "seamline").rglob("*.py"))
    named = {each.knob for each in bottleneck.RESOURCES} | {"Stream.max_offsets_per_epoch", "Stream.master"}
    for knob in named:
        kind, _, name = knob.partition(".")
        known = {"Stream": Stream, "Batch": Batch}.get(kind)
        assert (known and name in {one.name for one in fields(known)}) or f'"{knob}"' in code, knob


def test_what_airflow_bounds_is_what_the_code_says() -> None:
    """The constants are of modules that import Airflow, which the model does without."""
    tree = ast.parse((ROOT / "include/seamline/orchestration/reconciling_all.py").read_text())
    known = {node.targets[0].id: node.value.value for node in tree.body if is_constant(node)}
    assert known["AT_ONCE"] == parsing.AT_ONCE
    text = (ROOT / "include/seamline/orchestration/dags.py").read_text()
    assert f'"SEAMLINE_RECONCILE_SECONDS", "{bottleneck.RECONCILE_EVERY:g}"' in text
    assert Stream().worker_memory == f"{bottleneck.WORKER_MB / 1024:g}g"


def is_constant(node: ast.stmt) -> bool:
    """Return whether a statement gives a name to a constant."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    )


def test_each_prediction_was_measured() -> None:
    """One that was made and never checked says nothing; those that missed are told on the page."""
    found = read_predictions()
    assert len({each.kind for each in found}) >= 3
    assert not [
        each.name for each in found if each.measured and not each.predicted.keys() <= each.measured.keys()
    ]
    errors = [error for each in found for *_, error in each.errors()]
    assert sum(error <= WITHIN for error in errors) > 0.7 * len(errors)


def test_the_page_is_what_the_model_says() -> None:
    """Else run `python -m benchmarks.scale --page`."""
    assert PAGE.read_text() == write_page(PAGE.read_text(), UNITS)
