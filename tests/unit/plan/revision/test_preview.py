"""What a preview says of sampled intervals, and of which ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from seamline.plan.revision.preview import Example, IntervalPreview, MeasureChange, ViewPreview
from seamline.plan.revision.samples import Sampled, choose_samples
from seamline.plan.wording.preview_text import (
    format_preview,
    format_preview_markdown,
    serialize_preview,
)


def chosen(weights: str, most: int) -> str:
    """Choose among intervals a, b, c, ... with the weights that digits say."""
    known = [Sampled(chr(97 + at), int(weight)) for at, weight in enumerate(weights)]
    return "".join(each.interval for each in choose_samples(reversed(known), most))


@pytest.mark.parametrize(
    ("weights", "most", "expected"),
    [
        ("0000000", 3, "adg"),  # as far apart as can be
        ("0000000", 1, "g"),  # the newest
        ("000", 5, "abc"),
        ("", 5, ""),
        ("0190200", 2, "ce"),  # those of most late rows
        ("0100200", 4, "abeg"),  # and some of the rest
    ],
)
def test_intervals_are_spread_and_late_ones_come_first(weights: str, most: int, expected: str) -> None:
    """A preview of the newest day alone would miss what is wrong with January."""
    assert chosen(weights, most) == expected


def change(relative: float | None, absolute: float | None = 1.0, name: str = "total") -> MeasureChange:
    """Make a change of one row."""
    place = {"customer": f"a{relative}"}
    return MeasureChange(name, 1, absolute, relative, (Example(place, "1", "2", absolute, relative),))


ONE = IntervalPreview("2013-01-01T00:00:00Z", 4, 7, 1, 1, 1, (change(-0.5), change(0.1, name="orders")))
TWO = IntervalPreview("2013-01-02T00:00:00Z", 4, 9, 1, 0, 0, (change(0.2, 30.0),))
FOUND = ViewPreview("shop.sales", "sales/a", "sales/b", (ONE, TWO), published=9)


def test_intervals_add_up_and_the_largest_change_is_of_any() -> None:
    """The sign says in which direction: less money is not more money."""
    total, orders = FOUND.measures
    assert (total.rows, total.absolute, total.relative, orders.rows) == (2, 30.0, -0.5, 1)
    assert [each.relative for each in total.examples] == [-0.5, 0.2]
    assert (FOUND.equal, FOUND.changed, FOUND.gone, FOUND.new, FOUND.differs) == (16, 2, 1, 1, True)
    assert FOUND.largest == 0.5


def test_what_was_zero_is_shown_first() -> None:
    """It has no share, and is the largest of changes."""
    some = [change(5.0), change(None, 3.0)]
    found = replace(FOUND, intervals=tuple(replace(ONE, measures=(each,)) for each in some))
    assert found.measures[0].examples[0].relative is None


@pytest.mark.parametrize(("limit", "waits"), [(0.0, False), (0.49, True), (0.5, False)])
def test_a_person_approves_more_than_the_limit(limit: float, waits: bool) -> None:
    """Not what is just as much; and 0 is no limit."""
    found = replace(FOUND, limit=limit)
    assert found.waits is waits
    assert any("approve" in line for line in format_preview(found)) is waits


def test_rows_that_come_and_go_are_a_change_as_well() -> None:
    """A key that is gone has no number any more."""
    found = replace(FOUND, intervals=(replace(ONE, measures=(), equal=8, changed=0, gone=1, new=2),))
    assert found.largest == pytest.approx(3 / 9)


def test_each_form_says_the_same() -> None:
    """What a script reads and what a person reads are one thing."""
    found = replace(FOUND, skipped={"2013-01-05T00:00:00Z": "it is too large"}, lost=("least",))
    text, table = "\n".join(format_preview(found)), "\n".join(format_preview_markdown(found))
    row = json.loads(json.dumps(serialize_preview(found)))
    assert "2 rows changed, 1 gone, 1 new, 16 equal, over 2 of 9 published intervals" in text
    assert "total: 2 rows changed, at most +30 and -50 %" in text
    assert "| total | 2 | +30 | -50 % | 1 -&gt; 2 (-50 %) at customer=a-0.5<br>" in table
    for each in (text, table):
        assert "measures that are gone: least" in each and "it is too large" in each
    assert (row["changed"], row["measures"][0]["relative"], row["largest"]) == (2, -0.5, 0.5)


def test_what_was_not_looked_at_is_not_called_unchanged() -> None:
    """Silence would be taken for a promise."""
    blind = replace(FOUND, intervals=(), skipped={"x": "it is too large"})
    assert not blind.differs and "none of 9 published intervals could be looked at" in next(
        format_preview(blind)
    )
    why = replace(FOUND, intervals=(), why="its windows are of so many events")
    assert [*format_preview(why)] == ["shop.sales: no preview: its windows are of so many events"]
    same = replace(FOUND, intervals=(replace(ONE, equal=9, changed=0, gone=0, new=0, measures=()),))
    assert "no published number would change, over 1 of 9" in next(format_preview(same))
