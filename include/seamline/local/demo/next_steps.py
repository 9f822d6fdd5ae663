"""What to look at once a demo is through: five pages and three commands."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

PAGES = (
    ("which days are certified, and why", "/seamline/pipelines/flights/completeness"),
    ("the view: what each layer adds, and the seam", "/seamline/pipelines/flights/views/delay_by_carrier"),
    ("what each rebuild has corrected, by cause", "/seamline/pipelines/flights/differences"),
    ("the stream: lag, epochs, refused records, stop and start", "/seamline/pipelines/flights/stream"),
    ("the runs that Airflow made, and its trigger form", "/dags/flights__batch"),
)
"""What a page shows, and where it is in Airflow."""


def list_next_steps(url: str, exports: str, told: tuple[str, datetime] | None) -> Iterator[str]:
    """List the pages of a demo's Airflow, and commands for a terminal that reads its ``exports``.

    ``told`` is the carrier and the hour of the row to explain.
    """
    yield "Look at:"
    width = max(len(shows) for shows, _ in PAGES)
    for shows, place in PAGES:
        yield f"  {shows:<{width}}  {url}{place}"
    yield ""
    yield f"Try, in another terminal, after `. {exports}`:"
    if told:
        carrier, hour = told
        yield f"  seamline explain flights.delay_by_carrier --key carrier={carrier} --window {hour:%Y-%m-%dT%H:%M}"
    yield "  seamline plan flights --why"
    yield "  seamline stream list"
