"""The reconcile task looks at the stream: its log is where Airflow's users read what is raised."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.shop import DEFINITION

from seamline.lake.status.marks import REFUSED, leave_mark, read_mark
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.orchestration import reconciling


@pytest.fixture
def layout(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(DEFINITION)
    for name, place in [("HOME", "home"), ("WAREHOUSE", "warehouse"), ("PIPELINES", "")]:
        monkeypatch.setenv(f"SEAMLINE_{name}", str(tmp_path / place))
    layout = Layout(tmp_path / "warehouse", "shop")
    ControlTable.ensure(layout).want(Desired.STOPPED, actor="ada", reason="sale", now=datetime.now(UTC))
    return layout


def test_what_is_raised_is_printed_at_each_run(layout, tmp_path, capsys):
    """Told once, and shown as long as it lasts."""
    leave_mark(layout, REFUSED, now=datetime.now(UTC), why="b holds it")
    reconciling.look_for_alerts("shop", {})
    assert "ALERT raised lease_refused" in capsys.readouterr().out
    reconciling.look_for_alerts("shop", {})
    out = capsys.readouterr().out
    assert "ALERT" not in out
    assert "raised: lease_refused" in out


def test_whoever_cannot_look_starts_the_stream_all_the_same(layout, tmp_path, capsys):
    """A definition that is broken while it is edited is no reason to leave a stream down."""
    (tmp_path / "shop.py").write_text("no python")
    reconciling.look_for_alerts("shop", {})
    assert "alerts not looked for" in capsys.readouterr().out


def test_a_look_leaves_its_mark(layout, tmp_path, monkeypatch):
    """The list says since when nobody has reconciled; a stream that is stopped is looked at too."""

    class Context(dict):
        def __missing__(self, name: str) -> dict[str, object]:
            return {}

    monkeypatch.setattr(reconciling, "get_current_context", Context)
    monkeypatch.setattr(reconciling, "read_order", lambda *_: None)
    monkeypatch.setattr(reconciling, "show_pages", lambda *_: None)
    monkeypatch.setattr(reconciling, "find_run_actor", lambda _: "airflow")
    monkeypatch.setattr(reconciling, "connection_env_if_any", lambda _: {})
    with pytest.raises(reconciling.AirflowSkipException, match="stopped by ada"):
        reconciling.reconcile("shop", "kafka_default", None)
    mark = read_mark(layout, "reconciled")
    assert mark is not None
    assert (datetime.now(UTC) - mark[0]).total_seconds() < 60
