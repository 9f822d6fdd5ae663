"""What a view's page draws over a shop's tables: its numbers are those that are read, and their address says it all."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from tests.unit.past import build
from tests.unit.shop import DAY, Sale, Shop

from seamline.serve.read import read
from seamline.web import view_page

VIEW = "/pipelines/shop/views/sales"
RANGE = {"start": "2013-01-01", "end": "2013-01-03", "measure": "total"}


def page(client: Any, path: str = VIEW, **params: str) -> str:
    """Open a page."""
    answer = client.get(path, params=params or None, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return answer.text


def cells(text: str) -> list[tuple[str, str]]:
    """List the cells of a heat map that are windows: their classes, and what they say."""
    found = re.findall(r'<td class="([^"]*)" tabindex="-1" aria-label="([^"]*)"', text)
    return [(kind, unescape(told)) for kind, told in found]


def test_a_heat_map_has_the_numbers_that_are_read(client: Any, shop: Shop) -> None:
    """Each number has its cell and its link; one that counts slices, and a window without rows, are told apart."""
    text = page(client, draw="heat", by="clock", series="a", **RANGE)
    found = [each for each in cells(text) if "no rows" not in each[1]]
    rows = [row for row in read("shop.sales").to_pylist() if row["customer"] == "a"]
    assert [re.search(r"UTC: (\d+)\.", told)[1] for _, told in found] == [  # type: ignore[index]
        str(row["total"]) for row in sorted(rows, key=lambda row: row["window_start"])
    ]
    assert [kind.split()[0] for kind, _ in found] == ["sure", "unsure"]
    assert len(cells(text)) == 48 and 'role="grid"' in text
    assert "generation g up to cut 0" in found[0][1]
    [link] = re.findall(r'aria-label="a, 2013-01-01 00:00[^>]*data-explain="([^"]*)"', text)
    assert "Everything adds up." in page(client, unescape(link))


def test_keys_are_the_rows_where_there_are_several(client: Any, shop: Shop) -> None:
    """Strange ones and NULL too, and the hours of each are one link away."""
    text = page(client, draw="heat", **RANGE)
    assert text.count("<tr data-row>") == 3 and ">NULL</th>" in text
    assert "by=clock" in text


@pytest.mark.parametrize("draw", ["heat", "small", "compared"])
def test_pictures_of_nothing_say_so(client: Any, shop: Shop, draw: str) -> None:
    """A range without rows, a key that is not there, and bounds that are open."""
    empty = {"start": "2013-02-01", "end": "2013-02-03"}
    assert "No rows in this range" in page(client, draw=draw, **empty)
    assert "<h1>" in page(client, draw=draw, start="2013-01-01")
    assert "<h1>" in page(client, draw=draw, end="2013-01-03", series="gone")
    assert 'class="alarm"' in page(client, draw=draw, zone="Europe/Nowhere")


def test_a_page_behind_the_last_row_says_so(client: Any, shop: Shop) -> None:
    """It said that there are no rows in the range, and drew them; the link leads to the first."""
    text = page(client, offset="200", **RANGE)
    assert "No rows in this range" not in text
    [link] = re.findall(r"4 rows in this range, and none from number 201 on. <a href=\"([^\"]*)\"", text)
    assert "<h2>4 rows</h2>" in page(client, VIEW + unescape(link))
    assert "No rows in this range" in page(client, offset="200", start="2013-02-01", end="2013-02-03")


def test_a_value_that_is_too_long_is_refused(client: Any) -> None:
    """Cut off, it would be another key."""
    answer = client.get(VIEW, params={"key.customer": "x" * 1001}, headers={"Accept": "text/html"})
    assert answer.status_code == 400 and "key.customer has 1,001 characters" in answer.text


def test_small_charts_have_a_point_for_each_row(client: Any, shop: Shop) -> None:
    """Each key has its chart, the largest first."""
    text = page(client, draw="small", **RANGE)
    assert text.count('class="hit"') == len(read("shop.sales"))
    names = [unescape(each) for each in re.findall(r'<figcaption title="([^"]*)"', text)]
    assert names[0] == "a" and names[2] == "NULL" and len(names) == 3
    assert "each on its own axes" in page(client, draw="small", axes="own", scale="log", **RANGE)


def test_two_ranges_are_read_and_compared(client: Any, shop: Shop) -> None:
    """Of a day and the one before; what one has not is said."""
    ask = {"draw": "compared", "start": "2013-01-02", "end": "2013-01-03", "measure": "total", "series": "a"}
    text = page(client, **ask)
    # a sold 10 at midnight, and 1 at one o'clock of the next day.
    assert "1 window is only in this range." in text and "1 window is only in the other range." in text
    assert "no row in this range" in text and "no row in the other range" in text
    shop.epoch([Sale(1441, "a", 4)])
    text = page(client, **ask)
    row = next(
        each for each in re.findall(r"<tr>.*?</tr>", text, re.DOTALL) if "2013-01-01 00:00 UTC" in each
    )
    numbers = [re.sub(r"<[^>]*>", "", each) for each in re.findall(r'<td class="number">(.*?)</td>', row)]
    assert numbers == ["4", "10", "-6", "0.4"]
    assert 'value="week" selected' in page(client, against="week", **ask)
    assert 'class="alarm"' in page(client, other="whenever", **ask)


def test_a_comparison_reads_no_more_than_a_page_draws(client: Any, shop: Shop, monkeypatch: Any) -> None:
    """Neither of this range nor of the other."""
    monkeypatch.setattr(view_page, "MOST", 2)
    ask = {"draw": "compared", "start": "2013-01-02", "end": "2013-01-03"}
    assert "3 rows are more than a page draws" in page(client, **ask)


def test_an_address_keeps_what_was_chosen(client: Any, shop: Shop) -> None:
    """The other pictures are a link away, with range, measure and scale as they are."""
    text = page(client, draw="heat", scale="log", zone="Europe/Berlin", **RANGE)
    [link] = re.findall(r'<a href="(\?[^"]*draw=small[^"]*)"', text)
    other = page(client, VIEW + unescape(link))
    assert '<option value="log" selected' in other and 'value="2013-01-01"' in other
    assert "zone=Europe%2FBerlin" in other
    assert "logarithmic" in page(client, VIEW, scale="log", **RANGE)


def test_a_point_says_where_it_comes_from(client: Any, shop: Shop) -> None:
    """The generation with its cut and run, and which epoch has changed the interval since."""
    origins = "/pipelines/shop/origins/sales"
    window = "2013-01-01T00:00:00Z/2013-01-01T01:00:00Z"
    text = page(client, origins, window=window)
    assert "generation g by" in text and "certified, up to cut 0" in text
    assert "last changed by epoch 0" in text and "0 rows since the cut" in text
    shop.epoch([Sale(9, "a", 1)])
    assert "last changed by epoch 1" in page(client, origins, window=window)
    assert "1 row since the cut" in page(client, origins, window=window)
    assert "no generation; last changed by epoch 0" in page(client, origins, window="2013-01-02T01:00:00Z")
    assert "no generation; no rows" in page(client, origins, window="2013-05-01")
    build(shop, "h", cut=1)
    assert "generation h by" in page(client, origins, window=window)
    wide = f"2013-01-01T00:00:00Z/{(DAY * 9 + shop.compiled.grid.of(shop.events[0][0].at).start).isoformat()}"
    assert "and later intervals" in page(client, origins, window=wide)
    for wrong in ("", "whenever", "2013-01-02/2013-01-01"):
        assert client.get(origins, params={"window": wrong}).status_code == 400


@pytest.mark.parametrize(
    "window",
    [
        "0001-01-01",
        "9999-12-31T20:00Z",
        "9999-12-31T23:59:59.999999Z",
        "0001-01-01/9999-12-31T23:59:59.999999Z",
    ],
)
def test_a_window_at_the_ends_of_the_calendar_is_answered(client: Any, shop: Shop, window: str) -> None:
    """It has no rows, or is refused."""
    answer = client.get("/pipelines/shop/origins/sales", params={"window": window})
    assert answer.status_code in (200, 400), answer.text


def test_a_range_of_ages_is_drawn_where_there_are_rows(client: Any, shop: Shop) -> None:
    """Its windows are not listed, and nobody looks at two thousand cells without rows."""
    ages = {"start": "0002-01-01", "end": "9999-12-31", "zone": "Pacific/Kiritimati", "series": "a"}
    found = cells(page(client, draw="heat", by="clock", **ages))
    assert len([told for _, told in found if "by the batch layer" in told]) == 2
    assert len(found) < 24 * 5
    assert page(client, draw="small", **ages).count('class="hit"') == 4
    assert "no such range" in page(client, draw="compared", **ages)
    assert "no date for 9999-12-31" in page(client, draw="compared", **ages | {"end": "9999-12-31T20:00Z"})


def test_the_default_range_of_a_heat_map_is_two_weeks(client: Any, shop: Shop) -> None:
    """A few intervals would be a few hours, where intervals are hours."""
    for day in range(2, 30):
        shop.epoch([Sale(day * 1440, "a", 1)])
    days = {told[3:13] for _, told in cells(page(client, draw="heat", by="clock", series="a"))}
    assert len(days) == 14
    [data] = re.findall(
        r'<script type="application/json" id="answer">(.*?)</script>', page(client), re.DOTALL
    )
    first, *_ = json.loads(data)["data"]
    assert len(first["x"]) == view_page.DEFAULT_INTERVALS
    assert timedelta(days=14) == view_page.LEAST_OF_HEAT
