"""Buttons on a task's page in Airflow: the interval, the certificates and the driver's log that it is about.

The task says which pages these are while it runs (``show_pages``); Airflow asks when it has ended, in its process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urljoin

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

HELD = "seamline_pages"
"""The attribute of a running task that has the paths of its pages, by the links' names."""


class PageLink(BaseOperatorLink):
    """A link to one of our pages; there is none where the task has named no page."""

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the page's address."""
        path = getattr(operator, HELD, {}).get(self.name)
        return address_of(path) if path else ""


class IntervalLink(PageLink):
    """The interval of a view on the page of its completeness."""

    name = "Interval"


class CertificateLink(PageLink):
    """The report of a run: the certificates of its intervals."""

    name = "Certificates"


class DriverLogLink(PageLink):
    """The last lines of a stream's driver."""

    name = "Driver log"


class RunLink(PageLink):
    """A run that the task has started."""

    name = "Run"


INTERVAL, CERTIFICATES, DRIVER_LOG, RUN = (
    each.name for each in (IntervalLink, CertificateLink, DriverLogLink, RunLink)
)


def address_of(path: str) -> str:
    """Return the address of a page by its path from ours, which are below Airflow's own."""
    base = conf.get("api", "base_url", fallback="") or "/"
    return urljoin(f"{base.rstrip('/')}/", f"seamline/{path}")


def show_pages(operator: Any, pages: Mapping[Any, str]) -> None:
    """Let the links of a running task lead to some pages, beside those it has named before."""
    setattr(operator, HELD, {**getattr(operator, HELD, {}), **pages})


def with_links(made: Any, *links: PageLink) -> Any:
    """Give links to the task of a function, and return what the call of ``@task`` has."""
    made.operator.operator_extra_links = links
    return made


def interval_page(pipeline: str, view: str, interval: str) -> str:
    """Return the path of an interval's page."""
    query = urlencode({"view": view, "interval": interval})
    return f"pipelines/{quote(pipeline)}/completeness?{query}"


def report_page(pipeline: str, run: str) -> str:
    """Return the path of a run's certificates."""
    return f"reports/{quote(pipeline)}__batch/{quote(run, safe='')}/index.html"


def driver_log_page(pipeline: str) -> str:
    """Return the path of a driver's last lines."""
    return f"pipelines/{quote(pipeline)}/log"
