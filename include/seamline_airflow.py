"""The Airflow plugin of an installed Seamline: its pages.

Every task loads the plugins: this module stands outside of the package, and computes nothing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

PREFIX = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
HAS_PAGES = all(map(find_spec, ("limits", "plotly")))
"""Whether the extra ``web`` is installed: without it there are no pages to link to."""


async def pages(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve our pages; imported on the first request.

    They are told which application they stand in: they ask its REST API with their reader's own login.
    """
    from seamline.web.app import app
    from seamline.web.inside import AIRFLOW

    await app({**scope, AIRFLOW: scope.get("app")}, receive, send)


APPS = [{"app": pages, "url_prefix": "/seamline", "name": "Seamline"}]
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
    external_views: ClassVar = VIEWS if HAS_PAGES else []  # type: ignore[misc]
