"""Count windows that slide: each has the last so many rows of a key, and late rows move all later ones."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from seamline import Batch, CountWindow, KafkaSource, Lookup, Pipeline, View, count, first, sum
from seamline.model.compile.compiled_pipeline import compile_pipeline, compile_with_problems
from seamline.model.compile.processes.compiled_process import Budget
from seamline.model.compile.processes.lawfulness import list_broken_laws
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.functions.folding import BLANK, Fold, KeyFold, KeyRow, Place
from seamline.model.functions.last_rows import load_windows
from seamline.model.functions.laws import find_broken_law
from seamline.model.types.schema import INT, Field

SIZE = 1_000


def emitted(rows: list[tuple[int, int]], events: int, slide: int) -> dict[int, list[int]]:
    """Fold rows, an instant and a value each; return the values by the number of the window."""
    function = load_windows("windows", "window_number", [Field("n", INT)], events, slide)
    run = KeyFold(Fold(function, None, 10, 1 << 20), BLANK)
    run.take_rows(sorted(KeyRow(at, Place(0, at, "t", ""), {"n": value}) for at, value in rows))
    run.reach(SIZE, SIZE)
    found: dict[int, list[int]] = {}
    for item in run.items:
        number, value = item.values
        found.setdefault(number, []).append(value)
    return found


def expected(rows: list[tuple[int, int]], events: int, slide: int) -> dict[int, list[int]]:
    """Cut a list into windows."""
    values = [value for _, value in sorted(rows)]
    last = -(-len(values) // slide)
    cut = {k: values[max(k * slide - events, 0) : k * slide] for k in range(1, last + 1)}
    return {k: each for k, each in cut.items() if each}


@pytest.mark.parametrize(("events", "slide"), [(1, 1), (3, 1), (4, 2), (5, 3), (3, 3), (2, 5), (600, 7)])
def test_windows_have_the_last_rows(events: int, slide: int) -> None:
    """Of any number of rows, in whatever order they come; more than a piece of kept ones, too."""
    dice = random.Random(events * 100 + slide)
    for many in (0, 1, 2, slide, events, events + 1, 17, 700):
        rows = [(at, at % 13) for at in range(many)]
        dice.shuffle(rows)
        assert emitted(rows, events, slide) == expected(rows, events, slide)
    fold = Fold(load_windows("windows", "window_number", [Field("n", INT)], events, slide), None, 10, 1 << 20)
    assert find_broken_law(fold, [Field("n", INT)], SIZE) == ""


PIPELINE = Pipeline(
    name="shop",
    source=[KafkaSource("clicks", "user STRING, n INT, at TIMESTAMP, until TIMESTAMP", "at", name="clicks")],
    views=[
        View(
            "lately",
            of="clicks",
            keys=["user"],
            window=CountWindow(100, slide=10, begin="1 day"),
            measures={"n": count(), "total": sum("n")},
        )
    ],
    batch=Batch("1 hour", "2026-01-05"),
)


def changed(**changes: object) -> Pipeline:
    """Return the pipeline with another view."""
    [view] = PIPELINE.views
    return replace(PIPELINE, views=[replace(view, **changes)])


def test_a_view_by_such_windows_is_one_of_emitted_rows() -> None:
    """It is merged as others; a window that differs makes another version, and a stored one is the same."""
    compiled = compile_pipeline(PIPELINE)
    [view] = compiled.views
    assert view.process and (view.counts, view.of) == (0, ("clicks",))
    assert [key.name for key in view.keys] == ["user", "window_number"]
    assert [field.name for field in view.process.columns] == ["user", "n"]
    assert (view.process.begin.days, str(view.window)) == (1, "count 100 {'slide': 10, 'begin': '1 day'}")
    [stored] = compile_pipeline(from_json(to_json(PIPELINE))).views
    assert stored.process and (stored.id, stored.process.id) == (view.id, view.process.id)
    windows = [CountWindow(100), CountWindow(100, slide=20), CountWindow(100, slide=10)]
    ids = {compile_pipeline(changed(window=each)).views[0].id for each in windows}
    assert len({view.id, *ids}) == 4
    whole = compile_pipeline(changed(window=CountWindow(100, slide=100))).views[0]
    assert whole.process and not whole.counts
    alike = [CountWindow(100, slide=10, begin=each) for each in ("1 day", "24 hours")]
    alike.append(replace(alike[0], copies=True))
    kept = replace(PIPELINE.sources[0], event_id=["user"], dedup_within="1 hour")
    assert (
        len({compile_pipeline(replace(changed(window=each), source=[kept])).views[0].id for each in alike})
        == 1
    )


WRONG: Mapping[str, tuple[Pipeline, str, str]] = {
    "windows that slide back": (
        changed(window=CountWindow(3, slide=-1)),
        "views[lately].window",
        "every -1 events",
    ),
    "an event in too many windows": (
        changed(window=CountWindow(3_000, slide=1)),
        "views[lately].window",
        "in 3000 windows",
    ),
    "a span that cuts intervals": (
        changed(window=CountWindow(3, begin="90 minutes")),
        "views[lately].window",
        "no whole number of intervals",
    ),
    "a slide in time": (
        changed(window=CountWindow(3, slide="3 minutes")),
        "views[lately].window.slide",
        "is not a number",
    ),
    "copies of intervals": (
        changed(window=CountWindow(3, copies=True)),
        "views[lately].window",
        "copies are not counted in others",
    ),
    "copies without ids": (
        changed(window=CountWindow(3, slide=1, copies=True)),
        "views[lately].window",
        "No event_id says",
    ),
    "no keys": (changed(keys=[]), "views[lately].keys", "counted in one place"),
    "a key that is a time": (
        changed(keys=["until"]),
        "views[lately].keys",
        "is a TIMESTAMP and cannot be a key",
    ),
    "a measure that cannot subtract": (
        changed(measures={"n": first("n")}),
        "views[lately].measures[n]",
        "subtract",
    ),
    "a condition that is none": (changed(where="n >"), "views[lately].where", "n >"),
    "a column that numbers windows": (
        replace(
            changed(measures={"n": sum("Window_Number")}),
            source=[replace(PIPELINE.sources[0], schema="user STRING, Window_Number INT, at TIMESTAMP")],
        ),
        "views[lately].measures",
        "window_number numbers the windows",
    ),
    "no such source": (changed(of="nobody"), "views[lately].of", "There is no source"),
    "a source without a name": (
        replace(changed(of=""), source=replace(PIPELINE.sources[0], name="")),
        "views[lately].window",
        "sources that have names",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_such_a_view_is_said_once(name: str) -> None:
    """With the field where it is."""
    pipeline, field, said = WRONG[name]
    _, problems = compile_with_problems(pipeline)
    assert [each.field for each in problems] == [field], problems
    assert said in str(problems[0])


def test_a_source_whose_events_are_copied_says_how_long() -> None:
    """A copy would be an event of its own, as for other functions."""
    source = replace(PIPELINE.sources[0], event_id=["user"])
    _, [problem] = compile_with_problems(replace(PIPELINE, source=[source]))
    assert problem.field == "source[clicks].dedup_within"
    kept = replace(source, dedup_within="1 hour")
    [view] = compile_pipeline(replace(PIPELINE, source=[kept])).views
    assert view.process and not view.process.copies
    counted = changed(window=CountWindow(3, slide=2, copies=True))
    [view] = compile_pipeline(replace(counted, source=[kept])).views
    assert view.process and view.process.copies


def test_a_broken_law_has_the_place_of_the_view() -> None:
    """Nobody wrote this function, but what it may cost may be too little."""
    compiled = compile_pipeline(PIPELINE)
    assert list(list_broken_laws(compiled)) == []
    [view] = compiled.views
    assert view.process
    poor = replace(view, process=replace(view.process, budget=Budget(10, 1)))
    [error] = list_broken_laws(replace(compiled, views=(poor,)))
    assert error.field == "views[lately].window" and error.line
    assert error.hint == "let it keep fewer rows, or shorter columns."


def test_the_look_ups_of_its_sources_are_known() -> None:
    """Where one is restated, the windows are made again."""
    tariff = Lookup("tariff", "tariff.csv", on={"user": "user"}, columns=["rate INT"])
    source = replace(PIPELINE.sources[0], lookups=[tariff])
    rates = changed(measures={"n": count(), "rate": sum("tariff_rate")})
    [view] = compile_pipeline(replace(rates, source=[source])).views
    assert view.process and view.process.lookups == {"tariff"}
    both = replace(rates, source=[source, replace(source, name="more", topic="more")])
    [view] = compile_pipeline(replace(both, views=[replace(both.views[0], of=["clicks", "more"])])).views
    assert view.process and len(view.process.sides) == 2
