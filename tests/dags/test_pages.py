"""The pages over a shop's tables: their figures are those of the tables, and what records hold is text."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from html import unescape
from types import SimpleNamespace

import pytest
from tests.dags.server import EVIL
from tests.unit.past import build
from tests.unit.shop import DAY, DEFINITION, START, Sale, Shop, sales_pipeline

from seamline.lake.log.master import Master
from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.compile.catalog import load_catalog
from seamline.orchestration.dag_docs import format_dag_doc
from seamline.quality.run_comparing import compare_run
from seamline.serve.read import read
from seamline.supervisor import observe
from seamline.web import pages, query_page, view_page
from seamline.web.answers.downloads import LINES
from seamline.web.glance import card_halves, completeness_page, timeline_page

PAGES = (
    "",
    "graph",
    "timeline",
    "completeness",
    "differences",
    "views",
    "views/sales",
    "stream",
    "lookups",
    "questions",
    "counts",
    "plan",
    "imports",
    "audits",
)


def page(client, path: str, **params) -> str:
    """Open a page."""
    answer = client.get(path, params=params or None, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


def figure(text: str, id: str) -> dict:
    """Return the data of a chart."""
    [found] = re.findall(rf'<script type="application/json" id="{id}">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_nothing_says_so(client, shop, name: str) -> None:
    """Each opens, and calls nothing of another host; what a page needs, it has."""
    text = page(client, f"/pipelines/shop/{name}" if name else "/")
    assert "<h1>" in text and 'lang="en"' in text
    assert not re.findall(r'(?:src|href)="https?://', text)


def test_the_overview_tells_every_pipeline(client, shop) -> None:
    """Certified to the end of the first day, and what is wrong."""
    text = page(client, "/")
    assert re.search(r'href="/pipelines/shop/graph">shop</a>', text)
    assert "2013-01-02T00:00:00Z" in text


@pytest.mark.everywhere
def test_answers_are_read_again_when_they_have_changed(shop, monkeypatch) -> None:
    """Not otherwise: of many pipelines most are as they were."""
    first = card_halves.read_new_answers("shop", None)
    with monkeypatch.context() as nobody:
        nobody.setattr(card_halves, "read_answers", lambda *_: pytest.fail("they were read again"))
        assert card_halves.read_new_answers("shop", first) is first
    shop.epoch([Sale(5, "a", 1)])
    second = card_halves.read_new_answers("shop", first)
    assert (first.debts, second.debts) == (0, 1)
    build(shop, "h", cut=1)
    third = card_halves.read_new_answers("shop", second)
    assert third.debts == 0 and third.built is not None
    file = definitions_folder() / "shop.py"
    file.write_text(file.read_text().replace("    batch=", '    tags=["edited"],\n    batch=', 1))
    assert card_halves.read_new_answers("shop", third) is not third


@pytest.mark.everywhere
def test_completeness_is_drawn_and_an_interval_is_told_in_full(client, shop: Shop) -> None:
    """One certified and one open day; the certificate, the plan and the button of the one that is clicked."""
    text = page(client, "/pipelines/shop/completeness", interval="2013-01-01T00:00:00Z", view="sales")
    assert 'aria-label="sales 2013-01-01T00:00:00Z: certified"' in text
    assert 'aria-label="sales 2013-01-02T00:00:00Z: open"' in text
    assert "Certificate of g" in text and "What a rebuild would do" in text
    assert 'data-post="/api/v1/runs/shop"' in text and 'name="to" value="2013-01-02T00:00:00Z"' in text


def test_a_month_is_drawn_in_full_and_its_table_is_paged(client, shop: Shop, monkeypatch) -> None:
    """A month, or a year of days, leads to its intervals; what nobody asked for is the newest."""
    text = page(client, "/pipelines/shop/completeness")
    assert 'aria-label="2013-01: 1 open, 1 certified"' in text
    assert 'aria-label="Intervals of sales in 2013"' in text
    assert text.count('class="tag certified"') == 2 and "older</a>" not in text
    monkeypatch.setattr(completeness_page, "LISTED", 1)
    first = page(client, "/pipelines/shop/completeness", view="sales", zoom="2013")
    assert re.search(r'<tbody>\s*<tr><td><a href="\?interval=2013-01-02', first)
    [older] = re.findall(r'href="([^"]*)#intervals">older<', first)
    second = page(client, f"/pipelines/shop/completeness{unescape(older)}")
    assert re.search(r'<tbody>\s*<tr><td><a href="\?interval=2013-01-01', second)
    assert "newer</a>" in second and "older</a>" not in second
    assert page(client, "/pipelines/shop/completeness", zoom="1999", view="nothing")


def test_the_graph_tells_how_each_part_does(client, shop: Shop) -> None:
    """A view that owes nothing is in order; it owes a build once the day has closed, and a red one is wrong."""
    text = page(client, "/pipelines/shop/graph")
    assert re.search(r'class="node good"[^>]*views/sales', text)
    assert "certified to 2013-01-02 00:00" in text
    assert text.count("<path d=") == 2
    shop.epoch([Sale(5, "a", 1)], watermark=START + 3 * DAY)
    text = page(client, "/pipelines/shop/graph")
    assert re.search(r'class="node dirty"[^>]*views/sales', text)
    assert "2 intervals to build" in text


def test_what_has_happened_is_told_with_who_and_why(client, shop: Shop, monkeypatch) -> None:
    """A restart somebody asked for, the driver that began, and the day that was published again."""
    control, now = ControlTable.ensure(shop.layout), datetime(2026, 3, 1, 12, tzinfo=UTC)
    control.want(Desired.RUNNING, actor="ada", reason="a first start", now=now)
    control.release(control.take("host-1", now=now + timedelta(minutes=1)))
    control.restart(actor="bob", reason=EVIL, now=now + timedelta(hours=1))
    assert "correction" not in page(client, "/pipelines/shop/timeline")
    shop.epoch([Sale(5, "a", 1)])
    build(shop, "h", cut=1)
    text = page(client, "/pipelines/shop/timeline")
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    told = {(row[1], re.sub("<[^>]+>", "", row[2]), row[3], unescape(row[4])) for row in rows if row}
    assert told == {
        ("decision", "start", "ada", "a first start"),
        ("driver", "driver started", "host-1", ""),
        ("driver", "driver stopped", "host-1", ""),
        ("decision", "restart", "bob", EVIL),
        ("correction", "sales: 2013-01-01T00:00:00Z", "", ""),
    }
    monkeypatch.setattr(timeline_page, "LISTED", 1)
    first = page(client, "/pipelines/shop/timeline", kind="decision")
    assert "restart" in first and "a first start" not in first
    assert "a first start" in page(client, "/pipelines/shop/timeline", kind="decision", page=2)


def test_a_question_in_sql_is_answered_and_drawn(client, shop: Shop, monkeypatch) -> None:
    """Rows, a line for each customer, how far the view is right, and the command that says the same."""
    asked = "SELECT window_start, customer, total FROM shop.sales WHERE total > 1 ORDER BY total"
    text = page(client, "/query", q=asked)
    assert {each["name"]: each["y"] for each in figure(text, "answer")["data"]} == {
        "NULL": [3],
        EVIL: [5],
        "a": [10],
    }
    assert "shop.sales: Counts every event up to epoch 0" in text and "<h2>3 rows</h2>" in text
    assert f"seamline sql {shlex.quote(asked)}" in unescape(text)
    assert json.loads(re.findall(r'id="words">(.*?)</script>', text)[0])["shop.sales"][:2] == [
        "customer",
        "window_start",
    ]
    assert 'id="answer"' not in page(client, "/query", q="SELECT count(*) FROM shop.sales")
    wrong = page(client, "/query", q="SELECT </textarea><script>alert(1)</script> FROM shop.sales")
    assert 'class="alarm"' in wrong and "<script>alert" not in wrong
    infinite = page(client, "/query", q="SELECT 'infinity'::date FROM shop.sales")
    assert "cast others to VARCHAR" in infinite
    with monkeypatch.context() as small:
        small.setenv("SEAMLINE_READ_MEMORY", "32m")
        long = page(client, "/query", q="SELECT repeat('x', 10000) FROM shop.sales, range(1000)")
    assert "more than 8 MiB" in long and "SEAMLINE_READ_MEMORY" in long
    monkeypatch.setattr(query_page, "list_readable_pipelines", lambda _: [])
    assert "There is no pipeline &#39;shop&#39;" in page(client, "/query", q=asked)


def test_a_view_is_drawn_as_it_is_read(client, shop: Shop) -> None:
    """The points of the chart and the rows of the table are those of the library; the seam is where it is open."""
    text = page(client, "/pipelines/shop/views/sales", start="2013-01-01", end="2013-01-03", measure="total")
    rows = read("shop.sales").to_pylist()
    drawn = figure(text, "answer")
    assert sorted(y for trace in drawn["data"] for y in trace["y"]) == sorted(row["total"] for row in rows)
    assert [each["x0"] for each in drawn["layout"]["shapes"]] == ["2013-01-02T00:00:00Z"]
    counted = figure(text, "counted")["data"]
    assert {each["name"]: sum(each["y"]) for each in counted} == {"batch": 3, "speed": 1}
    assert text.count(">explain</a>") == len(rows)
    assert "seamline query shop.sales --from 2013-01-01 --to 2013-01-03" in text


def test_what_is_there_to_copy_says_what_was_asked(client, shop: Shop) -> None:
    """Values are quoted for the engine that reads them; another side has no serving table."""
    text = page(client, "/pipelines/shop/views/sales", **{"key.customer": "x' OR 1=1 --"})
    assert "&#34;customer&#34; IN (&#39;x&#39;&#39; OR 1=1 --&#39;)" in text
    assert "delta_scan" not in page(client, "/pipelines/shop/views/sales", side="batch")
    version = shop.view.fingerprint
    assert f"--version {version}" in page(client, "/pipelines/shop/views/sales", version=version)


def test_a_download_has_every_row_of_the_range(client, shop: Shop) -> None:
    """Also more rows than a page of the API has: the links are to the streamed answer."""
    text = page(client, "/pipelines/shop/views/sales", start="2013-01-01", end="2013-01-03")
    links = [unescape(each) for each in re.findall('href="([^"]*)" download="shop.sales', text)]
    assert len(links) == len(LINES)
    for link in links:
        assert "/sales/rows?" in link and "limit" not in link
    [lines] = [client.get(link).text for link in links if link.endswith("format=json")]
    assert [json.loads(line)["total"] for line in lines.splitlines()] == read("shop.sales")[
        "total"
    ].to_pylist()


def test_a_page_draws_so_many_rows_and_no_more(client, shop: Shop, monkeypatch) -> None:
    """It says how to ask for less."""
    monkeypatch.setattr(view_page, "MOST", 3)
    assert "4 rows are more than a page draws" in page(client, "/pipelines/shop/views/sales")


def test_a_point_leads_to_its_explanation(client, shop: Shop) -> None:
    """Every point and every row, of keys that are NULL or strange too."""
    text = page(client, "/pipelines/shop/views/sales", start="2013-01-01", end="2013-01-03")
    links = [link for trace in figure(text, "answer")["data"] for link in trace["customdata"]]
    assert len(links) == 4
    for link in links:
        assert "Everything adds up." in page(client, link), link


def test_a_window_without_an_end_is_drawn_and_explained(client, tmp_path, monkeypatch) -> None:
    """It has no end to name in a link, and none to show."""
    text = DEFINITION.replace('Tumbling("1 hour")', "Global()").replace("Tumbling,", "Global,")
    (tmp_path / "definitions" / "shop.py").write_text(text)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "endless"))
    endless = Shop(tmp_path / "endless", compiled=sales_pipeline(text=text))
    endless.epoch([Sale(1, "a", 10), Sale(1500, "a", 1)], watermark=START.replace(day=3))
    [trace] = figure(page(client, "/pipelines/shop/views/sales", measure="total"), "answer")["data"]
    assert trace["y"] == [10 + 1]
    told = page(client, trace["customdata"][0])
    assert "Everything adds up." in told and "9999" not in told
    assert re.search("window from <time[^>]*>[^<]*</time> on</p>", told)
    said = client.get("/api/v1/explain/shop/sales", params={"key.customer": "a"}).json()
    assert said["window"] == {"start": "2013-01-01T00:00:00Z", "end": None}


def test_what_a_generation_changed_is_shown(client, shop: Shop) -> None:
    """A duplicate that the batch layer removed, by its cause."""
    shop.epoch([Sale(4, "a", 10, id=0)])
    shop.events[1].clear()
    build(shop, "h", cut=1)
    compare_run(shop.compiled, shop.layout, "run-h")
    text = page(client, "/pipelines/shop/differences")
    assert "1 generation compared" in text and "duplicate" in text
    assert sum(sum(each["y"]) for each in figure(text, "attribution")["data"]) == 1


def test_a_plan_is_shown_and_a_wrong_one_explained(client, shop: Shop) -> None:
    """As the command line tells it."""
    text = page(
        client, "/pipelines/shop/plan", **{"from": "2013-01-01T00:00:00Z", "to": "2013-01-03T00:00:00Z"}
    )
    assert "What a run of this span would do" in text and "Backfill it" in text
    wrong = page(
        client, "/pipelines/shop/plan", **{"from": "2013-01-01T07:30:00Z", "to": "2013-01-03T00:00:00Z"}
    )
    assert 'class="alarm"' in wrong and "07:30" in wrong
    ages = page(
        client, "/pipelines/shop/plan", **{"from": "2013-01-01T00:00:00Z", "to": "9999-12-31T00:00:00Z"}
    )
    assert 'class="alarm"' in ages and "has not begun" in ages


def test_what_a_record_holds_is_text(client, shop: Shop) -> None:
    """A key that is markup is shown, and is no markup; in the page's own data neither."""
    markup = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    shop.epoch([Sale(3, markup, 5), Sale(4, EVIL, 5)])
    for path in (
        "/pipelines/shop/views/sales",
        "/pipelines/shop/completeness",
        "/pipelines/shop/differences",
    ):
        page = client.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert "<img src=x" not in page.text and "<script>alert" not in page.text
    explained = client.get(
        "/pipelines/shop/explain/sales", params={"key.customer": markup, "window": "2013-01-01T00:00:00Z"}
    )
    assert "&lt;img src=x onerror=alert(1)&gt;" in explained.text and "<img src=x" not in explained.text


SOURCES = """
from seamline import *

day = Tumbling("1 day")
pipeline = Pipeline(
    name="two",
    source=[
        KafkaSource(name="orders", topic="two.orders", schema="id INT, at TIMESTAMP", event_time="at"),
        KafkaSource(name="returns", topic=["r1", "r2"], format="csv", schema="at TIMESTAMP", event_time="at"),
    ],
    views=[
        View("sold", of="orders", keys=["id"], window=day, measures={"n": count()}),
        View("both", of=["orders", "returns"], keys=[], window=day, measures={"n": count()}),
    ],
    batch=Batch("1 day", "2026-01-01"),
)
"""


def test_several_sources_are_told_apart(client, shop: Shop, tmp_path) -> None:
    """Which of them a view counts, and what each reads, is on the pages, in the API and in the DAGs' texts."""
    (tmp_path / "definitions" / "two.py").write_text(SOURCES)
    two = load_catalog(tmp_path / "definitions").pipeline("two")
    Master.ensure(Layout(shop.layout.warehouse, "two"), two)
    assert "<td>orders, returns</td>" in page(client, "/pipelines/two/views")
    assert "Rows of orders and returns." in page(client, "/pipelines/two/views/both")
    text = unescape(page(client, "/pipelines/two/stream"))
    assert "<dt>orders</dt><dd>topic two.orders as json, event time at; event times up to 1 day ahead" in text
    assert "<dt>returns</dt><dd>topics r1, r2 as csv, event time at;" in text
    assert "<dt>source</dt><dd>topic sales as json" in unescape(page(client, "/pipelines/shop/stream"))
    found = {each["view"]: each.get("of") for each in client.get("/api/v1/views").json()["views"]}
    assert found == {"sold": ["orders"], "both": ["orders", "returns"], "sales": None}
    said = format_dag_doc(two.definition, "stream")
    assert "Topics `two.orders`, `r1`, `r2` through connection" in said
    assert "- `returns`: topics r1, r2 as csv, event time at" in said


ASKED = """
from seamline import *

pipeline = Pipeline(
    name="asked",
    source=[KafkaSource(name="paid", topic="paid", schema="user STRING, at TIMESTAMP", event_time="at")],
    derive=[
        Ask("scored", of="paid", by="seamline.local.scores:ask", request={"user": "user"}, columns=["risk DOUBLE"]),
    ],
    views=[View("all", of="scored", keys=[], window=Tumbling("1 day"), measures={"n": count()})],
    batch=Batch("1 day", "2026-01-01"),
)
"""


def test_a_plan_is_looked_at_again_while_a_backfill_is_active(client, shop: Shop, monkeypatch) -> None:
    """No table says how far Airflow is; otherwise the page is told of changes."""
    each = {
        "id": 1,
        "dag_id": "shop__batch",
        "from_date": "2013-01-01",
        "to_date": "2013-01-02",
        "completed_at": None,
        "is_paused": False,
    }
    airflow = SimpleNamespace(backfills=lambda _: [each], run_states=lambda *_: {"running": 1})
    monkeypatch.setattr(pages.InsideAirflow, "of", lambda request: airflow)
    text = page(client, "/pipelines/shop/plan")
    assert "1 running" in text and 'data-live="5"' in text and "data-changes" not in text
    each["completed_at"] = "2013-01-03"
    assert 'data-changes="/pipelines/shop/changes"' in page(client, "/pipelines/shop/plan")


def test_what_is_asked_is_shown_while_kafka_is_away(client, shop: Shop, tmp_path, monkeypatch) -> None:
    """The page looks again every few seconds, at what is live: it would wait for a broker each time."""
    monkeypatch.setattr(observe, "read_airflow_connection", lambda *_: pytest.fail("Kafka is asked"))
    (tmp_path / "definitions" / "asked.py").write_text(ASKED)
    asked = load_catalog(tmp_path / "definitions").pipeline("asked")
    Master.ensure(Layout(shop.layout.warehouse, "asked"), asked)
    text = page(client, "/pipelines/asked/questions")
    assert "risk DOUBLE of each row of paid by seamline.local.scores:ask" in text
    assert "<code>asked.scored.answers</code>" in text
    assert "No stream has asked yet" in text
    assert 'data-live="5"' in text and 'data-part="question-scored"' in text
    assert "This pipeline asks no other system." in page(client, "/pipelines/shop/questions")
