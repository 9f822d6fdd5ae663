"""The HTTP API over a shop's tables; who is let in is Airflow's business, and tested with a real one."""

from __future__ import annotations

import gc
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from threading import BoundedSemaphore

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.dags.server import EVIL, Everything
from tests.unit.shop import START, Sale

from seamline import Counts
from seamline.lake.read.streamed_answer import StreamedAnswer
from seamline.lake.tables import claims_table
from seamline.lake.tables.audits_table import Audits
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.errors import BadRange
from seamline.model.expressions import compile_expression
from seamline.model.protocol.audit import Audit
from seamline.model.protocol.claims import Claim
from seamline.model.time.intervals import Interval
from seamline.model.types.schema import Field, Schema, parse_type
from seamline.quality.run_comparing import compare_run
from seamline.serve import streamed as streamed_answers
from seamline.serve.answer_request import as_json, key_condition_sql
from seamline.serve.read import read
from seamline.web import access, api
from seamline.web.answers import downloads
from seamline.web.limits import run_with_time_limit

waiting = claims_table.Waiting
VIEW = "/api/v1/views/shop/sales"


@pytest.mark.everywhere
def test_a_page_of_an_answer_says_how_far_it_is_right(client) -> None:
    """As many rows as asked for, where the next begin, and what the numbers count."""
    first = client.get(VIEW, params={"limit": 3}).json()
    assert len(first["rows"]) == 3 and (first["total"], first["next_offset"]) == (4, 3)
    assert first["complete_to"] == 0 and first["intervals"]["2013-01-01T00:00:00Z"]["status"] == "certified"
    rest = client.get(VIEW, params={"limit": 3, "offset": 3}).json()
    assert len(rest["rows"]) == 1 and rest["next_offset"] is None
    whole = read("shop.sales")
    assert [row["total"] for row in first["rows"] + rest["rows"]] == whole["total"].to_pylist()


@pytest.mark.parametrize("format", ["arrow", "parquet", "csv", "json"])
def test_a_download_has_all_rows(client, format: str) -> None:
    """In each format, as the library reads them; what is wrong is refused before anything comes."""
    found, whole = client.get(f"{VIEW}/rows", params={"format": format}), read("shop.sales")
    assert found.status_code == 200 and "/0/" in found.headers["Seamline-State"]
    match format:
        case "arrow":
            table = pa.ipc.open_stream(found.content).read_all()
        case "parquet":
            table = pa.parquet.read_table(io.BytesIO(found.content))
            assert table.schema.metadata[b"seamline.epoch"] == b"0"
        case "csv":
            table = pa.csv.read_csv(io.BytesIO(found.content))
        case _:
            table = pa.table({"total": [json.loads(line)["total"] for line in found.text.splitlines()]})
    assert [int(each) for each in table["total"].to_pylist()] == [
        int(each) for each in whole["total"].to_pylist()
    ]
    some = client.get(f"{VIEW}/rows", params={"format": "json", "key.customer": EVIL}).text
    assert len(some.splitlines()) == 1
    assert client.get(f"{VIEW}/rows", params={"format": "xml"}).status_code == 422
    assert client.get(f"{VIEW}/rows", params={"key.total": "1"}).status_code == 400
    assert client.get("/api/v1/views/shop/sails/rows").status_code == 404


def test_downloads_are_few_at_a_time(client, monkeypatch) -> None:
    """Each has its share of the memory; who comes last is told to come again."""
    monkeypatch.setattr(downloads, "running", BoundedSemaphore(1))
    assert [client.get(f"{VIEW}/rows").status_code for _ in range(3)] == [200] * 3
    downloads.running.acquire()
    refused = client.get(f"{VIEW}/rows")
    assert refused.status_code == 503 and "downloads are running" in refused.json()["message"]


def test_a_download_that_fails_to_end_or_to_begin_gives_its_place_back(client, monkeypatch) -> None:
    """Four such would be the last of a server."""

    class Lost(downloads.StreamingResponse):
        async def __call__(self, *_) -> None:
            raise RuntimeError("nobody is there")

    def failing(self: StreamedAnswer) -> None:
        close(self)
        raise ValueError("generator already executing")

    close = StreamedAnswer.close
    monkeypatch.setattr(downloads, "running", BoundedSemaphore(1))
    with monkeypatch.context() as patch:
        patch.setattr(downloads, "StreamingResponse", Lost)
        assert client.get(f"{VIEW}/rows").status_code == 500
        # A worker of the server holds what it did last until it does something else.
        while not downloads.running.acquire(blocking=False):
            assert client.get(VIEW).status_code == 200
            gc.collect()
        downloads.running.release()
    with monkeypatch.context() as patch:
        patch.setattr(StreamedAnswer, "close", failing)
        assert client.get(f"{VIEW}/rows").status_code == 200
    assert client.get(f"{VIEW}/rows").status_code == 200


def test_a_download_that_has_begun_is_not_refused(client, monkeypatch) -> None:
    """Others may be asking: whoever comes is refused, and who has half of the rows waits."""
    asked: list[float] = []

    def timed(make, *, patience: float = 0):
        asked.append(patience)
        return run_with_time_limit(make, patience=patience)

    monkeypatch.setattr(downloads, "run_with_time_limit", timed)
    assert client.get(f"{VIEW}/rows").status_code == 200
    assert asked[0] == 0 and len(asked) > 1 and set(asked[1:]) == {downloads.PATIENCE}


def test_pages_share_the_memory_of_an_answer(client, monkeypatch) -> None:
    """As downloads do: several are made at a time."""
    asked: list[int | None] = []

    def streamed(*given, memory=None, **more):
        asked.append(memory)
        return whole(*given, memory=memory, **more)

    whole = streamed_answers.stream_answer
    monkeypatch.setattr(streamed_answers, "stream_answer", streamed)
    monkeypatch.setenv(streamed_answers.SETTING, "64m")
    assert client.get(VIEW).status_code == 200
    assert asked == [(64 << 20) // downloads.AT_ONCE]


def test_filters_are_typed_and_never_sql(client) -> None:
    """A value is a value, whatever is in it."""
    found = client.get(VIEW, params={"key.customer": EVIL}).json()["rows"]
    assert [row["customer"] for row in found] == [EVIL]
    assert len(client.get(VIEW, params={"key.customer": ["a", EVIL]}).json()["rows"]) == 3
    nulls = client.get(VIEW, params={"null": "customer"}).json()["rows"]
    assert [row["total"] for row in nulls] == [3]
    both = client.get(VIEW, params={"null": "customer", "key.customer": EVIL}).json()["rows"]
    assert len(both) == 2
    wrong = client.get(VIEW, params={"key.total": "1"})
    assert wrong.status_code == 400 and wrong.json()["message"] == "shop.sales has no key 'total'."


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"limit": "0"}, 422),
        ({"limit": "10001"}, 422),
        ({"offset": "-1"}, 422),
        ({"format": "xml"}, 422),
        ({"side": "both"}, 422),
        ({"phase": "never"}, 422),
        ({"start": "yesterday"}, 400),
        ({"start": "2013-01-02", "end": "2013-01-01"}, 400),
        ({"as_of": "99"}, 400),
        ({"start": "x" * 300}, 422),
    ],
)
def test_what_cannot_be_meant_is_refused(client, params, code) -> None:
    """With the reason and the way out; never with a traceback."""
    answer = client.get(VIEW, params=params)
    assert answer.status_code == code, answer.text
    assert "Traceback" not in answer.text


def test_what_is_not_there_is_named(client) -> None:
    """A pipeline, a view."""
    for path in ("/api/v1/views/stop/sales", "/api/v1/views/shop/sails", "/api/v1/completeness/stop"):
        answer = client.get(path)
        assert answer.status_code == 404 and answer.json()["error"] == "NotFound"


def test_an_unchanged_answer_is_not_sent_again(client, shop) -> None:
    """Until an epoch comes; and another question has another tag."""
    first = client.get(VIEW)
    tag = first.headers["ETag"]
    again = client.get(VIEW, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    for known in (f"W/{tag}", f'"other", W/{tag}', "*"):
        assert client.get(VIEW, headers={"If-None-Match": known}).status_code == 304
    assert client.get(VIEW, headers=[("If-None-Match", '"other"'), ("If-None-Match", tag)]).status_code == 304
    assert client.get(VIEW, headers={"If-None-Match": '"*"'}).status_code == 200
    assert client.get(VIEW, params={"limit": 2}).headers["ETag"] != tag
    shop.epoch([Sale(3, "a", 1)])
    assert client.get(VIEW, headers={"If-None-Match": tag}).status_code == 200


def test_csv_and_arrow_have_the_same_rows(client) -> None:
    """For a spreadsheet, and for a program."""
    table = read("shop.sales")
    arrow = client.get(VIEW, params={"format": "arrow"})
    assert pa.ipc.open_stream(arrow.content).read_all().equals(table)
    csv = pyarrow.csv.read_csv(io.BytesIO(client.get(VIEW, params={"format": "csv"}).content))
    assert csv["total"].to_pylist() == table["total"].to_pylist()


def test_sql_is_answered_over_views(client, monkeypatch) -> None:
    """With how far each view is right; what is wrong, or is not to be read, is told as such."""
    text = "SELECT customer, sum(total) AS total FROM shop.sales GROUP BY 1 ORDER BY 2 DESC"
    found = client.get("/api/v1/sql", params={"q": text, "limit": 2}).json()
    assert found["rows"] == [{"customer": "a", "total": 11}, {"customer": EVIL, "total": 5}]
    assert found["more"] and not found["final"]
    assert [(each["view"], each["complete_to"]) for each in found["views"]] == [("shop.sales", 0)]
    assert client.get("/api/v1/sql", params={"q": text, "end": "2013-01-02"}).json()["final"]
    refused = client.get("/api/v1/sql", params={"q": "DROP TABLE shop.sales"})
    assert refused.status_code == 400 and "Only a SELECT" in refused.json()["message"]
    long = "SELECT repeat('x', 10000) FROM shop.sales, range(1000)"
    with monkeypatch.context() as small:
        small.setenv("SEAMLINE_READ_MEMORY", "32m")
        refused = client.get("/api/v1/sql", params={"q": long})
    assert refused.status_code == 400 and "more than 8 MiB" in refused.json()["message"]
    monkeypatch.setattr(access, "get_auth_manager", lambda: Everything("POST"))
    assert client.get("/api/v1/sql", params={"q": text}).status_code == 404


def test_a_number_is_taken_apart(client) -> None:
    """Parts, proof, certificate and the master's rows."""
    params = {"key.customer": "a", "window": "2013-01-01T00:00:00Z"}
    found = client.get("/api/v1/explain/shop/sales", params=params).json()
    assert found["proven"] and found["row"]["total"] == 10 and len(found["rows"]) == 1
    assert [part["rows"] for part in found["parts"]] == [1]


def test_counts_of_producers_are_told_interval_by_interval(client, shop, monkeypatch) -> None:
    """With each gap; of none where producers say nothing."""
    assert client.get("/api/v1/counts/shop").json() == {"intervals": []}
    counting = replace(shop.compiled.definition.source, counts=Counts("sales.counts", producers=["till"]))
    compiled = compile_pipeline(replace(shop.compiled.definition, source=counting))
    monkeypatch.setattr(api, "open_requested_pipeline", lambda name: (compiled, shop.layout))
    span = {"from": "2013-01-01T00:00:00Z", "to": "2013-01-02T00:00:00Z"}
    [told] = client.get("/api/v1/counts/shop", params=span).json()["intervals"]
    assert told["interval"] == "2013-01-01T00:00:00Z/2013-01-02T00:00:00Z"
    assert told["now"]["counts"][0]["unstated"] == [["till", told["interval"]]]
    assert client.get("/api/v1/counts/shop", params=span | {"to": "2023-01-02T00:00:00Z"}).status_code == 400


def test_what_is_known_of_a_pipeline_is_told(client, shop) -> None:
    """Completeness by interval, comparisons and audits."""
    cells = client.get("/api/v1/completeness/shop").json()["cells"]
    assert [(each["interval"][:10], each["status"], each["rows"]) for each in cells] == [
        ("2013-01-02", "open", 1),
        ("2013-01-01", "certified", 3),
    ]
    pages = ({"limit": 1}, {"limit": 1, "offset": 1}, {"end": "2013-01-02"}, {"start": "2013-01-02"})
    told = [client.get("/api/v1/completeness/shop", params=each).json() for each in pages]
    assert [(each["cells"][0]["rows"], each["total"], each["next_offset"]) for each in told] == [
        (1, 2, 1),
        (3, 2, None),
        (3, 1, None),
        (1, 1, None),
    ]
    assert client.get("/api/v1/completeness/shop", params={"start": "soon"}).status_code == 400
    assert client.get("/api/v1/comparisons/shop/sales").json() == {"comparisons": []}
    assert client.get("/api/v1/audits/shop").json() == {"audits": []}
    assert not (shop.layout.table("audits").exists() or shop.layout.table("comparisons").exists())
    compare_run(shop.compiled, shop.layout, "run-g")
    [compared] = client.get("/api/v1/comparisons/shop/sales").json()["comparisons"]
    assert (compared["generation"], compared["equal"]) == ("g", 3)
    at = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    Audits.ensure(shop.layout).append(Audit("shop", at, 0.1, "ada", 0, (), {}, {}, (), ()))
    [audit] = client.get("/api/v1/audits/shop").json()["audits"]
    assert (audit["actor"], audit["passed"]) == ("ada", True)


@pytest.mark.parametrize(
    ("type", "value", "literal", "wrong"),
    [
        ("INT", "-7", "-7", "1e5"),
        ("BIGINT", "9000000000", "9000000000", "1; DROP TABLE x"),
        ("DECIMAL(10,2)", "1.50", "CAST('1.50' AS DECIMAL(10,2))", "NaN"),
        # Written out it would be ten gigabytes.
        ("DECIMAL(38,0)", "-7", "CAST('-7' AS DECIMAL(38,0))", "1e9999999999"),
        ("BOOLEAN", "true", "true", "yes"),
        ("DATE", "2013-01-01", "DATE '2013-01-01'", "2013-02-30"),
        ("TIMESTAMP", "2013-01-01T00:00Z", "TIMESTAMP '2013-01-01T00:00:00Z'", "now()"),
        ("STRING", "it's", "'it\\'s'", None),
    ],
)
def test_a_condition_is_of_the_key_s_type(shop, type, value, literal, wrong) -> None:
    """Text that is none of it is refused before any engine sees it, and what is written is a condition for ours."""
    key = Field("k", parse_type(type, ""))
    view = replace(shop.view, keys=(key,))
    assert key_condition_sql(view, {}) is None
    found = key_condition_sql(view, {"k": [value]})
    assert found == f"(`k` = {literal})"
    assert compile_expression(found, Schema((key,))).type.spark == "BOOLEAN"
    if wrong is not None:
        with pytest.raises(BadRange, match="is not a "):
            key_condition_sql(view, {"k": [wrong]})


def test_a_double_that_is_no_number_is_null() -> None:
    """A browser refuses a whole page for one NaN."""
    found = json.loads(as_json({"rows": [{"x": float("nan"), "y": 1.5, "z": (float("inf"),)}]}))
    assert found == {"rows": [{"x": None, "y": 1.5, "z": [None]}]}


def test_no_page_waits_to_be_sure_of_a_claim_of_another_host(client, shop, monkeypatch) -> None:
    """That takes up to 90 seconds of a thread; the server has few, and the heartbeats of all tasks need them too."""
    shop.epoch([Sale(1501, "a", 2)], watermark=START.replace(day=9))
    now = datetime.now(UTC)
    day = Interval.parse("2013-01-02/2013-01-03")
    elsewhere = Claim("r2", "airflow:shop__batch", (day,), now, now + claims_table.TTL, "far 7:pid:[1] 12 34")
    claims_table.Claims.ensure(shop.layout).take(elsewhere, now=now)

    def waits(_: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(claims_table, "Waiting", lambda: waiting(wait=waits))
    made = client.get("/api/v1/plans/shop")
    assert made.status_code == 200, made.text
    [running] = made.json()["left_out"]
    assert running["interval"] == "2013-01-02T00:00:00Z"
    assert running["reason"].startswith("running: run r2 of airflow:shop__batch")
    for page in ("plan", "completeness?interval=2013-01-02T00:00:00Z&view=sales"):
        assert client.get(f"/pipelines/shop/{page}").status_code == 200
