"""What is sent to do harm: each text in each place of the API and the pages, and what comes of it."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dags.server import shop_of
from tests.unit.shop import Shop

from seamline.serve.read import read
from seamline.web import api
from seamline.web.app import SAFE

TEXTS = {
    "quote": "' OR '1'='1",
    "comment": "a'; DROP TABLE shop; --",
    "union": "' UNION SELECT * FROM read_text('/etc/passwd') --",
    "copy": "'; COPY (SELECT 1) TO '/tmp/harm'; --",
    "attach": "'; ATTACH '/tmp/harm.db'; --",
    "install": "'; INSTALL httpfs; LOAD httpfs; --",
    "backtick": "`; SELECT getenv('HOME'); --",
    "backslash": "\\' OR 1=1 --",
    "double": '" OR ""="',
    "spark": "${spark.sql.warehouse.dir}",
    "jinja": "{{ 7*7 }}{% for x in ().__class__.__base__.__subclasses__() %}x{% endfor %}",
    "format": "{0.__class__.__init__.__globals__}%s%n",
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "svg": "<svg/onload=alert(1)>",
    "close": "</script><script>alert(1)</script>",
    "link": "javascript:alert(1)",
    "up": "../../../../etc/passwd",
    "encoded up": "..%2f..%2f..%2fetc%2fpasswd",
    "twice encoded up": "..%252f..%252fetc%252fpasswd",
    "windows up": "..\\..\\..\\windows\\win.ini",
    "absolute": "/etc/passwd",
    "file": "file:///etc/passwd",
    "null byte": "a\x00b",
    "header": "a\r\nSet-Cookie: harm=1",
    "right to left": "a\u202eb",
    "surrogate": "\\ud800",
    "long": "x" * 5000,
    "shell": "$(touch /tmp/harm)`touch /tmp/harm`;|&",
    "number": "9" * 400,
    "not a number": "NaN",
    "infinite": "1e999999999",
}
PLACES = {
    "key": ("/api/v1/views/shop/sales", "key.customer"),
    "key's name": ("/api/v1/views/shop/sales", None),
    "null": ("/api/v1/views/shop/sales", "null"),
    "start": ("/api/v1/views/shop/sales", "start"),
    "as of": ("/api/v1/views/shop/sales", "as_of"),
    "version": ("/api/v1/views/shop/sales", "version"),
    "offset": ("/api/v1/views/shop/sales", "offset"),
    "explained key": ("/api/v1/explain/shop/sales?window=2013-01-01T00:00:00Z", "key.customer"),
    "explained window": ("/api/v1/explain/shop/sales?key.customer=a", "window"),
    "planned from": ("/api/v1/plans/shop?to=2013-01-02T00:00:00Z", "from"),
    "page's key": ("/pipelines/shop/views/sales", "key.customer"),
    "page's start": ("/pipelines/shop/views/sales", "start"),
    "page's measure": ("/pipelines/shop/views/sales", "measure"),
    "page's version": ("/pipelines/shop/views/sales", "version"),
    "page's interval": ("/pipelines/shop/completeness?view=sales", "interval"),
    "page's view": ("/pipelines/shop/differences", "view"),
    "page's plan": ("/pipelines/shop/plan?to=2013-01-02T00:00:00Z", "from"),
    "page's explanation": ("/pipelines/shop/explain/sales?window=2013-01-01T00:00:00Z", "key.customer"),
}
PATHS = (
    "/api/v1/views/{}/sales",
    "/api/v1/views/shop/{}",
    "/pipelines/{}/stream",
    "/pipelines/shop/views/{}",
    "/static/{}",
    "/reports/{}/run/index.html",
    "/reports/shop__batch/{}/index.html",
    "/reports/shop__batch/run/{}",
    "/dags/{}",
)
SENT = ("action", "position", "from", "name", "upgrade", "reason")
LEFT = (Path("/tmp/harm"), Path("/tmp/harm.db"))
MARKUP = ("<script>alert", "<img src=x", "<svg/onload")
HARM = re.compile(r"root:.*:0:0|Traceback|\b49\b")


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[Shop]:
    """One shop for all of them: none may change it."""
    with pytest.MonkeyPatch.context() as patch:
        yield shop_of(tmp_path_factory.mktemp("shop"), patch)
    assert not [place for place in LEFT if place.exists()]


def require_harmless(answer, shop: Shop) -> None:
    """It is answered or refused, in words that do nothing; the tables are as they were."""
    assert answer.status_code < 500 or answer.status_code == 503, answer.text
    assert not HARM.search(answer.text), answer.text
    if "html" in answer.headers["Content-Type"]:
        assert not [each for each in MARKUP if each in answer.text]
    assert "set-cookie" not in answer.headers
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert read("shop.sales").num_rows == 4


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", TEXTS)
def test_a_parameter(client, shop, text: str, place: str) -> None:
    """Every text in every parameter."""
    path, name = PLACES[place]
    path, _, fixed = path.partition("?")
    params = dict(each.split("=") for each in fixed.split("&") if each)
    params |= {name: TEXTS[text]} if name else {f"key.{TEXTS[text]}": "1"}
    require_harmless(client.get(path, params=params, headers={"Accept": "text/html"}), shop)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("text", TEXTS)
def test_a_path(client, shop, text: str, path: str) -> None:
    """Every text as a part of a path; none of them is a page."""
    answer = client.get(
        path.format(urllib.parse.quote(TEXTS[text], safe="")), headers={"Accept": "text/html"}
    )
    assert answer.status_code in (400, 404, 307), answer.text
    require_harmless(answer, shop)


@pytest.mark.parametrize("name", SENT)
@pytest.mark.parametrize("text", TEXTS)
def test_a_field_of_a_body(database, client, shop, text: str, name: str) -> None:
    """Every text in every field; a reason is kept as it is."""
    body = {"action": "savepoint", "name": "mine"} | {name: TEXTS[text]}
    answer = client.post("/api/v1/streams/shop", json=body)
    if name in ("reason", "name") and len(TEXTS[text]) <= 1000:
        assert answer.status_code in (202, 400, 422), answer.text
    else:
        assert answer.status_code in (400, 422), answer.text
    assert read("shop.sales").num_rows == 4


BODIES = {
    "no json": b"action: stop",
    "cut off": b'{"action": "sto',
    "a list": b"[1, 2]",
    "a text": b'"stop"',
    "nothing": b"",
    "null": b"null",
    "deep": b"[" * 30_000 + b"]" * 30_000,
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "aliases": b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n",
    "too large": b'{"action": "stop", "reason": "' + b"x" * 70_000 + b'"}',
    "too large by far": b" " * 5_000_000,
    "twice": b'{"action": "stop", "action": "start", "harm": 1}',
    "unknown field": b'{"action": "stop", "admin": true}',
    "another type": b'{"action": ["stop"]}',
    "true for text": b'{"action": true}',
    "text for true": b'{"action": "start", "then_backfill_gap": "yes"}',
    "number": b"1e400",
    "no number": b"NaN",
    "no utf-8": b'{"action": "\xff\xfe"}',
    "prototype": b'{"__proto__": {"action": "stop"}}',
    "class": b'{"action": "stop", "__class__": "x"}',
}


@pytest.mark.parametrize("body", BODIES)
def test_a_body(database, client, shop, body: str) -> None:
    """It is refused before anything is done."""
    answer = client.post(
        "/api/v1/streams/shop", content=BODIES[body], headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 413, 422), (answer.status_code, answer.text[:300])
    if "large" in body:
        assert answer.status_code == 413
    assert "Traceback" not in answer.text


def test_a_failure_has_the_headers_too(client, monkeypatch) -> None:
    """Starlette answers for what nobody expected, around everything that a route has."""

    def failing(_: object) -> list[str]:
        raise RuntimeError("unexpected")

    monkeypatch.setattr(api, "list_readable_pipelines", failing)
    answer = client.get("/api/v1/views")
    assert answer.status_code == 500 and "unexpected" not in answer.text
    assert SAFE.items() <= {name: answer.headers.get(name) for name in SAFE}.items()
