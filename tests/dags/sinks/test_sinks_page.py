"""The page of sinks, and what streams and explanations say of them."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.shop import DEFINITION, Sale, Shop
from tests.unit.sinks.memory_target import MemoryTarget, Store

from seamline.lake.read import serving_table
from seamline.lake.status.sink_words import SinkWords, write_sink_words
from seamline.lake.storage.layout import definitions_folder
from seamline.lake.tables.sinks.recorded_audits import record_verdict
from seamline.model.compile.catalog import load_pipeline
from seamline.plan.stream.sink_verdicts import SinkVerdict
from seamline.sinks.sink_runner import SinkRunner

SINKS = """    sinks=[
        KafkaSink("sales", topic="sales.out"),
        PostgresSink("sales", table="sales", when="certified", name="reports"),
    ],
    batch="""


@pytest.fixture
def sinking(client: Any, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop with two sinks: one has sent all but the newest version, and one has failed."""
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    text = DEFINITION.replace("    batch=", SINKS)
    (tmp_path / "definitions" / "shop.py").write_text(
        text.replace("import Batch,", "import Batch, KafkaSink, PostgresSink,")
    )
    shop.compiled = load_pipeline(definitions_folder(), "shop")
    [sink, _] = shop.compiled.definition.sinks
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    store = Store()
    runner = SinkRunner(
        shop.compiled, shop.layout, sink, threading.Event(), once=True, opening=lambda *_: MemoryTarget(store)
    )
    runner.run()
    shop.epoch([Sale(3, "a", 7)])
    serving_table.refresh_serving_table(shop.compiled, shop.layout, shop.view)
    words = SinkWords("2026-11-30T12:00:00Z", "failed", error="PostgreSQL does not let in user 'x'.")
    write_sink_words("shop", "reports", words)
    return shop


def test_each_sink_is_a_row_and_a_section(client: Any, sinking: Shop) -> None:
    """Who runs a pipeline sees what is behind, and why."""
    text = client.get("/pipelines/shop/sinks").text
    table = text[text.index('id="sinks"') : text.index("</table>")]
    assert '<a href="#sink-sales_kafka">sales_kafka</a>' in table
    assert "topic sales.out of kafka_default" in table
    assert '<td class="number">1</td>' in table
    assert '<span class="bad">failed</span>' in table
    assert 'class="alarm">reports: PostgreSQL does not let in user &#39;x&#39;.' in text
    assert "those of certified intervals" in text
    assert "version 1 of 2" in text
    assert "seamline sinks audit shop reports" in text
    assert "/pipelines/shop/sinks" in client.get("/pipelines/shop/stream").text


def test_a_red_audit_is_on_the_page_until_it_is_mended(client: Any, sinking: Shop) -> None:
    """Who has looked and when, which rows, and that nobody has looked since."""
    found = {"at": "2026-11-30T12:00:00Z", "actor": "ada", "version": 1, "held": 2, "wanted": 3}
    red = SinkVerdict(**found, start="", end="", found={"missing": 1}, lines=("missing <b>",))
    record_verdict(sinking.layout, "reports", red)
    page = client.get("/pipelines/shop/sinks").text
    assert 'class="alarm">reports: an audit at 2026-11-30T12:00:00Z found 1 missing' in page
    assert "missing &lt;b&gt;" in page and "by ada" in page
    assert page.count("<dt>audited last</dt><dd>never") == 1
    assert "sink reports: an audit at" in client.get("/").text
    [_, told] = client.get("/api/v1/streams/shop?broker=false").json()["sinks"]
    assert told["wrong"]["found"] == told["audit"]["found"] == {"missing": 1}
    green = replace(red, found={"missing": 0}, lines=())
    record_verdict(sinking.layout, "reports", replace(green, start="2026-03-01T00:00:00Z"))
    assert "found 1 missing" in client.get("/pipelines/shop/sinks").text
    record_verdict(sinking.layout, "reports", green)
    assert "found 1 missing" not in client.get("/pipelines/shop/sinks").text


def test_records_are_told_of_by_epochs(client: Any, shop: Shop, tmp_path: Path) -> None:
    """They are of no version and no window: an audit of them is refused, and so is a range."""
    sinks = SINKS.replace("KafkaSink(", 'DeadLetterSink("rejected", topic="bad"), KafkaSink(')
    text = DEFINITION.replace("    batch=", sinks)
    (tmp_path / "definitions" / "shop.py").write_text(
        text.replace("import Batch,", "import Batch, DeadLetterSink, KafkaSink, PostgresSink,")
    )
    page = client.get("/pipelines/shop/sinks").text
    assert "sent nothing yet of epoch" in page
    assert "seamline sinks replay shop rejected_dead_letters" in page
    assert "seamline sinks audit shop rejected_dead_letters" not in page


def test_streams_and_explanations_tell_of_sinks(client: Any, sinking: Shop) -> None:
    """The API has the same facts."""
    [kafka, reports] = client.get("/api/v1/streams/shop?broker=false").json()["sinks"]
    assert (kafka["name"], kafka["version"], kafka["newest"], kafka["behind_versions"]) == (
        "sales_kafka",
        1,
        2,
        1,
    )
    assert (reports["state"], reports["up"], reports["version"]) == ("failed", False, None)
    query = "?key.customer=a&window=2013-01-01T00:00:00Z"
    [sent, never] = client.get(f"/api/v1/explain/shop/sales{query}").json()["sinks"]
    assert (sent["version"], sent["row_since_version"], sent["read_back"]) == (1, 1, None)
    assert never["version"] is None
    page = client.get(f"/pipelines/shop/explain/sales{query}").text
    assert "shows version 1 of 2" in page
    assert "the target was not asked" in page


def test_a_pipeline_without_sinks_says_so(client: Any, shop: Shop) -> None:
    """A page that is empty looks broken."""
    assert "it has no <code>sinks=</code>" in client.get("/pipelines/shop/sinks").text
