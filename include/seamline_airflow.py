"""The Airflow plugin of an installed Seamline: its pages.

Every task loads the plugins: this module stands outside of the package, and computes nothing.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

PREFIX = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
HAS_PAGES = all(map(find_spec, ("limits", "plotly")))
"""Whether the extra ``web`` is installed: without it there are no pages to link to."""
LOADED: list[tuple[Any, str]] = []
"""Our application, once it is loaded."""


async def pages(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve our pages; while they are loaded, whoever asks for one waits, and nobody else.

    They are told which application they stand in: they ask its REST API with their reader's own login.
    """
    if not LOADED:
        LOADED.append(await asyncio.to_thread(load_app))
    app, inside = LOADED[0]
    await app({**scope, inside: scope.get("app")}, receive, send)


def load_app() -> tuple[Any, str]:
    """Import our application, and the name by which it is told in which one it stands."""
    from seamline.web.app import app
    from seamline.web.inside import AIRFLOW

    return app, AIRFLOW


def warm(app: Any) -> Any:
    """Begin to load our pages as a process of an API server starts, and stand in no request's way.

    Airflow takes it for a middleware, and calls it in these processes only.
    """
    from seamline.web.warming import begin_warming

    begin_warming()
    return app


APPS = [{"app": pages, "url_prefix": "/seamline", "name": "Seamline"}]
WARMS = [{"middleware": warm, "name": "Seamline's pages are loaded"}]
VIEWS = [
    {"name": "Seamline", "href": f"{PREFIX}/seamline/", "destination": "nav", "url_route": "seamline"},
    {
        "name": "Seamline",
        "href": f"{PREFIX}/seamline/dags/{{DAG_ID}}",
        "destination": "dag",
        "url_route": "seamline_dag",
    },
    {
        "name": "Certificates",
        "href": f"{PREFIX}/seamline/reports/{{DAG_ID}}/{{RUN_ID}}/index.html",
        "destination": "dag_run",
        "url_route": "seamline_report",
    },
]


class SeamlinePlugin(AirflowPlugin):
    """Puts the pages into Airflow's navigation, a pipeline's onto its DAGs, and a run's report onto the run."""

    name = "seamline"
    fastapi_apps: ClassVar = APPS if HAS_PAGES else []  # type: ignore[misc] # Airflow reads them of the class.
    fastapi_root_middlewares: ClassVar = WARMS if HAS_PAGES else []  # type: ignore[misc]
    external_views: ClassVar = VIEWS if HAS_PAGES else []  # type: ignore[misc]
