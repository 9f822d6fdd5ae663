"""The pages are loaded as an API server's process starts, not as somebody asks for the first of them."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import seamline_airflow
from seamline.model.compile import catalog
from seamline.web import warming

AS_A_SERVER = """
import asyncio, sys, threading
import seamline_airflow
from starlette.applications import Starlette

assert "seamline.web.app" not in sys.modules, "every task loads the plugin"
[given] = seamline_airflow.SeamlinePlugin.fastapi_root_middlewares
app = Starlette()
app.add_middleware(given["middleware"])
assert "seamline.web.app" not in sys.modules
app.build_middleware_stack()
[thread] = [each for each in threading.enumerate() if each.name == "seamline-pages"]
thread.join()
assert "seamline.web.app" in sys.modules
"""


def test_a_server_s_process_loads_the_pages_and_no_other_does(tmp_path: Path) -> None:
    """They take seconds to import, and a task that loads the plugin has other things to do."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(AS_A_SERVER)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_request_of_airflow_s_passes_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A middleware that is none: what it was given is what serves."""
    monkeypatch.setattr(warming, "begin_warming", lambda: None)
    given = SimpleNamespace()
    assert seamline_airflow.warm(given) is given


def test_what_fails_is_left_to_the_first_page(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder of definitions that is not there yet keeps no server from starting."""

    def fail(_: object) -> None:
        raise OSError("no such folder")

    monkeypatch.setattr(catalog, "load_cached_catalog", fail)
    with caplog.at_level("INFO", logger=warming.__name__):
        warming.begin_warming().join()
    assert "OSError: no such folder" in caplog.text


def test_whoever_is_first_waits_for_the_pages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are imported beside the server's loop; from then on nothing is looked up again."""
    monkeypatch.setattr(seamline_airflow, "LOADED", [])
    app = Starlette()
    app.mount("/seamline", seamline_airflow.pages)
    with TestClient(app) as client:
        assert [client.get("/seamline/no-such-page").status_code for _ in range(2)] == [404, 404]
    assert len(seamline_airflow.LOADED) == 1
