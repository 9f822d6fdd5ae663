"""What a user calls a thing changes no number: any name works as a harmless one does, or is refused with its place."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from seamline import (
    Batch,
    CountWindow,
    Cumulating,
    KafkaSource,
    Lookup,
    Pipeline,
    Rule,
    Session,
    Sliding,
    Tumbling,
    View,
    avg,
    collect_distinct,
    count,
    distinct,
    first,
    formula,
    histogram,
    last,
    max,
    min,
    quantile,
    ratio,
    stddev,
    sum,
    top,
)
from seamline.lake import states
from seamline.lake.joins import key_name
from seamline.lake.windowing import windowed
from seamline.model.compiled import GROUPING, CompiledPipeline, compile_pipeline, examine
from seamline.model.errors import DefinitionError
from seamline.testing import Scenario
from seamline.testing.judging import judged
from seamline.testing.scenario import RAW

LETTERS = ("s", "i", "x", "u", "v", "n", "t", "o", "e", "f", "x0", "y0", "x1", "m2", "a")
OURS = (
    "pane", "rows", "from_epoch", "to_epoch", "generation", "interval", "window_start", "window_end", "batch_part",
    "speed_part", "epoch", "certified", "complete", "phase", "manifest_version", "grouping", "window_number", "value",
    "key", "mean", "time", "number", "partition", "ordinal", "found", "states", "raw", "partials", "keys", "parts",
    "marks", "windows", "step1", "step2", "lookup_places", "last", "first", "blank", "chunk", "named", "kept_0",
)  # fmt: skip
WORDS = (
    "select", "from", "where", "group", "order", "user", "end", "case", "when", "null", "true", "values", "table",
    "index", "rowid", "filename", "current_date", "localtime", "count", "lambda", "row", "struct", "list", "all",
    "interval", "timestamp", "date", "unnest", "range", "limit", "having", "in", "not", "is", "lag", "window",
)  # fmt: skip
CASES = (
    "Pane",
    "ROWS",
    "Interval",
    "Window_Start",
    "Rows",
    "SELECT",
    "S",
    "X",
    "Total",
    "Orders",
    "CERTIFIED",
)
STATES = ("total__sum", "orders__n", "middle__values", "total__values__scratch", "s__n", "a__b", "n__")
HOSTILE = (*LETTERS, *OURS, *WORDS, *CASES, *STATES, "c" * 200)
ILL = ("a b", "a.b", "ä", "_at", "__n", "_", "", "1a", 'a"b', "a'b", "a`b", "a;b", "a\nb", "名")
ROLES = {
    "key": "customer",
    "other": "place",
    "whole": "amount",
    "real": "weight",
    "text": "word",
    "items": "tags",
    "parts": "seat",
    "member": "floor",
    "spare": "colour",
    "derived": "double",
    "item": "tag",
    "measure": "best",
    "part": "share",
    "looked": "cities",
    "on": "place",
    "column": "size",
}
"""The things of a definition that bear a name, and a harmless one for each."""
DAY = datetime(2024, 1, 1, tzinfo=UTC)
WINDOWS = (
    Tumbling("1 hour"),
    Sliding("2 hours", "1 hour"),
    Cumulating("1 day", "6 hours"),
    Session("30 minutes"),
)
TABLE: list[tuple[str, int]] = [("a", 3), ("b", 4)]


def cities() -> pa.Table:
    """The table of the look-up; its columns are named by ``NAMED``."""
    on, column = NAMED[-1]
    return pa.table(
        {on: [place for place, _ in TABLE], column: pa.array([size for _, size in TABLE], pa.int32())}
    )


NAMED: list[tuple[str, str]] = [("place", "size")]


def pipeline(names: dict[str, str], window: Any = WINDOWS[0], *, exploding: bool = False) -> Pipeline:
    """Declare every kind of measure, look-up, filter and column, under these names."""
    n = {role: f"`{name}`" for role, name in names.items()}
    kinds = {
        "orders": count(),
        "some": count(n["text"], where=f"{n['whole']} > 1"),
        "total": sum(n["whole"]),
        "heavy": sum(n["real"]),
        "mean": avg(n["real"]),
        "least": min(n["whole"]),
        "most": max(n["text"]),
        "begin": first(n["whole"]),
        "finish": last(n["text"]),
        "spread": stddev(n["real"]),
        "several": distinct(n["text"]),
        "middle": quantile(n["real"], 0.5),
        names["measure"]: top(n["text"], 2),
        "buckets": histogram(n["whole"], edges=[1, 2]),
        "collected": collect_distinct(n["text"]),
        "each": ratio("total", "orders"),
        "made": formula(f"coalesce({n['part']}, 0L)", **{names["part"]: max(n["derived"])}),
        "floors": sum(f"{n['parts']}.{n['member']}"),
    }
    if exploding:
        kinds = {
            "orders": count(),
            names["measure"]: top(n["item"], 2),
            "longest": max(f"length({n['item']})"),
        }
    schema = (
        f"{n['key']} STRING, {n['other']} STRING, {n['whole']} BIGINT, {n['real']} DOUBLE, {n['text']} STRING, "
        f"{n['items']} ARRAY<STRING>, {n['parts']} STRUCT<{n['member']}: INT>, {n['spare']} STRING, "
        "occurred TIMESTAMP NOT NULL"
    )
    keys = [names["key"], names["other"]]
    sets = [] if isinstance(window, CountWindow) or exploding else [keys, keys[:1], []]
    return Pipeline(
        name="shop",
        source=KafkaSource(topic="t", schema=schema, event_time="occurred"),
        views=[
            View(
                "sales",
                keys=keys,
                window=window,
                measures=kinds,
                where=f"{n['text']} <> 'no' AND {n['derived']} > 0",
                explode={names["item"]: n["items"]} if exploding else {},
                grouping_sets=sets,
            )
        ],
        select={names["derived"]: f"{n['whole']} * 2"},
        rules=[Rule("known", f"{n['spare']} IS NOT NULL")],
        lookups=[
            Lookup(
                names["looked"],
                f"{__name__}:cities",
                on={names["on"]: n["other"]},
                columns=[f"{names['column']} INT"],
            )
        ],
        batch=Batch("1 day", "2024-01-01"),
    )


def records(names: dict[str, str]) -> list[dict[str, Any]]:
    """Give the same records under these names: two are refused, one is left out."""
    found: list[dict[str, Any]] = [
        {
            names["key"]: ["a", "b", None][at % 3],
            names["other"]: ["a", "c"][at % 2],
            names["whole"]: at % 4 + 1,
            names["real"]: at / 4,
            names["text"]: ["yes", "no", "maybe", "rather", None][at % 5],
            names["items"]: ["p", "qq", "p"][: at % 4],
            names["parts"]: {names["member"]: at},
            names["spare"]: None if at == 7 else "red",
            "occurred": f"2024-01-01T{at % 6:02}:{at * 7 % 60:02}:00Z",
        }
        for at in range(24)
    ]
    found[11][names["items"]] = [1]
    return found


def answered(names: dict[str, str], window: Any, *, exploding: bool) -> list[tuple[Any, ...]]:
    """Judge, make states in two halves, merge, and present with the look-up, by the shipped code; no name is given."""
    NAMED.append((names["on"], names["column"]))
    try:
        compiled = compile_pipeline(pipeline(names, window, exploding=exploding))
        rows = accepted(compiled, names)
        view = compiled.views[0]
        with states.connection() as con:
            pieces = []
            for at in (0, 1):
                con.register(
                    "rows",
                    rows.filter(pa.array([offset % 2 == at for offset in rows["_offset"].to_pylist()])),
                )
                pieces.append(states.partial(con, view, "rows"))
        whole = states.combine(view, pieces)
        for name, value in (("_speed", 0), ("_newest", -1)):
            whole = whole.append_column(name, pa.array([value] * whole.num_rows, pa.int64()))
        found = windowed(view, whole)
        keys = [key.name for key in view.keys]
        shown = states.present(view, found, keep=[GROUPING, *keys, "_start", "_end"])
        beside = decorated(compiled, shown.select(keys))
        return sorted(
            (*shown_row, *extra) for shown_row, extra in zip(plain(shown), plain(beside), strict=True)
        )
    finally:
        NAMED.pop()


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Give rows as text without the names in them."""
    columns = [[spelled(value) for value in column.to_pylist()] for column in table.columns]
    return [*zip(*columns, strict=True)] if columns else [()] * table.num_rows


def spelled(value: Any) -> str:
    """Write a value; of a grouping set how many keys there are."""
    return (
        str(value.count(",") + (value != "()"))
        if isinstance(value, str) and value.startswith("(")
        else repr(value)
    )


def decorated(compiled: CompiledPipeline, keys: pa.Table) -> pa.Table:
    from seamline.lake.decorations import matched

    joins = compiled.views[0].decorations
    assert joins
    on, _ = NAMED[-1]
    table = cities().rename_columns([key_name(on), *(field.name for _, field in joins[0].columns)])
    return matched(keys, {joins[0]: table})


def accepted(compiled: CompiledPipeline, names: dict[str, str]) -> pa.Table:
    """Let the kernel read the records."""
    raw = [
        {
            "key": None,
            "value": json.dumps(record).encode(),
            "headers": "[]",
            "topic": "t",
            "partition": 0,
            "offset": at,
            "timestamp": DAY,
        }
        for at, record in enumerate(records(names))
    ]
    with states.connection() as con:
        rows, refused = judged(con, compiled, pa.Table.from_pylist(raw, RAW), 0, DAY, {})
    assert sorted(refused["_offset"].to_pylist()) == [7, 11]
    return rows


@cache
def harmless(at: int, *, exploding: bool) -> list[tuple[Any, ...]]:
    return answered(dict(ROLES), WINDOWS[at], exploding=exploding)


def check(given: dict[str, str], at: int, *, exploding: bool) -> bool:
    """Hold an answer under hostile names to the harmless one; False where the definition is refused, as it must be."""
    names = {**ROLES, **given}
    made, problems = examine(pipeline(names, WINDOWS[at], exploding=exploding))
    if made is None:
        for problem in problems:
            assert isinstance(problem, DefinitionError)
            assert problem.field and problem.file == __file__ and problem.hint, problem
        return False
    assert answered(names, WINDOWS[at], exploding=exploding) == harmless(at, exploding=exploding), names
    return True


SLOW = settings(
    deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@given(
    st.dictionaries(st.sampled_from([*ROLES]), st.sampled_from(HOSTILE), min_size=1, max_size=5),
    st.sampled_from(range(len(WINDOWS))),
    st.booleans(),
)
@example({"key": "s"}, 0, False)
@example({"key": "i", "other": "x"}, 3, False)
@example({"key": "x", "items": "y0", "text": "x0"}, 0, True)
@example({"key": "rows"}, 0, False)
@example({"key": "u", "text": "v", "whole": "n", "real": "t"}, 1, False)
@SLOW
def test_any_name_changes_no_number(given: dict[str, str], at: int, exploding: bool) -> None:
    """A key named s broke the views of everybody who has one: SQL took it for a name of ours."""
    assume(check(given, at, exploding=exploding))


def test_which_names_are_refused() -> None:
    """Most names are a user's own; what is refused is refused where it would be one with a name of ours."""
    refused = {
        role: {name for name in HOSTILE if not compiles({role: name})} for role in ("key", "whole", "member")
    }
    assert refused["key"].isdisjoint({"s", "i", "x", "order", "select", "step1", "n__", "value"})
    assert refused["key"] >= {"rows", "Pane", "Total", "total__sum", "grouping", "Interval"}
    assert refused["whole"] == refused["member"] == set()


def compiles(given: dict[str, str]) -> bool:
    return examine(pipeline({**ROLES, **given}, exploding="item" in given))[0] is not None


@pytest.mark.parametrize("role", [*ROLES])
def test_what_is_no_name_is_refused_with_its_place(role: str) -> None:
    """Nothing but letters, digits and underscores gets into a table; the columns of a look-up's own table may."""
    for name in ILL:
        refused = role != "on"
        assert compiles({role: name}) != refused, (role, name)


def test_a_scenario_under_hostile_names() -> None:
    """The dull engine, and what it shares with the shipped ones, takes them too."""
    names = {**ROLES, "key": "s", "text": "x", "whole": "i", "items": "y0", "other": "n", "on": "n"}
    answers = []
    for each in (names, ROLES):
        NAMED.append((each["on"], each["column"]))
        life = Scenario(pipeline(each))
        for record in records(each):
            life.send(record)
        life.epoch()
        answers.append(sorted(map(repr, (tuple(row.values())[1:] for row in life.answer()))))
        NAMED.pop()
    assert answers[0] == answers[1] != []
