"""What Prometheus reads: names that it likes, values by hand, and a scrape that one broken stream does not end."""

from __future__ import annotations

import re
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.plan.test_observation import NOW, OBSERVED
from tests.unit.shop import DEFINITION

from seamline.cli import main
from seamline.lake.storage import log_store
from seamline.lake.store.locations import replace_file
from seamline.plan.stream.observation import Observation
from seamline.plan.stream.rule_counts import RuleCount
from seamline.plan.stream.stream_state import Actual
from seamline.supervisor.metrics.metric_families import PipelineCollector
from seamline.supervisor.metrics.registry import ALL_FAMILIES, make_metrics_registry
from seamline.supervisor.metrics.stream_metrics import FAMILIES

DOCS = Path(__file__).parents[3] / "docs" / "operating.md"


def scraped(*observed: Observation) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples that a scrape shows, by name, pipeline and the values of the other labels by name."""
    made = CollectorRegistry()
    made.register(PipelineCollector(FAMILIES, lambda: observed))
    text = generate_latest(made).decode()
    return {
        family.name: {
            (
                each.labels["pipeline"],
                *(each.labels[name] for name in sorted({*each.labels} - {"pipeline"})),
            ): each.value
            for each in family.samples
        }
        for family in text_string_to_metric_families(text)
    }


def test_every_metric_says_what_is_observed():
    """A dashboard shows what the list shows."""
    seen = replace(
        OBSERVED,
        frontiers={"by_customer/ab": 30, "by_day/cd": 41},
        seconds={"files": 0.5},
        trigger={"addBatch": 0.7, "rows_per_second": 9.0},
        disk_free=0.25,
        rules={"limits": RuleCount(6, 1)},
    )
    found = scraped(seen)
    assert found["seamline_stream_up"] == {("orders",): 0.0}
    assert found["seamline_stream_wanted"] == {("orders",): 1.0}
    assert {key for key, value in found["seamline_stream_state"].items() if value} == {("orders", "waiting")}
    assert len(found["seamline_stream_state"]) == len(Actual)
    assert found["seamline_epoch"] == {("orders",): 41.0}
    assert found["seamline_epoch_timestamp_seconds"] == {("orders",): NOW.timestamp() - 30}
    assert found["seamline_epoch_phase_seconds"] == {("orders", "files"): 0.5}
    assert found["seamline_trigger_phase_seconds"] == {("orders", "addBatch"): 0.7}
    assert found["seamline_lag_records"] == {("orders", "0", "shop.orders"): 1234.0}
    assert found["seamline_lag_seconds"] == {("orders",): 95.0}
    assert found["seamline_catch_up_seconds"] == {("orders",): float("inf")}
    assert found["seamline_watermark_timestamp_seconds"] == {("orders",): NOW.timestamp() - 600}
    assert found["seamline_view_behind_epochs"] == {
        ("orders", "by_customer/ab"): 11.0,
        ("orders", "by_day/cd"): 0.0,
    }
    assert found["seamline_driver_restarts"] == {("orders",): 3.0}
    assert found["seamline_holes_undecided"] == {("orders",): 1.0}
    assert found["seamline_lookup_rules"] == {
        ("orders", "limits", "in_force"): 6.0,
        ("orders", "limits", "waiting"): 1.0,
    }
    assert found["seamline_warehouse_free_ratio"] == {("orders",): 0.25}
    assert found["seamline_observation_errors"] == {("orders",): 1.0}
    assert found["seamline_alert"] == {("orders", "growing_lag", ""): 1.0}
    assert set(found) == {each.name.removesuffix("_total") for each in FAMILIES}


def test_what_is_not_known_is_not_there():
    """A zero where nothing is known would calm people down."""
    found = scraped(Observation("orders", NOW))
    assert found["seamline_stream_up"] == {("orders",): 0.0}
    assert found["seamline_lag_seconds"] == found["seamline_epoch"] == found["seamline_holes_undecided"] == {}


@pytest.mark.parametrize("family", ALL_FAMILIES, ids=lambda each: each.name)
def test_names_and_help_are_prometheus_own(family):
    """Units at the end, in base units; every metric is explained, also in the documentation."""
    assert re.fullmatch(r"seamline_[a-z_]+", family.name)
    assert family.help.endswith(".")
    assert not re.search(r"_(ms|millis|minutes|percent)$", family.name)
    assert f"`{family.name}`" in DOCS.read_text()


@pytest.fixture
def two(tmp_path, warehouse, monkeypatch):
    """Two streams, of which one has broken files and no definition any more."""
    folder = tmp_path / "pipelines"
    folder.mkdir()
    (folder / "shop.py").write_text(DEFINITION)
    replace_file(log_store.entry_path(warehouse / "ruin" / "control", 0), b"no JSON\n")
    for name, place in [("PIPELINES", folder), ("HOME", tmp_path)]:
        monkeypatch.setenv(f"SEAMLINE_{name}", str(place))


def test_a_broken_stream_does_not_end_the_scrape(two):
    """The others' alarms hang on it."""
    server, thread = start_http_server(0, "127.0.0.1", make_metrics_registry(broker=False))
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=20) as answer:
            text = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert 'seamline_stream_up{pipeline="ruin"} 0.0' in text
    assert 'seamline_observation_errors{pipeline="ruin"} 1.0' in text
    assert 'seamline_observation_errors{pipeline="shop"} 0.0' in text


@pytest.mark.everywhere
def test_the_command_prints_them_once(two, capsys):
    """For a textfile collector, or to look."""
    assert main(["metrics", "--once", "--no-broker"]) == 0
    assert 'seamline_stream_wanted{pipeline="shop"} 0.0' in capsys.readouterr().out
    assert main(["stream", "list", "--no-broker"]) == 0
    assert re.search(r"ruin +unknown +unknown", capsys.readouterr().out)


def test_a_port_that_is_taken_is_said(two, capsys):
    """A second exporter on a host is a mistake of the unit file, not a stack trace."""
    server, thread = start_http_server(0, "127.0.0.1", CollectorRegistry())
    try:
        assert main(["metrics", "--port", str(server.server_port)]) == 6
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert "choose another --port" in capsys.readouterr().err
