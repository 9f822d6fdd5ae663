"""The rows of a join in SQL, one text for both engines: pairs, left rows, and left rows that have a pair.

A derived row has the place and the event time of its left row. Its epoch is the first at which it is there: that of the
left row, the larger one of a pair's two rows, and the least of its pairs for a left row that is matched. So what an
epoch adds are the derived rows of that epoch, and what a cut holds are those up to it (docs/protocol.md, rule 20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from seamline.model.compile.compiled_join import KIND, LEFT, MATCHED, PAIR, CompiledJoin, JoinSide
from seamline.model.compile.processes.compiled_process import CompiledProcess, Derived
from seamline.model.compile.record_rules import SELECTED, SOURCE
from seamline.model.expressions import Expression

PLACE = ("_topic_id", "_topic", "_partition", "_offset")
"""Where a record is."""
READ = (*PLACE, "_epoch", "_event_time")
"""The columns of a row that a join reads beside its own."""
VERSION_ORDER = ("_event_time", "_partition", "_offset", "_topic", "_topic_id")
"""What the versions of a key are in order by."""
RIGHT = {
    "_right_topic_id": "STRING",
    "_right_topic": "STRING",
    "_right_partition": "INT",
    "_right_offset": "BIGINT",
    "_right_epoch": "BIGINT",
    "_right_event_time": "TIMESTAMP",
}
"""The same of the right row of a pair, with their types."""


@dataclass(frozen=True)
class Dialect:
    """How an engine writes what the two do not write alike."""

    quote: Callable[[str], str]
    """Writes a column's name."""
    micros: str
    """The function that returns the microseconds of an instant."""
    same: str
    """The operator for which NULL equals NULL."""
    text: Callable[[Expression], str]
    """Returns an expression's text."""
    null: Callable[[str], str]
    """Writes a NULL of a type that is spelled as in Spark."""
    record: Callable[[Iterable[str]], str]
    """Writes values as one, of which the first is called ``f0``, the next ``f1``."""
    latest: Callable[[str, str, Sequence[str]], str]
    """Writes the rows of a relation, each with ``_latest``, the last ``_version`` at or before it of another relation:
    by equal keys, of which NULL equals NULL, and the later of two by time, then by place. Both have the same columns
    but for the version."""
    start: Callable[[str, int], str]
    """Writes the start of the span of so many microseconds that contains an instant, all in microseconds."""


def side_rows_sql(derived: Derived, side: JoinSide, relation: str, dialect: Dialect) -> str:
    """Write the rows of a side among those of a relation with the columns of the master."""
    columns = ", ".join([*READ, *(column_sql(side, each.name, dialect) for each in side.columns)])
    chosen = [f"{SOURCE} = '{side.source}'", *([SELECTED] if derived.selective else [])]
    chosen += [f"({dialect.text(side.where)})"] if side.where else []
    return f"SELECT {columns} FROM {relation} WHERE {' AND '.join(chosen)}"


def column_sql(side: JoinSide, name: str, dialect: Dialect) -> str:
    """Write a column of a side's rows."""
    made = side.made.get(name)
    return dialect.quote(name) if made is None else f"{dialect.text(made)} AS {dialect.quote(name)}"


def given_rows_sql(process: CompiledProcess, relation: str, dialect: Dialect) -> str:
    """Write the rows that a process is given, of all its sides, among those of a relation."""
    return " UNION ALL ".join(side_rows_sql(process, side, relation, dialect) for side in process.sides)


def pairs_sql(join: CompiledJoin, lefts: str, rights: str, dialect: Dialect) -> str:
    """Write the pairs of two relations of ``side_rows_sql``, with the places of both rows."""
    quote = dialect.quote
    columns = [
        f"'{PAIR}' AS {KIND}",
        "greatest(l._epoch, r._epoch) AS _epoch",
        "l._event_time AS _event_time",
    ]
    columns += [f"l.{name} AS {name}" for name in PLACE]
    columns += [f"r.{name.removeprefix('_right')} AS {name}" for name in RIGHT]
    columns += ["l._epoch AS _left_epoch"]
    for alias, side in zip("lr", join.sides, strict=True):
        columns += [f"{alias}.{quote(each.name)} AS {quote(side.named(each.name))}" for each in side.columns]
    away = f"{dialect.micros}(r._event_time) - {dialect.micros}(l._event_time)"
    equal = [
        f"l.{quote(left)} {dialect.same if safe else '='} r.{quote(right)}" for left, right, safe in join.on
    ]
    near = [f"{away} >= {join.lower}", f"{away} <= {join.upper}"]
    if join.same:
        size, offset = join.same
        one, other = (
            dialect.start(f"{dialect.micros}({alias}._event_time) - {offset}", size) for alias in "lr"
        )
        near = [f"{one} = {other}", *near]
    found = (
        f"SELECT {', '.join(columns)} FROM ({lefts}) l JOIN ({rights}) r ON {' AND '.join([*equal, *near])}"
    )
    if join.where is None:
        return found
    return f"SELECT * FROM ({found}) WHERE {dialect.text(join.where)}"


def as_of_sql(join: CompiledJoin, lefts: str, rights: str, dialect: Dialect) -> str:
    """Write each left row of two relations of ``side_rows_sql`` with its latest right one, or with NULLs."""
    quote, latest = dialect.quote, latest_versions_sql(join, lefts, rights, dialect)
    of_version = {
        name: f"f{at}" for at, name in enumerate([*RIGHT, *(each.name for each in join.right.fields)])
    }
    at, epoch = of_version["_right_event_time"], of_version["_right_epoch"]
    age = f"{dialect.micros}(_event_time) - {dialect.micros}(_latest.{at})"
    found = f"SELECT *, CASE WHEN {age} <= {-join.lower} THEN _latest END AS _found FROM ({latest})"
    columns = [
        f"CASE WHEN _found.{at} IS NULL THEN '{LEFT}' ELSE '{PAIR}' END AS {KIND}",
        f"greatest(_epoch, coalesce(_found.{epoch}, _epoch)) AS _epoch",
        *("_event_time", *PLACE),
    ]
    columns += [f"{quote(each.name)} AS {quote(join.left.named(each.name))}" for each in join.left.columns]
    columns += [f"_found.{of_version[each.name]} AS {quote(each.name)}" for each in join.right.fields]
    columns += [f"_found.{of_version[name]} AS {name}" for name in RIGHT]
    return f"SELECT {', '.join(columns)} FROM ({found})"


def latest_versions_sql(join: CompiledJoin, lefts: str, rights: str, dialect: Dialect) -> str:
    """Write left rows with ``_latest``, the latest version of their keys at or before them, however old it is."""
    keys = [f"_key{at}" for at in range(len(join.on))]
    of_left = [f"{dialect.quote(left)} AS {key}" for (left, _, _), key in zip(join.on, keys, strict=True)]
    of_right = [f"{dialect.quote(right)} AS {key}" for (_, right, _), key in zip(join.on, keys, strict=True)]
    version = [name.removeprefix("_right") for name in RIGHT]
    version += [dialect.quote(each.name) for each in join.right.columns]
    columns = [dialect.quote(each.name) for each in join.left.columns]
    blank = [f"{dialect.null(each.type.spark)} AS {dialect.quote(each.name)}" for each in join.left.columns]
    compared = [f"{dialect.quote(right)} IS NOT NULL" for _, right, safe in join.on if not safe] or ["true"]
    return dialect.latest(
        f"SELECT {', '.join([*of_left, *READ, *columns])} FROM ({lefts})",
        f"SELECT {', '.join([*of_right, *READ, *blank, f'{dialect.record(version)} AS _version'])} "
        f"FROM ({rights}) WHERE {' AND '.join(compared)}",
        keys,
    )


def left_row_columns(join: CompiledJoin, kind: str, epoch: str, dialect: Dialect, *, one: bool) -> str:
    """Write the columns of a left row as a derived row of some kind; of a group of equal ones if not ``one``."""
    quote = dialect.quote
    left = [quote(each.name) for each in join.left.fields]
    own = [quote(each.name) for each in join.left.columns] if one else [f"any_value({each})" for each in left]
    columns = [f"'{kind}' AS {KIND}", f"{epoch} AS _epoch", "_event_time", *PLACE]
    columns += [f"{made} AS {name}" for made, name in zip(own, left, strict=True)]
    columns += [f"{dialect.null(each.type.spark)} AS {quote(each.name)}" for each in join.right.fields]
    columns += [f"{dialect.null(type)} AS {name}" for name, type in RIGHT.items()]
    return ", ".join(columns)


def derived_columns(join: CompiledJoin, dialect: Dialect) -> str:
    """Write the columns that derived rows of all kinds have."""
    own = (dialect.quote(field.name) for field in join.schema.fields if field.name != KIND)
    return ", ".join([KIND, "_epoch", "_event_time", *PLACE, *own, *RIGHT])


def matched_sql(join: CompiledJoin, pairs: str, dialect: Dialect) -> str:
    """Write the left rows that have one of the pairs, each once, at the least of their epochs."""
    columns = left_row_columns(join, MATCHED, "min(_epoch)", dialect, one=False)
    return f"SELECT {columns} FROM ({pairs}) GROUP BY _event_time, {', '.join(PLACE)}"


def derived_rows_sql(
    join: CompiledJoin, relation: str, dialect: Dialect, *, only: tuple[str, str] = ("true", "true")
) -> str:
    """Write all derived rows of a relation with the columns of the master, which has every row in their reach.

    Or those of some rows: ``only`` are conditions on left rows and on right ones.
    """
    lefts, rights = (
        f"SELECT * FROM ({side_rows_sql(join, side, relation, dialect)}) WHERE {condition}"
        for side, condition in zip(join.sides, only, strict=True)
    )
    if join.latest:
        return as_of_sql(join, lefts, rights, dialect)
    pairs = pairs_sql(join, "SELECT * FROM _lefts", "SELECT * FROM _rights", dialect)
    matched = matched_sql(join, "SELECT * FROM _pairs", dialect)
    kinds = list_kinds_sql(join, "SELECT * FROM _lefts", "SELECT * FROM _pairs", matched, dialect)
    given = {"_lefts": lefts, "_rights": rights, "_pairs": pairs}
    return (
        f"WITH {', '.join(f'{name} AS ({text})' for name, text in given.items())} {' UNION ALL '.join(kinds)}"
    )


def list_kinds_sql(
    join: CompiledJoin, lefts: str, pairs: str, matched: str, dialect: Dialect
) -> Iterator[str]:
    """Write the derived rows of each kind that views count: of new left rows, of pairs, of left rows newly matched."""
    columns = derived_columns(join, dialect)
    if PAIR in join.kinds:
        yield f"SELECT {columns} FROM ({pairs})"
    if LEFT in join.kinds:
        yield f"SELECT {left_row_columns(join, LEFT, '_epoch', dialect, one=True)} FROM ({lefts})"
    if MATCHED in join.kinds:
        yield matched
