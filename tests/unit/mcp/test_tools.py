"""Tools for agents: what they answer, how far that is right, what is refused, and how much is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client
from mcp_types import CallToolResult
from tests.unit.past import sell_two_days
from tests.unit.shop import Shop, opened

from seamline.lake.engine.time_limit import interrupt_after
from seamline.mcp import bounded_answer
from seamline.mcp.bounded_answer import encode_bounded
from seamline.mcp.callers import Caller
from seamline.mcp.server import make_server
from seamline.model.errors import BadRange, SetupError, TooSlow
from seamline.serve.read import read

T = TypeVar("T")
FIRST, SECOND = "2013-01-01T00:00:00Z", "2013-01-02T00:00:00Z"


def work_out(make: Callable[[], T]) -> T:
    """Work out an answer within half a minute."""
    with interrupt_after(30):
        return make()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Two days of sales, the first of them built."""
    made = opened(tmp_path, monkeypatch)
    sell_two_days(made)
    return made


def call(
    name: str, arguments: dict[str, Any], *, may_read: Callable[[str], bool] = lambda _: True
) -> CallToolResult:
    """Call a tool by the SDK's client."""

    async def called() -> CallToolResult:
        async with Client(make_server(Caller(may_read, 64 << 20, work_out))) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(called())


def ask(name: str, **arguments: Any) -> dict[str, Any]:
    """Return what a tool answers."""
    result = call(name, arguments)
    assert not result.is_error, result.content
    return parse(result)


def refused(
    name: str, *, may_read: Callable[[str], bool] = lambda _: True, **arguments: Any
) -> dict[str, str]:
    """Return what a tool says that fails."""
    result = call(name, arguments, may_read=may_read)
    assert result.is_error, result.content
    return parse(result)


def parse(result: CallToolResult) -> dict[str, Any]:
    """Read the one text of a result."""
    [content] = result.content
    assert content.type == "text"
    found: dict[str, Any] = json.loads(content.text)
    return found


def list_files(folder: Path) -> dict[str, int]:
    """List a folder's files with the instants of their last change."""
    return {str(each): each.stat().st_mtime_ns for each in sorted(folder.rglob("*")) if each.is_file()}


def test_every_tool_says_that_it_only_reads(shop: Shop) -> None:
    """A client asks nobody before it calls such a tool; each of its arguments is described."""

    async def listed() -> list[Any]:
        async with Client(make_server(Caller(lambda _: True, 64 << 20, work_out))) as client:
            assert client.server_capabilities.resources is None and client.server_capabilities.prompts is None
            return (await client.list_tools()).tools

    tools = {each.name: each for each in asyncio.run(listed())}
    assert [*tools] == ["list_views", "describe_view", "query", "explain", "completeness", "plan"]
    for each in tools.values():
        assert each.annotations.read_only_hint and not each.annotations.destructive_hint
        assert all("description" in one for one in each.input_schema["properties"].values()), each.name


def test_views_are_listed_with_what_has_been_read(shop: Shop) -> None:
    """An agent begins here: names, types, and the watermark."""
    [pipeline] = ask("list_views")["pipelines"]
    [view] = pipeline["views"]
    assert (view["pipeline"], view["view"], view["keys"]) == ("shop", "sales", {"customer": "STRING"})
    assert view["measures"] == {"orders": "BIGINT", "total": "DECIMAL(38,0)", "largest": "BIGINT"}
    assert pipeline["epoch"] == 0 and pipeline["watermark"] == "2013-01-04T00:00:00Z"


def test_a_pipeline_that_never_ran_is_listed_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known of it is told; a number there is none."""
    opened(tmp_path, monkeypatch)
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "empty"))
    [pipeline] = ask("list_views")["pipelines"]
    assert pipeline["views"] and pipeline["epoch"] is None and pipeline["watermark"] is None
    right = ask("describe_view", view="shop.sales")["right"]
    assert right["epoch"] is None and right["certified_through"] is None
    assert "start its stream" in refused("query", sql="SELECT * FROM shop.sales")["hint"]
    assert ask("completeness", pipeline="shop")["cells"] == []
    assert ask("plan", pipeline="shop")["builds"] == []


def test_a_pipeline_that_cannot_be_read_hides_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed with what is wrong; an answer that takes too long is none."""

    def failing(error: Exception) -> Callable[..., None]:
        def fail(*args: object) -> None:
            raise error

        return fail

    monkeypatch.setattr(
        "seamline.mcp.tools.describe_newest_epoch", failing(SetupError("Broken.", hint="mend."))
    )
    [pipeline] = ask("list_views")["pipelines"]
    assert pipeline["problem"] == "Broken. mend." and pipeline["views"]
    monkeypatch.setattr("seamline.mcp.tools.describe_newest_epoch", failing(TooSlow("Late.")))
    assert refused("list_views")["error"] == "TooSlow"


def test_a_view_is_described_with_how_far_it_is_certified(shop: Shop) -> None:
    """What a measure is, and up to where its numbers were checked."""
    found = ask("describe_view", view="shop.sales")
    assert found["meaning"] == {"orders": "count()", "total": "sum(amount)", "largest": "max(amount)"}
    assert [each["name"] for each in found["columns"]] == [
        "customer",
        "window_start",
        "window_end",
        "orders",
        "total",
        "largest",
    ]
    assert found["right"]["certified_through"] == SECOND
    assert found["right"]["intervals"]["certified"] == 1 and found["right"]["epoch"] == 0
    assert "phase" in found["beside"]


def test_a_query_is_answered_with_how_far_its_views_are_right(shop: Shop) -> None:
    """As the HTTP API answers it, and the watermark of before."""
    found = ask("query", sql="SELECT customer, sum(total) AS total FROM shop.sales GROUP BY 1 ORDER BY 1")
    assert found["rows"] == [
        {"customer": "a", "total": 11},
        {"customer": "b", "total": 5},
        {"customer": None, "total": 3},
    ]
    [told] = found["views"]
    assert told["summary"] == read("shop.sales", format="answer").summary()
    assert not found["final"] and told["complete_to"] == 0 and told["watermark"] == "2013-01-04T00:00:00Z"
    assert next(iter(found)) == "views"
    certified = ask("query", sql="SELECT sum(total) AS total FROM shop.sales", end=SECOND)
    assert certified["final"] and certified["rows"] == [{"total": 18}]


def test_a_number_is_taken_apart(shop: Shop) -> None:
    """With the records that it counts, and the proof that they add up."""
    found = ask("explain", view="shop.sales", key={"customer": "a"}, window="2013-01-01T00:00")
    assert found["right"]["proven"] and found["row"]["total"] == 10 and found["row"]["certified"]
    assert len(found["rows"]) == 1
    found = ask("explain", view="shop.sales", key={"customer": None}, window="2013-01-01T01:00", rows=0)
    assert found["row"]["total"] == 3 and found["rows"] == []


def test_completeness_is_paged_and_summed_up(shop: Shop) -> None:
    """The newest interval first, and how far the view is certified before all of them."""
    found = ask("completeness", pipeline="shop", limit=1)
    assert [each["interval"] for each in found["cells"]] == [SECOND]
    assert (found["total"], found["next_offset"]) == (2, 1)
    assert found["right"]["views"]["sales"]["certified_through"] == SECOND
    found = ask("completeness", pipeline="shop", end=SECOND)
    assert [(each["interval"], each["status"]) for each in found["cells"]] == [(FIRST, "certified")]


def test_a_plan_says_what_would_be_built(shop: Shop) -> None:
    """Of a range, or of what is owed."""
    owed = ask("plan", pipeline="shop")
    assert [(each["interval"], each["rows"]) for each in owed["builds"]] == [(SECOND, 1)]
    assert owed["cut"] == 0 and owed["watermark"] == "2013-01-04T00:00:00Z"
    assert ask("plan", pipeline="shop", start=FIRST, end=SECOND)["builds"][0]["interval"] == FIRST


@pytest.mark.parametrize(
    ("name", "arguments", "message", "hint"),
    [
        ("query", {"sql": "SELECT * FROM read_text('/etc/passwd')"}, "names no view", "PIPELINE.VIEW"),
        (
            "query",
            {"sql": "SELECT * FROM shop.sales, read_text('/etc/passwd')"},
            "disabled by configuration",
            "over the views",
        ),
        ("query", {"sql": "COPY shop.sales TO '/tmp/harm.csv'"}, "Only a SELECT", "PIPELINE.VIEW"),
        (
            "query",
            {"sql": "SELECT 1 FROM shop.sales; DROP TABLE shop.sales"},
            "2 statements",
            "PIPELINE.VIEW",
        ),
        ("query", {"sql": "ATTACH '/tmp/harm.db'"}, "Only a SELECT", "PIPELINE.VIEW"),
        ("query", {"sql": "SELECT * FROM '/etc/passwd'"}, "is not a view", "PIPELINE.VIEW"),
        ("query", {"sql": "SELECT x FROM shop.sales"}, "The SQL is wrong", "over the views"),
        (
            "query",
            {"sql": "SELECT repeat('x', 10000) FROM shop.sales, range(5000)", "limit": 10_000},
            "more than 64 MiB",
            "fewer rows or columns",
        ),
        ("query", {"sql": "SELECT 1 FROM shop.sales", "limit": 0}, "query: limit: ", "the tool's schema"),
        ("query", {"sql": "SELECT 1 FROM shop.sales", "from": FIRST}, "no argument 'from'", "it takes: sql"),
        ("query", {}, "query: sql: Field required", "the tool's schema"),
        ("describe_view", {"view": "sales"}, "is not a view", "list_views"),
        ("describe_view", {"view": "shop.other"}, "There is no view", "shop.sales"),
        ("explain", {"view": "shop.sales", "key": {}}, "has the keys customer", "--key customer"),
        (
            "explain",
            {"view": "shop.sales", "key": {"customer": "z"}, "window": FIRST},
            "has no row",
            "seamline query",
        ),
        ("completeness", {"pipeline": "../shop"}, "There is no pipeline", "available: shop"),
        ("plan", {"pipeline": "shop", "start": FIRST}, "needs both bounds", "end is exclusive"),
        ("plan", {"pipeline": "shop", "start": "2012-01-01", "end": "2012-01-02"}, "2013", ""),
        ("build", {"pipeline": "shop"}, "There is no tool 'build'", "available: list_views"),
    ],
)
def test_what_is_wrong_is_told_with_a_hint(
    shop: Shop, name: str, arguments: dict[str, Any], message: str, hint: str
) -> None:
    """Also what means harm: neither a file nor another database is read, and nothing is written."""
    said = refused(name, **arguments)
    assert message in said["message"] and hint in said["hint"], said
    assert not Path("/tmp/harm.csv").exists() and not Path("/tmp/harm.db").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("describe_view", {"view": "shop.sales"}),
        ("query", {"sql": "SELECT * FROM shop.sales"}),
        ("explain", {"view": "shop.sales", "key": {"customer": "a"}, "window": FIRST}),
        ("completeness", {"pipeline": "shop"}),
        ("plan", {"pipeline": "shop"}),
    ],
)
def test_a_pipeline_of_others_is_as_one_that_is_not_there(
    shop: Shop, name: str, arguments: dict[str, Any]
) -> None:
    """The same words: nobody learns what else there is."""
    hidden = refused(name, may_read=lambda _: False, **arguments)
    renamed = json.loads(json.dumps(arguments).replace("shop", "spam"))
    missing = refused(name, may_read=lambda _: False, **renamed)
    assert hidden == {
        "error": "NotFound",
        "message": "There is no pipeline 'shop'.",
        "hint": "available: none.",
    }
    assert missing == {**hidden, "message": "There is no pipeline 'spam'."}


def test_only_readable_pipelines_are_listed(shop: Shop) -> None:
    """Of the others not even the names."""
    assert parse(call("list_views", {}, may_read=lambda _: False)) == {"pipelines": []}


def test_nothing_is_written(shop: Shop, tmp_path: Path) -> None:
    """Every tool is called, and no file of the warehouse is another one."""
    before = list_files(tmp_path / "w")
    ask("list_views")
    ask("describe_view", view="shop.sales")
    ask("query", sql="SELECT * FROM shop.sales")
    ask("explain", view="shop.sales", key={"customer": "a"}, window=FIRST)
    ask("completeness", pipeline="shop")
    ask("plan", pipeline="shop")
    assert list_files(tmp_path / "w") == before


def test_a_large_answer_is_cut_and_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that takes a part for the whole would count wrong."""
    text = "SELECT repeat('x', 1000) AS x FROM shop.sales, range(200)"
    result = call("query", {"sql": text, "limit": 1000})
    found = parse(result)
    assert next(iter(found)) == "truncated" and not found["more"]
    assert found["truncated"]["list"] == "rows" and found["truncated"]["of"] == 800
    assert found["truncated"]["shown"] == len(found["rows"]) < 66
    assert len(result.content[0].text) <= bounded_answer.MOST_BYTES
    assert found["views"][0]["complete_to"] == 0
    limited = ask("query", sql="SELECT * FROM shop.sales", limit=2)
    assert limited["more"] and len(limited["rows"]) == 2


def test_what_does_not_fit_without_its_rows_is_refused() -> None:
    """A cut that leaves nothing helps nobody."""
    assert json.loads(encode_bounded({"a": "x", "rows": ["y" * 50] * 9}, "rows", "less.", 300))["a"] == "x"
    with pytest.raises(BadRange, match="more than 300 bytes"):
        encode_bounded({"a": "x" * 400, "rows": ["y" * 50] * 9}, "rows", "less.", 300)


def test_a_failure_that_nobody_expects_is_logged_and_not_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words may name what the caller must not see."""

    def failing(*args: object, **options: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("seamline.mcp.tools.plan_run", failing)
    said = refused("plan", pipeline="shop")
    assert said["error"] == "Failed" and "secret" not in json.dumps(said)
    assert "a secret" in caplog.text


def test_an_answer_that_takes_too_long_is_broken_off(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """One question must not keep the process for ever."""

    def hurried(make: Callable[[], T]) -> T:
        with interrupt_after(0.5):
            return make()

    monkeypatch.setattr("tests.unit.mcp.test_tools.work_out", hurried)
    text = "SELECT count(*) FROM shop.sales, range(1000000000000) a WHERE hash(a.range) = 1"
    assert refused("query", sql=text)["error"] == "TooSlow"
