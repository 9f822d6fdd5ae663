"""Every kind of thing that bears a name, under any names, and what the shipped code makes of the same records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from tests.laws.dialects import DIALECTS, Dialect

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
from seamline.lake.engine import states
from seamline.lake.engine.duckdb_connections import open_duckdb
from seamline.lake.engine.lookup_joins import key_name
from seamline.lake.engine.windowing import merge_into_windows
from seamline.model.compile.compiled_pipeline import (
    GROUPING,
    CompiledPipeline,
    CompiledView,
    compile_pipeline,
    compile_with_problems,
)
from seamline.model.errors import DefinitionError
from seamline.testing import Scenario
from seamline.testing.scenario import RAW
from seamline.testing.validation import validate_raw_records

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
ILL = (
    "a b",
    "a.b",
    "ä",
    "_at",
    "__n",
    "_",
    "",
    "1a",
    'a"b',
    "a'b",
    "a`b",
    "a;b",
    "a\nb",
    "名",
    "a,b",
    "a=b",
    "a(b)",
)
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
    "side": "tests",
}
"""The things of a definition that bear a name, and a harmless one for each."""
DAY = datetime(2024, 1, 1, tzinfo=UTC)
WINDOWS = (
    Tumbling("1 hour"),
    Sliding("2 hours", "1 hour"),
    Cumulating("1 day", "6 hours"),
    Session("30 minutes"),
    CountWindow(2),
)
NAMED: list[tuple[str, str]] = [("place", "size")]
"""What the columns of the look-up's table are called, the newest last."""


def cities() -> pa.Table:
    """The table of the look-up; its columns are named by ``NAMED``."""
    on, column = NAMED[-1]
    return pa.table({on: ["a", "b"], column: pa.array([3, 4], pa.int32())})


def kinds(names: Mapping[str, str], n: Mapping[str, str], *, flat: bool) -> dict[str, Any]:
    """List every kind of measure over these columns."""
    floors = {} if flat else {"floors": sum(f"{n['parts']}.{n['member']}")}
    return {
        "orders": count(),
        "some": count(n["text"], where=f"{n['whole']} > 1"),
        "total": sum(n["whole"]),
        "heavy": sum(n["real"]),
        "mean": avg(n["real"]),
        "least": min("abs(" + n["whole"] + ")"),
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
        **floors,
    }


def pipeline(
    names: dict[str, str],
    window: Any = WINDOWS[0],
    *,
    exploding: bool = False,
    dialect: Dialect = DIALECTS["json"],
    few: bool = False,
    pinned: bool = False,
) -> Pipeline:
    """Declare every kind of measure, look-up, filter and column, under these names.

    ``few`` has a measure of each name only; ``pinned`` has the look-up's column as a key, so that it is in the row.
    """
    n = {role: f"`{name}`" for role, name in names.items()}
    measures = kinds(names, n, flat=dialect.flat)
    if few:
        measures = {
            name: measures[name] for name in ("orders", "total", "middle", names["measure"], "made", "finish")
        }
    if exploding:
        measures = {
            "orders": count(),
            names["measure"]: top(n["item"], 2),
            "longest": max(f"length({n['item']})"),
        }
    nested = f"{n['items']} ARRAY<STRING>, {n['parts']} STRUCT<{n['member']}: INT>, "
    schema = (
        f"{n['key']} STRING, {n['other']} STRING, {n['whole']} BIGINT, {n['real']} DOUBLE, {n['text']} STRING, "
        f"{'' if dialect.flat else nested}{n['spare']} STRING, occurred TIMESTAMP NOT NULL"
    )
    keys = [names["key"], names["other"]]
    plain = not isinstance(window, CountWindow) and not exploding and not pinned
    return Pipeline(
        name="shop",
        source=KafkaSource(topic="t", schema=schema, event_time="occurred", format=dialect.format(names)),
        views=[
            View(
                "sales",
                keys=[*keys, f"{names['looked']}_{names['column']}"] if pinned else keys,
                window=window,
                measures=measures,
                where=f"{n['text']} <> 'no' AND {n['derived']} > 0",
                explode={names["item"]: n["items"]} if exploding else {},
                grouping_sets=[keys, keys[:1], []] if plain else [],
            )
        ],
        select={names["derived"]: f"{n['whole']} * 2"},
        rules=[Rule("known", f"{n['spare']} IS NOT NULL")],
        side={names["side"]: f"{n['derived']} = 8 AND {n['text']} = 'maybe'"},
        where=f"{n['real']} < 5",
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


def records(names: dict[str, str], *, flat: bool = False) -> list[dict[str, Any]]:
    """Return the same records under these names: two are refused, one is left out."""
    found: list[dict[str, Any]] = [
        {
            names["key"]: ["a", "b", None][at % 3],
            names["other"]: ["a", "c"][at % 2],
            names["whole"]: at % 4 + 1,
            names["real"]: at / 4,
            names["text"]: ["yes", "no", "maybe", "rather", None][at % 5],
            **({} if flat else nested(names, at)),
            names["spare"]: None if at in (7, 11) else "red",
            "occurred": f"2024-01-01T{at % 6:02}:{at * 7 % 60:02}:00Z",
        }
        for at in range(24)
    ]
    return found


def nested(names: Mapping[str, str], at: int) -> dict[str, Any]:
    """Return the columns that have parts."""
    return {names["items"]: ["p", "qq", "p"][: at % 4], names["parts"]: {names["member"]: at}}


def answered(names: dict[str, str], window: Any, *, exploding: bool) -> list[tuple[Any, ...]]:
    """Judge, make states in two halves, merge, and present with the look-up, by the shipped code; no name is given."""
    NAMED.append((names["on"], names["column"]))
    try:
        compiled = compile_pipeline(pipeline(names, window, exploding=exploding))
        rows = accepted(compiled, names, DIALECTS["json"])
        view = compiled.views[0]
        with open_duckdb() as con:
            pieces = []
            for at in (0, 1):
                con.register(
                    "rows",
                    rows.filter(pa.array([offset % 2 == at for offset in rows["_offset"].to_pylist()])),
                )
                pieces.append(states.compute_row_states(con, view, "rows"))
        whole = states.combine_states(view, pieces)
        for name, value in (("_speed", 0), ("_newest", -1)):
            whole = whole.append_column(name, pa.array([value] * whole.num_rows, pa.int64()))
        found = merge_into_windows(view, whole)
        keys = [key.name for key in view.keys]
        # A measure may be called as the column that only a view of several sets has.
        own = [GROUPING] if view.grouped else []
        shown = states.present_states(view, found, keep=[*own, *keys, "_start", "_end"])
        beside = decorated(compiled, shown.select(keys))
        return sorted((*one, *extra) for one, extra in zip(plain(shown), plain(beside), strict=True))
    finally:
        NAMED.pop()


def lived(names: dict[str, str], window: Any, *, pinned: bool, spark: Any = None) -> list[Any]:
    """Live a day: two epochs, a build, one epoch more; give what was answered, and how much was left aside."""
    NAMED.append((names["on"], names["column"]))
    try:
        declared = pipeline(names, window, few=True, pinned=pinned)
        life = Scenario(declared, now="2024-01-01T12:00Z") if spark is None else spark(declared)
        each = records(names)
        seen = []
        for some in (each[:10], each[10:18], each[18:]):
            life.send(*some)
            life.epoch()
            seen.append(life.answer())
        life.send(
            {**each[0], names["spare"]: "late", "occurred": "2024-01-02T12:00:00Z"}, at="2024-01-02T12:00Z"
        )
        life.epoch()
        life.batch("2024-01-01")
        seen += [life.answer(), life.answer(side="batch")]
        view = life.pipeline.views[0]
        return [[sorted(valued(view, row) for row in rows) for rows in seen], len(life.quarantine())]
    finally:
        NAMED.pop()


def valued(view: CompiledView, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a row's keys, window and measures without their names; engines differ in the types of numbers."""
    bounds = () if view.counts else ("window_start", "window_end")
    names = [*(key.name for key in view.keys), *bounds, *(each.name for each in view.measures)]
    return tuple(
        f"{value:%d %H:%M:%S}" if isinstance(value, datetime) else str(value)
        for value in map(row.__getitem__, names)
    )


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return rows as text without the names in them."""
    columns = [[spelled(value) for value in column.to_pylist()] for column in table.columns]
    return [*zip(*columns, strict=True)] if columns else [()] * table.num_rows


def spelled(value: Any) -> str:
    """Write a value; of a grouping set how many keys there are."""
    grouping = isinstance(value, str) and value.startswith("(")
    return str(value.count(",") + (value != "()")) if grouping else repr(value)


def decorated(compiled: CompiledPipeline, keys: pa.Table) -> pa.Table:
    """Look the keys up."""
    from seamline.lake.read.decorations import join_lookup_rows

    joins = compiled.views[0].decorations
    assert joins
    on, _ = NAMED[-1]
    table = cities().rename_columns([key_name(on), *(field.name for _, field in joins[0].columns)])
    return join_lookup_rows(keys, {joins[0]: table})


def accepted(compiled: CompiledPipeline, names: dict[str, str], dialect: Dialect) -> pa.Table:
    """Let the kernel read the records."""
    raw = [
        {
            "key": None,
            "value": dialect.write(record, names),
            "headers": "[]",
            "topic": "t",
            "partition": 0,
            "offset": at,
            "timestamp": DAY,
        }
        for at, record in enumerate(records(names, flat=dialect.flat))
    ]
    with open_duckdb() as con:
        rows, refused = validate_raw_records(con, compiled, pa.Table.from_pylist(raw, RAW), 0, DAY, {})
    assert sorted(refused["_offset"].to_pylist()) == [7, 11], refused.to_pylist()[:3]
    return rows


def read(names: dict[str, str], dialect: Dialect) -> list[Sequence[str]]:
    """Return the rows of the master that a format's records become, by place."""
    compiled = compile_pipeline(pipeline(names, dialect=dialect, few=True))
    rows = accepted(compiled, names, dialect)
    own = [name for name in rows.column_names if not name.startswith("_") or name == "_event_time"]
    sided = [f"{side}" for side in (value == names["side"] for value in rows["_side"].to_pylist())]
    return [[*row, side] for row, side in zip(plain(members(rows.select(own))), sided, strict=True)]


def members(rows: pa.Table) -> pa.Table:
    """Take the names out of structs."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_struct(field.type):
            values = [None if each is None else [*each.values()] for each in rows[at].to_pylist()]
            rows = rows.set_column(at, field.name, pa.array(values))
    return rows


@cache
def harmless(at: int, *, exploding: bool) -> list[tuple[Any, ...]]:
    """Return what is answered under names that nobody else uses."""
    return answered(dict(ROLES), WINDOWS[at], exploding=exploding)


def named(given: Mapping[str, str]) -> dict[str, str]:
    """Give every role a name."""
    return {**ROLES, **given}


def refused(made: Pipeline) -> bool:
    """Return whether a definition is refused, which it must be with file, field and hint."""
    compiled, problems = compile_with_problems(made)
    for problem in problems:
        assert isinstance(problem, DefinitionError)
        assert problem.field and problem.file == __file__ and problem.hint, problem
    return compiled is None
