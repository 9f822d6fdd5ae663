"""The DAG that imports files: what its form means, and what its first task plans, shows and asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from airflow.sdk.exceptions import AirflowSkipException
from tests.unit.shop import Shop

from seamline.lake.imports.import_plans import load_plan
from seamline.lake.tables.decided import list_imports
from seamline.model.errors import BadRange
from seamline.orchestration import importing
from seamline.orchestration.importing import IMPORT, read_request

PARAMS = {name: field.value for name, field in IMPORT.items()}


def test_the_form_says_what_the_command_would() -> None:
    """Empty, it goes on with what was asked for."""
    assert read_request(PARAMS, "ada") is None
    found = read_request(
        {
            **PARAMS,
            "from": "/history",
            "map": ["shop=store", "_key=user"],
            "until": "2026-01-01T00:00:00Z",
            "version": 7,
            "csv_delimiter": ";",
        },
        "ada",
    )
    assert found
    assert (found.place, found.actor, found.version) == ("/history", "ada", 7)
    assert found.columns == {"shop": "store", "_key": "user"}
    assert found.until == datetime(2026, 1, 1, tzinfo=UTC)
    assert found.dialect.delimiter == ";"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"map": ["shop"]}, "map: a line is not NAME=COLUMN"),
        ({"map": ["a=b", "a=c"]}, "a name is there twice"),
        ({"map": "a=b"}, "map: 'a=b' is not a list"),
        ({"disjoint": "perhaps"}, "disjoint"),
    ],
)
def test_a_wrong_field_is_named(wrong: dict[str, object], words: str) -> None:
    """REST takes any JSON."""
    with pytest.raises(BadRange, match=words):
        read_request({**PARAMS, "from": "/history", **wrong}, "ada")


def test_a_plan_is_shown_and_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A dry run asks for nothing, and so does one that finds nothing new."""
    shop = Shop(tmp_path)
    rows = {
        "id": [1, 2, 3],
        "sold_at": pa.array(
            [datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC")
        ),
    }
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    pushed: dict[str, list[str]] = {}
    run = SimpleNamespace(run_type=SimpleNamespace(value="manual"), triggering_user_name="ada")
    params = {
        **PARAMS,
        "from": str(tmp_path / "rows.parquet"),
        "disjoint": True,
        "dry_run": True,
        "reason": "years",
    }
    context = {
        "dag_run": run,
        "ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value})),
        "params": params,
    }
    monkeypatch.setattr(importing, "get_current_context", lambda: context)
    monkeypatch.setattr(importing, "open_compiled_pipeline", lambda _: (shop.compiled, shop.layout))
    monkeypatch.setattr(importing, "connection_env", lambda name: {})
    with pytest.raises(AirflowSkipException, match="dry run"):
        importing.plan_import("shop", "kafka_default")
    assert "3 rows of 1 file" in pushed["plan"][1]
    assert list_imports(shop.layout) == ()
    params["dry_run"] = False
    ids = importing.plan_import("shop", "kafka_default")
    [asked] = list_imports(shop.layout)
    assert (asked.end, asked.actor, asked.reason) == (3, "airflow:ada", "years")
    assert load_plan(shop.layout, asked.id).rows == 3
    assert ids == [asked.id]
    assert importing.plan_import("shop", "kafka_default") == ids, "it is not done yet"
    assert list_imports(shop.layout) == (asked,)
