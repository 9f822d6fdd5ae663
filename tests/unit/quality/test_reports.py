"""The certificate in words, and the pages of a run: what they tell, and what they never do."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.past import NOW
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.cli import main
from seamline.lake.store.locations import Location, parse_location
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.expectations import Expect, ExpectationSuite
from seamline.model.errors import SetupError
from seamline.model.protocol.certificate_checks import Certificate, Making
from seamline.model.protocol.epoch import Epoch
from seamline.model.protocol.manifest import Act, How, Manifest, Statement
from seamline.model.time.intervals import Interval
from seamline.quality import data_docs, suites
from seamline.quality.certify import (
    certify_run,
    find_replaced_generations,
)
from seamline.quality.log_until_cut import lookup_versions_by_interval
from seamline.quality.quality_pages import format_certificate

pytestmark = pytest.mark.slow

EVIL = "<script>alert(1)</script>"
SUITE = ExpectationSuite(
    [{"type": "expect_column_max_to_be_between", "kwargs": {"column": "total", "min_value": 5}}]
)
EXPECTED = [Expect("total", at_least=5), SUITE]
EXPECTING = DEFINITION.replace(
    '"largest": max("amount")},',
    f'"largest": max("amount")}}, expect=[Expect("total", at_least=5), ExpectationSuite({SUITE.expectations!r})],',
).replace("import Batch,", "import Batch, Expect, ExpectationSuite,")


class Tags(HTMLParser):
    """What a browser would act on."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.fixture
def shop(tmp_path: Path, warehouse: Location, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days that one run has built: a total of 4 on the first, which is less than is expected, and 9."""
    definitions = tmp_path / "definitions"
    definitions.mkdir()
    (definitions / "shop.py").write_text(EXPECTING)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(definitions))
    plain = sales_pipeline().definition
    view = replace(plain.views[0], expect=EXPECTED)
    shop = Shop(warehouse, compile_pipeline(replace(plain, views=[view])))
    shop.epoch([Sale(1, EVIL, 4), Sale(25 * 60, "b", 9)], watermark=START + 2 * DAY)
    for day in range(2):
        interval = shop.build(day, 0, "g", publish=False)
        row = BuildRow(
            "scheduled__<b>1", shop.view.id, interval.id, "g", 0, 1, 1, 1, 0, 0, "", 2.5, "nightly", NOW
        )
        Builds.ensure(shop.layout).append([row])
    return shop


@pytest.mark.everywhere
def test_the_certificate_is_told_in_words_with_its_report(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever is woken at night reads one page."""
    certified = certify_run(shop.compiled, shop.layout, "scheduled__<b>1", actor="airflow:ada")
    assert [each.passed for each in certified] == [False, True]
    assert main(["certificate", "shop.sales", "2013-01-01"]) == 1
    told = capsys.readouterr().out
    assert "certificate NOT PASSED" in told
    assert "NO   expectations: total at least 5: 1 of 1 rows are not, for example 4" in told
    assert "run scheduled__<b>1: nightly, asked for by airflow:ada" in told
    assert f"record version {shop.compiled.record_version}" in told
    assert "built in 2.5 s" in told
    assert parse_location(told.partition("report ")[2].strip()).is_file()
    assert main(["certificate", "shop.sales", "2013-01-02", "--generation", "g"]) == 0
    assert main(["certificate", "shop.sales", "2013-01-03"]) == 4


@pytest.mark.everywhere
def test_the_report_of_a_run_links_to_great_expectations_own_pages(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every expectation with what was observed, from the tool that evaluated it; red certificates first."""
    certify_run(shop.compiled, shop.layout, "scheduled__<b>1")
    folder = shop.layout.report("scheduled__<b>1")
    index = (folder / "index.html").read_text()
    assert "2 certificates, 1 not green" in index and "scheduled__&lt;b&gt;1" in index
    assert index.index("2013-01-01T00:00:00Z") < index.index("2013-01-02T00:00:00Z")
    red, green = Tags(index).links
    assert not list(folder.glob("sales*.html"))
    assert main(["report", "shop", "--run", "scheduled__<b>1"]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "index.html")
    assert "greater than or equal to" in (folder / red).read_text()
    for page, day, verdict in ((red, "2013-01-01", "fa-times"), (green, "2013-01-02", "fa-check-circle")):
        assert f"sales {day}T00:00:00Z" in (folder / page).read_text()
        assert f'<i class="fas {verdict}' in (folder / page).read_text()
    assert main(["report", "shop", "--run", "nothing"]) == 4


def test_a_page_is_rendered_when_it_is_opened_and_only_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library is in the process that renders, and in no server; the second who opens it waits for nothing."""
    certify_run(shop.compiled, shop.layout, "scheduled__<b>1")
    folder = shop.layout.report("scheduled__<b>1")
    page = min(data_docs.list_pages(folder))
    rendered = data_docs.render_in_process(folder, page)
    assert rendered and "Expectation" in rendered.read_text()
    monkeypatch.setattr(data_docs.subprocess, "run", None)
    assert data_docs.render_in_process(folder, page) == rendered
    assert data_docs.render_in_process(folder, "index.html") is None
    assert data_docs.render_page(folder, "other.html") is None


def test_a_page_of_an_earlier_attempt_is_gone(shop: Shop) -> None:
    """Whoever opens it after a task was cleared must not read the verdict of before."""
    folder = shop.layout.report("r")
    for met in (True, False):
        results = {"2013-01-01T00:00:00Z": {"success": met, "results": [], "statistics": {}, "meta": {}}}
        [page] = data_docs.write_results(folder, "sales/abc", results).values()
        assert not (folder / page).exists()
        (folder / page).write_text("rendered")


def test_a_build_is_compared_with_what_it_replaced(shop: Shop) -> None:
    """Cleared after it was published, or after another, it would be compared with itself, or with a later one."""
    place = (shop.view.id, "2013-01-01T00:00:00Z")
    stated = [
        Statement(Act.PUBLISH, *place[:1], interval=place[1], generation=name, how=how)
        for name, how in (("a", How.PROVISIONAL), ("b", How.CERTIFIED), ("c", How.CERTIFIED))
    ]
    manifest = Manifest(history={place: tuple(stated)})
    builds = Builds.ensure(shop.layout).of("scheduled__<b>1")[:1]
    found = {
        name: find_replaced_generations(manifest, [replace(builds[0], interval=place[1], expected=name)])
        for name in ("", "a", "b")
    }
    assert found == {"": {}, "a": {}, "b": {place[1]: "b"}}


def test_a_server_without_the_library_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages' extra does not bring it."""
    certify_run(shop.compiled, shop.layout, "scheduled__<b>1")
    folder = shop.layout.report("scheduled__<b>1")
    monkeypatch.setattr(data_docs.sys, "executable", "/bin/false")
    with pytest.raises(SetupError, match="could not render sales"):
        data_docs.render_in_process(folder, min(data_docs.list_pages(folder)))


def test_no_page_runs_or_fetches_anything(shop: Shop) -> None:
    """A record is written by strangers, and a report is opened by whoever may deploy."""
    certify_run(shop.compiled, shop.layout, "scheduled__<b>1")
    assert main(["report", "shop", "--run", "scheduled__<b>1"]) == 0
    pages = list(shop.layout.report("scheduled__<b>1").glob("*.html"))
    assert len(pages) == 3
    for file in pages:
        page = Tags(file.read_text())
        assert not {"script", "link", "img", "iframe", "form"} & set(page.tags)
        assert all(
            link.startswith("#") or (link.endswith(".html") and "/" not in link) for link in page.links
        )
        assert "default-src 'none'" in file.read_text()


def test_a_value_that_is_markup_is_text_on_the_page(shop: Shop) -> None:
    """Great Expectations escapes some cells and not others."""
    rule = {"type": "expect_column_values_to_not_match_regex", "kwargs": {"column": "region", "regex": "<"}}
    view = replace(shop.compiled.views[0], expect=(ExpectationSuite([rule]),), name=EVIL)
    rows = pa.table({"region": [EVIL, "<b>bold</b>"], "interval": ["i", "i"]})
    html = data_docs.render_results_html(suites.evaluate_suites(view, rows).results["i"])
    assert "alert(1)" in html
    assert not {"script", "b"} & set(Tags(html).tags)


def test_a_certificate_says_how_its_generation_was_made() -> None:
    """What one needs to make the number again; certificates of earlier releases say less and are read."""
    day = Interval(START, START + DAY)
    made = Making("v2", {"cities": ("a", "b")}, ("cities to b",), 10, 1.5, "cli:ada", "reports/r/index.html")
    one = Certificate("v", "f", "g", day, 7, "r", "", START, (), made)
    assert Certificate.from_json(one.to_json()) == one
    assert "look-up cities: versions a, b" in "\n".join(format_certificate(one))
    older = one.to_json().partition(', "made"')[0] + "}"
    assert Certificate.from_json(older) == replace(one, made=Making())


def test_the_versions_of_look_ups_are_those_of_the_epochs_that_brought_rows() -> None:
    """A table that changed on Friday is not in Monday's number."""
    epochs = [
        Epoch(number, 1, START, "v", accepted={day: 1}, lookups={"cities": version})
        for number, day, version in ((0, "mon", "a"), (1, "mon", "b"), (2, "mon", "a"), (3, "fri", "c"))
    ]
    assert lookup_versions_by_interval(epochs) == {"mon": {"cities": ("a", "b")}, "fri": {"cities": ("c",)}}
