"""What Airflow's pages get from Seamline; nothing is computed here."""

from typing import ClassVar
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

PREFIX = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")


async def pages(scope, receive, send):
    """Serve our pages; imported on the first request, since every task loads the plugins."""
    from seamline.orchestration.web import app

    await app(scope, receive, send)


class SeamlinePlugin(AirflowPlugin):
    """Serves the reports of batch runs, and shows each on its run's page."""

    name = "seamline"
    fastapi_apps: ClassVar = [{"app": pages, "url_prefix": "/seamline", "name": "Seamline"}]
    external_views: ClassVar = [
        {
            "name": "Certificates",
            "href": f"{PREFIX}/seamline/reports/{{DAG_ID}}/{{RUN_ID}}/index.html",
            "destination": "dag_run",
            "url_route": "seamline_report",
        }
    ]
