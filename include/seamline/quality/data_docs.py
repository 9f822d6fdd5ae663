"""Data Docs: the pages on which Great Expectations shows its results, rendered when somebody opens one.

A certificate keeps the results alone: rendering takes the library, and most pages are never opened. A page fetches
nothing and runs no script, whatever a record contains: values are escaped, what the renderer takes from other hosts is
left out, and the page forbids the rest.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import escape
from threading import Lock
from typing import Any

from seamline.lake.store.locations import Location, delete_files, list_places, parse_location
from seamline.model.errors import SetupError, TooSlow
from seamline.quality.quality_pages import HEAD, write_whole_file
from seamline.quality.suites import import_great_expectations

RESULTS = ".results.json"
WAITS, LONGEST = 20.0, 120.0
"""Seconds that a page waits for others to be rendered, and that its own rendering may take."""
log = logging.getLogger("seamline.batch")
rendering = Lock()
"""Held while a process renders: each takes a core for seconds."""
ACTIVE = re.compile(r"<script\b.*?</script\s*>|<(?:link|img)\b[^>]*>", re.DOTALL | re.IGNORECASE)
ELSEWHERE = re.compile(r'href="(?!#)[^"]*"', re.IGNORECASE)


def name_page(view: str, interval: str) -> str:
    """Name the page about an interval of a view version ``name/fingerprint``."""
    return f"{view.replace('/', '-')}-{re.sub('[-:]', '', interval)}.html"


def write_results(folder: Location, view: str, results: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Keep the results of a view version, and return the names of their pages; both by interval id."""
    pages = {interval: name_page(view, interval) for interval in results}
    if results:
        named = {pages[interval]: each for interval, each in results.items()}
        write_whole_file(folder / f"{view.replace('/', '-')}{RESULTS}", json.dumps(named))
        # What was rendered of an earlier attempt says something else.
        delete_files(folder / page for page in named)
    return pages


def list_pages(folder: Location) -> dict[str, Location]:
    """List the pages of a run's folder with the file of the results of each."""
    found = list_places(folder, f"*{RESULTS}")
    return {page: file for file in found for page in json.loads(file.read_text(encoding="utf-8"))}


def render_page(folder: Location, page: str) -> Location | None:
    """Render a page of a run's folder unless it is there, and return its file; None if there are no results for it."""
    done, file = folder / page, list_pages(folder).get(page)
    if file and not done.is_file():
        results = json.loads(file.read_text(encoding="utf-8"))
        write_whole_file(done, render_results_html(results[page]))
    return done if done.is_file() else None


def render_in_process(folder: Location, page: str) -> Location | None:
    """Render a page in a process of its own, as ``render_page`` does; a server need not keep the library in memory.

    SetupError where the library is not installed.
    """
    done = folder / page
    if page not in list_pages(folder):
        return None
    if not rendering.acquire(timeout=WAITS):
        raise TooSlow(f"Other pages are being rendered before {page}.", hint="try again in a minute.")
    try:
        if not done.is_file():
            command = [sys.executable, "-P", "-m", "seamline.quality.data_docs", str(folder), page]
            try:
                subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONGEST)
            except subprocess.SubprocessError as error:
                log.warning("%s was not rendered: %s", done, getattr(error, "stderr", "") or error)
                raise SetupError(
                    f"Great Expectations could not render {page}; the log of this process says why.",
                    hint="seamline report renders the pages where builds run: with seamline[spark] installed.",
                ) from error
    finally:
        rendering.release()
    return done


def render_results_html(result: Mapping[str, Any]) -> str:
    """Render what Great Expectations found, by its own renderer."""
    import_great_expectations()
    from great_expectations.core.expectation_validation_result import expectationSuiteValidationResultSchema
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    found = expectationSuiteValidationResultSchema.load(result)
    for each in found.results:
        each.result, each.exception_info = escape_texts(each.result), escape_texts(each.exception_info)
    found.suite_name = escape_texts(found.suite_name)
    view: Any = DefaultJinjaPageView()
    return sanitize_page(view.render(ValidationResultsPageRenderer().render(found)))


def escape_texts(value: Any) -> Any:
    """Escape every text in JSON-like facts: the renderer escapes some and not others."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {name: escape_texts(each) for name, each in value.items()}
    return [escape_texts(each) for each in value] if isinstance(value, Sequence) else value


def sanitize_page(html: str) -> str:
    """Take out what would run, or be fetched from elsewhere, and forbid it."""
    quiet = ELSEWHERE.sub('href="index.html"', ACTIVE.sub("", html))
    return quiet.replace("<head>", f"<head>{HEAD}", 1)


if __name__ == "__main__":
    sys.exit(render_page(parse_location(sys.argv[1]), sys.argv[2]) is None)
