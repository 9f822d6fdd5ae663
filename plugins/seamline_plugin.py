"""What Airflow's pages get from Seamline; nothing is computed here."""

from typing import ClassVar
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

PREFIX = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")


async def pages(scope, receive, send):
    """Serve our pages; imported on the first request, since every task loads the plugins.

    They are told which application they stand in: they ask its REST API with their reader's own login.
    """
    from seamline.web.app import app
    from seamline.web.inside import AIRFLOW

    await app({**scope, AIRFLOW: scope.get("app")}, receive, send)


class SeamlinePlugin(AirflowPlugin):
    """Puts the pages into Airflow's navigation, a pipeline's onto its DAGs, and a run's report onto the run."""

    name = "seamline"
    fastapi_apps: ClassVar = [{"app": pages, "url_prefix": "/seamline", "name": "Seamline"}]
    external_views: ClassVar = [
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
