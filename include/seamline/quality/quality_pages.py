"""Pages that anybody can open: Great Expectations' own, and the index of a run's certificates.

A page fetches nothing and runs no script, whatever a record contains: values are escaped, what the renderer takes from
other hosts is left out, and the page forbids the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from seamline.model.protocol.certificate_checks import Certificate

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; margin: .5em 0; }
td, th { border: 1px solid #bbb; padding: .2em .6em; text-align: left; vertical-align: top; }
.red { color: #b00020; } .green { color: #1b6e20; }
nav, footer, .modal, .card { display: none; }
"""
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta charset="UTF-8"><style>{STYLE}</style>'
ACTIVE = re.compile(r"<script\b.*?</script\s*>|<(?:link|img)\b[^>]*>", re.DOTALL | re.IGNORECASE)
ELSEWHERE = re.compile(r'href="(?!#)[^"]*"', re.IGNORECASE)


def page_of(result: Any) -> str:
    """Render what Great Expectations found, by its own renderer; ``result`` is of no other use afterwards."""
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    for each in result.results:
        each.result, each.exception_info = escape_texts(each.result), escape_texts(each.exception_info)
    result.suite_name = escape_texts(result.suite_name)
    view: Any = DefaultJinjaPageView()
    return sanitize_page(view.render(ValidationResultsPageRenderer().render(result)))


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


def run_index_html(run: str, certificates: Sequence[Certificate], pages: Mapping[str, str]) -> str:
    """Write the first page of a run: every certificate with its checks, red ones first.

    ``pages`` are the files of the views' own pages, by ``name/fingerprint``.
    """
    red = sum(not each.good for each in certificates)
    ordered = sorted(certificates, key=lambda each: (each.good, each.view, each.interval))
    rows = "".join(
        certificate_row_html(each, pages.get(f"{each.view}/{each.fingerprint}", "")) for each in ordered
    )
    return (
        f"<!DOCTYPE html><html><head>{HEAD}<title>{escape(run)}</title></head><body><h1>Run {escape(run)}</h1>"
        f"<p>{len(certificates)} certificates, {red} not green.</p><table><tr><th>View</th><th>Interval</th>"
        f"<th>Cut</th><th>Checks</th></tr>{rows}</table></body></html>\n"
    )


def certificate_row_html(each: Certificate, page: str) -> str:
    """Write a certificate as a table's row."""
    view = escape(f"{each.view} {each.fingerprint}")
    view = f'<a href="{escape(page)}">{view}</a>' if page else view
    checks = "".join(
        f'<div class="{"green" if check.passed else "red"}">{"yes" if check.passed else "NO"} '
        f"{escape(check.name)}: {escape(check.found)}</div>"
        for check in each.checks
    )
    return f"<tr><td>{view}</td><td>{each.interval.id}</td><td>{each.cut}</td><td>{checks}</td></tr>"


def write_run_pages(
    folder: Path, run: str, certificates: Sequence[Certificate], pages: Mapping[str, str]
) -> Path:
    """Write a run's pages (by ``name/fingerprint``), each whole or not at all, and return the first."""
    folder.mkdir(parents=True, exist_ok=True)
    named = {view: f"{view.replace('/', '-')}.html" for view, page in pages.items() if page}
    first = folder / "index.html"
    for file, text in [
        *((folder / name, pages[view]) for view, name in named.items()),
        (first, run_index_html(run, certificates, named)),
    ]:
        fresh = file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(file)
    return first


def format_certificate(certificate: Certificate) -> Iterator[str]:
    """Describe a certificate in words."""
    made = certificate.made
    verdict = "passed" if certificate.passed else "provisional" if certificate.provisional else "NOT PASSED"
    yield f"{certificate.view} {certificate.interval}: certificate {verdict}"
    yield f"  generation {certificate.generation}, cut {certificate.cut}, version {certificate.fingerprint}"
    asked = f", asked for by {made.actor}" if made.actor else ""
    yield f"  run {certificate.run}: {certificate.reason or 'no reason given'}{asked}"
    for check in certificate.checks:
        yield f"  {'yes' if check.passed else 'NO '}  {check.name}: {check.found}"
    if made.record_version:
        yield f"  rows read by record version {made.record_version}"
    for name, versions in made.lookups.items():
        yield f"  look-up {name}: version{'s' * (len(versions) > 1)} {', '.join(versions)}"
    yield from (f"  reprocessed: {each}" for each in made.restated)
    if made.seconds:
        yield f"  built in {made.seconds:.1f} s, with all else that the run built"
