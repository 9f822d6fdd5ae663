"""The first page of a run's report, with every certificate; and a certificate in words.

A page fetches nothing and runs no script, whatever a record contains: values are escaped, and the page forbids the
rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from seamline.lake.store.locations import Location, replace_file
from seamline.model.protocol.certificate_checks import Certificate

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }
table { border-collapse: collapse; margin: .5em 0; }
td, th { border: 1px solid #bbb; padding: .2em .6em; text-align: left; vertical-align: top; }
.red { color: #b00020; } .green { color: #1b6e20; }
nav, footer, .modal, .card, [data-toggle=collapse] { display: none; }
td .fa-check-circle::after { content: "met"; color: #1b6e20; }
td .fa-times::after { content: "NOT MET"; color: #b00020; }
td .fa-exclamation-triangle::after { content: "not evaluated"; color: #b00020; }
"""
RENDERED = (
    "A view with a suite links to Great Expectations' page about it. Airflow's pages render it when it is opened; "
    "<code>seamline report</code> renders all of them."
)
HEAD = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta charset="UTF-8"><style>{STYLE}</style>'


def run_index_html(
    run: str, certificates: Sequence[Certificate], pages: Mapping[tuple[str, str], str]
) -> str:
    """Write the first page of a run: every certificate with its checks, red ones first.

    ``pages`` are the files of the results of suites, by view ``name/fingerprint`` and interval id.
    """
    red = sum(not each.good for each in certificates)
    ordered = sorted(certificates, key=lambda each: (each.good, each.view, each.interval))
    rows = "".join(
        certificate_row_html(each, pages.get((f"{each.view}/{each.fingerprint}", each.interval.id), ""))
        for each in ordered
    )
    note = f"<p>{RENDERED}</p>" if pages else ""
    return (
        f"<!DOCTYPE html><html><head>{HEAD}<title>{escape(run)}</title></head><body><h1>Run {escape(run)}</h1>"
        f"<p>{len(certificates)} certificates, {red} not green.</p>{note}<table><tr><th>View</th><th>Interval</th>"
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


def write_run_index(
    folder: Location, run: str, certificates: Sequence[Certificate], pages: Mapping[tuple[str, str], str]
) -> Location:
    """Write the first page of a run's report and return its file; ``pages`` as ``run_index_html`` takes them."""
    return write_whole_file(folder / "index.html", run_index_html(run, certificates, pages))


def write_whole_file(file: Location, text: str) -> Location:
    """Write a file of a report whole or not at all."""
    replace_file(file, text.encode())
    return file


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
