"""Whether lineage is told, by the client's own settings; where it is not, nothing of it is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from openlineage.client import OpenLineageClient

from seamline.lineage.configuration import is_configured, read_namespace, read_pace
from seamline.model.errors import SetupError

YML = "transport:\n  type: noop\n"
CASES: Mapping[str, tuple[dict[str, str], bool]] = {
    "nothing": ({}, False),
    "a server": ({"OPENLINEAGE_URL": "http://127.0.0.1:1"}, True),
    "an empty address": ({"OPENLINEAGE_URL": ""}, False),
    "disabled": ({"OPENLINEAGE_URL": "http://127.0.0.1:1", "OPENLINEAGE_DISABLED": "TRUE"}, False),
    "JSON": ({"OPENLINEAGE__TRANSPORT": '{"type": "noop"}'}, True),
    "variables": ({"OPENLINEAGE__TRANSPORT__TYPE": "noop"}, True),
    "a file that is named": ({"OPENLINEAGE_CONFIG": "named.yml"}, True),
    "a file that is not there": ({"OPENLINEAGE_CONFIG": "absent.yml"}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_client_agrees(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What we call not configured the client would write to the console."""
    settings, configured = CASES[case]
    (tmp_path / "named.yml").write_text(YML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert is_configured() is configured
    unset = "noop" if case == "disabled" else "console"
    assert (OpenLineageClient().transport.kind != unset) is configured


@pytest.mark.parametrize("place", ["openlineage.yml", ".openlineage/openlineage.yml"])
def test_files_are_found_where_the_client_finds_them(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the working folder, or at home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not is_configured({})
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text(YML)
    assert is_configured({})
    assert OpenLineageClient().transport.kind == "noop"


def test_the_namespace_is_that_of_other_integrations() -> None:
    """Airflow's provider and ours tell of the same runs."""
    assert read_namespace({}) == "default"
    assert read_namespace({"OPENLINEAGE_NAMESPACE": "shop"}) == "shop"
    assert (
        read_namespace({"OPENLINEAGE_NAMESPACE": "shop", "AIRFLOW__OPENLINEAGE__NAMESPACE": "jobs"}) == "jobs"
    )


def test_the_pace_is_a_length_of_time() -> None:
    """A minute, unless a variable says otherwise."""
    assert read_pace({}) == 60
    assert read_pace({"SEAMLINE_LINEAGE_EVERY": "10 seconds"}) == 10
    with pytest.raises(SetupError, match="SEAMLINE_LINEAGE_EVERY"):
        read_pace({"SEAMLINE_LINEAGE_EVERY": "often"})


def test_without_a_server_nothing_is_imported() -> None:
    """Neither the client nor our own part, by the job of a stream and the modules of Airflow's tasks."""
    code = """
import sys
from types import SimpleNamespace
from seamline.jobs.stream import report_lineage
from seamline.lineage.configuration import is_configured
from seamline.orchestration.lineage.reported_tasks import report_build, report_publication
assert not is_configured()
for told in (report_lineage(SimpleNamespace(alone=False)), report_build({}, None, None), report_publication({}, None)):
    with told:
        pass
found = [name for name in sys.modules if name.startswith(("openlineage", "seamline.lineage.", "seamline.plan.lineage"))]
assert found == ["seamline.lineage.configuration"], found
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OPENLINEAGE")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
