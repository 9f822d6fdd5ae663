"""Joins as definitions: what they mean, and what they cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.model.refused import require_refused

from seamline import (
    Batch,
    CountWindow,
    Join,
    KafkaSource,
    Lookup,
    Open,
    Pipeline,
    Sliding,
    Tumbling,
    View,
    count,
    first,
    formula,
    max,
    sum,
)
from seamline.model.compile.compiled_join import LEFT, MATCHED, PAIR
from seamline.model.compile.compiled_pipeline import CompiledView, compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json

HOUR = Tumbling("1 hour")
SHOWN = KafkaSource(
    name="shown",
    topic="shown",
    schema="ad STRING, site STRING, cost INT, part DOUBLE, at TIMESTAMP",
    event_time="at",
)
CLICKED = KafkaSource(
    name="clicked", topic="clicked", schema="ad STRING, worth INT, at TIMESTAMP", event_time="at"
)
PAID = Join("paid", left="shown", right="clicked", on={"ad": "ad"}, before="5 minutes", after="1 hour")
BY_SITE = View("by_site", of="paid", keys=["shown_site"], window=HOUR, measures={"n": count()})
ADS = Pipeline(
    name="ads", source=[SHOWN, CLICKED], derive=[PAID], views=[BY_SITE], batch=Batch("1 day", "2026-01-01")
)


def with_join(**changes: Any) -> Pipeline:
    """Return the pipeline with another join."""
    return replace(ADS, derive=[replace(PAID, **changes)])


def with_view(**changes: Any) -> Pipeline:
    """Return the pipeline with another view."""
    return replace(ADS, views=[replace(BY_SITE, **changes)])


def view_of(pipeline: Pipeline) -> CompiledView:
    """Compile a pipeline, and return its first view."""
    return compile_pipeline(pipeline).views[0]


TARIFF = Lookup("tariff", "tables/tariff.csv", on={"site": "site"}, columns=["rate INT"])
LEFTS = {"n": count(), "all": count("left")}
WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "no left source": (with_join(left="nobody"), "derive[paid].left", "no source 'nobody'"),
    "no right source": (
        with_join(right="paid"),
        "derive[paid].right",
        "clicked; a join is of sources, not of joins",
    ),
    "a join's wrong name": (with_join(name="My"), "derive[My].name", "valid name"),
    "a join called as a source": (with_join(name="shown"), "derive[shown].name", "name of a source"),
    "two joins of a name": (
        replace(ADS, derive=[PAID, PAID]),
        "derive[paid].name",
        "name of other derived rows",
    ),
    "nothing compared": (with_join(on={}), "derive[paid].on", "compares no columns"),
    "compared columns as a list": (with_join(on=["ad"]), "derive[paid].on", "['ad'] is not a mapping"),
    "no left column": (with_join(on={"x": "ad"}), "derive[paid].on", "'shown' has no column 'x'"),
    "no right column": (with_join(on={"ad": "x"}), "derive[paid].on", "'clicked' has no column 'x'"),
    "keys of two types": (with_join(on={"ad": "worth"}), "derive[paid].on", "ad is STRING, worth is INT"),
    "a key of doubles": (
        replace(
            ADS,
            source=[SHOWN, replace(CLICKED, schema="ad STRING, part DOUBLE, at TIMESTAMP")],
            derive=[replace(PAID, on={"part": "part"})],
        ),
        "derive[paid].on",
        "must compare exactly",
    ),
    "a null-safe column that is none": (
        with_join(null_safe=["site"]),
        "derive[paid].null_safe",
        "not a left column of on=",
    ),
    "a join by its name": (replace(ADS, derive=["paid"]), "derive", "'paid' is not a Join"),
    "null-safe columns as a text": (
        with_join(null_safe="ad"),
        "derive[paid].null_safe",
        'write null_safe=["ad"]',
    ),
    "a bound that is none": (with_join(after="soon"), "derive[paid].after", "'soon' is not a duration"),
    "an open bound that is none": (with_join(before=Open("x")), "derive[paid].before", "not a duration"),
    "nothing between the bounds": (
        with_join(before=Open("0 seconds"), after=Open("0 seconds")),
        "derive[paid]",
        "No right row is between",
    ),
    "a reach too far": (with_join(after="200 days"), "derive[paid]", "more than 100 intervals"),
    "a window that slides": (
        with_join(before="0 seconds", after="0 seconds", same=Sliding("1 hour", "10 minutes")),
        "derive[paid].same",
        "not a tumbling window in UTC",
    ),
    "a window of a zone": (
        with_join(before="0 seconds", after="0 seconds", same=Tumbling("1 day", zone="Europe/Rome")),
        "derive[paid].same",
        "not a tumbling window in UTC",
    ),
    "a window beside bounds": (with_join(same=HOUR), "derive[paid].same", "window join has no bounds"),
    "a window of no size": (
        with_join(before="0 seconds", after="0 seconds", same=Tumbling("soon")),
        "derive[paid].same",
        "'soon' is not a duration",
    ),
    "a condition on no pair": (with_join(where="cost > 1"), "derive[paid].where", "cost"),
    "a condition that can fail": (
        with_join(where="shown_cost + clicked_worth > 1"),
        "derive[paid].where",
        "can fail",
    ),
    "two columns of one name": (
        replace(
            ADS,
            source=[
                replace(SHOWN, name="a", schema="ad STRING, b_c INT, at TIMESTAMP"),
                replace(CLICKED, name="a_b", schema="ad STRING, c INT, at TIMESTAMP"),
            ],
            derive=[replace(PAID, left="a", right="a_b")],
        ),
        "derive[paid]",
        "Two columns of a pair are called 'a_b_c'",
    ),
    "a joined source with ids for ever": (
        replace(ADS, source=[replace(SHOWN, event_id=["ad"]), replace(CLICKED, event_id=["ad"])]),
        "source[shown].dedup_within",
        "does not say how long copies may come",
    ),
    "ids of one side": (
        replace(ADS, source=[replace(SHOWN, event_id=["ad"]), CLICKED]),
        "source.event_id",
        "Some sources have an event_id, and clicked has none",
    ),
    "ids of a source beside joined ones": (
        replace(ADS, source=[SHOWN, CLICKED, replace(SHOWN, name="bought", topic="bought", event_id=["ad"])]),
        "source.event_id",
        "Some sources have an event_id, and shown, clicked have none",
    ),
    "copies that nobody knows": (
        with_join(copies=True),
        "derive[paid].copies",
        "no event_id by which to know",
    ),
    "a wish about copies that is none": (
        with_join(copies="some"),
        "derive[paid].copies",
        "'some' is neither True nor False",
    ),
    "a view of a join that there is not": (
        with_view(of="pays"),
        "views[by_site].of",
        "one or more of the sources shown, clicked, or derived rows: paid",
    ),
    "the kind of a derived row as a key": (
        with_view(keys=["_kind"]),
        "views[by_site]",
        "no column '_kind'",
    ),
    "the kind of a derived row in a measure": (
        with_view(measures={"n": count(where="_kind = 'left'")}),
        "views[by_site]",
        "no column '_kind'",
    ),
    "a look-up of a joined source that nothing uses": (
        replace(ADS, source=[replace(SHOWN, lookups=[TARIFF]), CLICKED]),
        "source[shown].lookups[tariff]",
        "Nothing uses its columns",
    ),
    "a join of one source": (
        replace(ADS, source=replace(SHOWN, name=""), views=[replace(BY_SITE, of="", keys=["site"])]),
        "derive",
        "sources that have names",
    ),
    "pairs that are counted in windows": (
        with_view(window=CountWindow(3)),
        "views[by_site].window",
        "no order",
    ),
    "pairs that explode": (
        with_view(explode={"x": "split(shown_ad, ',')"}),
        "views[by_site].explode",
        "no explode",
    ),
    "the first pair": (
        with_view(measures={"f": first("clicked_worth")}),
        "views[by_site].measures[f]",
        "no order",
    ),
    "a measure that can fail": (
        with_view(measures={"s": sum("shown_cost + clicked_worth")}),
        "views[by_site].measures[s]",
        "can fail",
    ),
    "a right key beside left rows": (
        with_view(keys=["clicked_ad"], measures=LEFTS),
        "views[by_site].keys",
        "column of the right side",
    ),
    "a right condition beside left rows": (
        with_view(where="clicked_worth > 0", measures=LEFTS),
        "views[by_site].where",
        "reads the right side",
    ),
    "a right condition on matched rows": (
        with_view(measures={"dear": count("matched", where="clicked_worth > 3")}),
        "views[by_site].measures[dear]",
        "left and matched rows do not have",
    ),
    "a right condition in a formula": (
        with_view(measures={"f": formula("n", n=count("left", where="CLICKED_WORTH IS NULL"))}),
        "views[by_site].measures[f]",
        "left and matched rows do not have",
    ),
    "a formula of unmatched rows": (
        with_view(measures={"f": formula("n", n=count("unmatched"))}),
        "views[by_site].measures[f]",
        "cannot be made of",
    ),
    "a view of a join and a source": (
        with_view(of=["paid", "shown"], keys=[]),
        "views[by_site].of",
        "'paid' names derived rows",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_join_is_refused_with_its_place(name: str) -> None:
    """A join that is not what its author means gives numbers that look right."""
    require_refused(*WRONG[name], __file__)


def test_a_pair_has_the_columns_of_both_rows() -> None:
    """Each by the name of its source; no column is read that no view needs."""
    join = view_of(with_view(measures={"n": count(), "worth": max("clicked_worth")})).join
    assert join
    assert [field.name for field in join.schema.fields] == [
        "_kind",
        "shown_ad",
        "shown_site",
        "clicked_ad",
        "clicked_worth",
    ]
    assert (join.before, join.after) == (timedelta(minutes=5), timedelta(hours=1))
    itself = replace(PAID, right="shown", on={"site": "site"})
    pairs = replace(BY_SITE, keys=["left_ad", "right_ad"])
    made = view_of(replace(ADS, derive=[itself], views=[pairs])).join
    assert made
    assert [side.prefix for side in made.sides] == ["left_", "right_"]


@pytest.mark.parametrize(
    ("before", "after", "bounds"),
    [
        ("5 seconds", "1 minute", (-5_000_000, 60_000_000)),
        (Open("5 seconds"), Open("1 minute"), (-4_999_999, 59_999_999)),
        (Open("0 seconds"), "1 minute", (1, 60_000_000)),
        ("0 seconds", "0 seconds", (0, 0)),
    ],
)
def test_an_open_bound_is_not_within(before: str | Open, after: str | Open, bounds: tuple[int, int]) -> None:
    """Event times are whole microseconds."""
    join = view_of(with_join(before=before, after=after)).join
    assert join
    assert (join.lower, join.upper) == bounds


def test_views_say_which_kinds_of_rows_there_are() -> None:
    """Nothing is made that no view counts."""
    assert view_of(ADS).join.kinds == (PAIR,)  # type: ignore[union-attr]
    assert view_of(with_view(measures=LEFTS)).join.kinds == (PAIR, LEFT)  # type: ignore[union-attr]
    missed = {"missed": count("unmatched")}
    assert view_of(with_view(measures=missed)).join.kinds == (LEFT, MATCHED)  # type: ignore[union-attr]
    both = compile_pipeline(replace(ADS, views=[BY_SITE, replace(BY_SITE, name="missed", measures=missed)]))
    assert {view.join.id for view in both.views if view.join} == {both.views[0].join.id}  # type: ignore[union-attr]


def test_what_a_join_says_is_part_of_its_views_versions() -> None:
    """And of no other: a view of a source stays what it is."""
    plain = View("plain", of="shown", keys=["site"], window=HOUR, measures={"n": count()})
    before = compile_pipeline(replace(ADS, views=[BY_SITE, plain]))
    after = compile_pipeline(replace(ADS, views=[BY_SITE, plain], derive=[replace(PAID, after="2 hours")]))
    assert before.record_version == after.record_version
    assert before.views[0].id != after.views[0].id
    assert before.views[1].id == after.views[1].id


def test_a_stored_definition_has_its_joins() -> None:
    """A version that is born outlives the file it was in."""
    bounded = with_join(before=Open("1 minute"), where="shown_cost > 1", null_safe=["ad"])
    for stored in (bounded, with_join(before="0 seconds", after="0 seconds", same=HOUR)):
        assert from_json(to_json(stored)) == stored
        assert view_of(from_json(to_json(stored))) == view_of(stored)


@pytest.mark.parametrize(
    "changes",
    [
        {"views": [replace(BY_SITE, keys=["shown_tariff_rate"])]},
        {"views": [replace(BY_SITE, measures={"paid": sum("shown_tariff_rate * 1D")})]},
        {"derive": [replace(PAID, where="shown_tariff_rate > 1")]},
        {"derive": [replace(PAID, on={"tariff_rate": "worth"})]},
    ],
    ids=["a key", "a measure", "the join's condition", "a compared column"],
)
def test_a_look_up_feeds_rows_that_pairs_need_it_of(changes: Mapping[str, Any]) -> None:
    """It is pinned, so that both layers have what the row's epoch has found."""
    looked_up = replace(ADS, source=[replace(SHOWN, lookups=[TARIFF]), CLICKED], **changes)
    made = compile_pipeline(looked_up)
    assert [each.name for each in made.lookups] == ["tariff"]
    assert made.record_version != compile_pipeline(ADS).record_version
    assert made.views[0].join
    assert "tariff_rate" in [each.name for each in made.views[0].join.left.columns]


def test_columns_of_a_look_up_are_those_of_either_row_of_a_pair_with_itself() -> None:
    """A source that is joined with itself has two prefixes."""
    join = replace(PAID, right="shown", on={"ad": "ad"}, before=Open("0 seconds"))
    view = replace(BY_SITE, keys=["left_site"], measures={"n": sum("right_tariff_rate")})
    made = compile_pipeline(
        replace(ADS, source=[replace(SHOWN, lookups=[TARIFF]), CLICKED], derive=[join], views=[view])
    )
    assert [each.name for each in made.lookups] == ["tariff"]
