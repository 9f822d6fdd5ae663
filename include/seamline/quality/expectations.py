"""What a view expects of its columns and of the number of its rows, evaluated in one query over the presented rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.engine.duckdb_connections import query_tables
from seamline.lake.engine.measures import quote_identifier
from seamline.lake.engine.windowing import format_grouping_set
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.definition.expectations import Expect, ExpectRows


@dataclass(frozen=True)
class Condition:
    """A condition on one row of a view, and the words for it."""

    column: str
    """The column it is about."""
    words: str
    """What is expected, as in "at least 5"."""
    broken: str
    """An SQL condition that is true for the rows that break it."""
    counted: bool = False
    """Whether it needs to know how many rows have the value."""
    pattern: str = ""
    """What the text is matched with; empty if it is not."""


def find_broken_expectations(
    view: CompiledView, presented: pa.Table, rows: Mapping[str, int], served: Mapping[str, int]
) -> dict[str, list[str]]:
    """Write a sentence for each expectation that an interval breaks, by interval id.

    ``presented`` has a row per interval, grouping set, keys and window, ``rows`` their number in every interval that
    was built, and ``served`` the number in the generation that is served, for those that have one.
    """
    found: dict[str, list[str]] = {}
    conditions = [
        each for expect in view.expect if isinstance(expect, Expect) for each in list_conditions(view, expect)
    ]
    for interval, sentence in evaluate_conditions(conditions, presented):
        found.setdefault(interval, []).append(sentence)
    for bounds in (each for each in view.expect if isinstance(each, ExpectRows)):
        for interval, count in rows.items():
            sentences = list(compare_row_counts(bounds, count, served.get(interval)))
            found.setdefault(interval, []).extend(sentences)
    return {interval: sentences for interval, sentences in found.items() if sentences}


def list_conditions(view: CompiledView, expect: Expect) -> Iterator[Condition]:
    """List the conditions that an expectation of a column consists of."""
    name, column = expect.column, quote_identifier(expect.column)
    number = f"{column}::DOUBLE"
    present = f"{column} IS NOT NULL"
    bounds = [
        (words, sign, bound)
        for words, sign, bound in (("at least", "<", expect.at_least), ("at most", ">", expect.at_most))
        if bound is not None
    ]
    if bounds:
        words = " and ".join(f"{words} {bound!r}" for words, _, bound in bounds)
        beyond = " OR ".join(f"{number} {sign} {literal_sql(bound)}" for _, sign, bound in bounds)
        yield Condition(name, words, f"{present} AND (isnan({number}) OR {beyond})")
    if expect.not_null:
        absent = [format_grouping_set(names) for names in view.sets if name not in names]
        is_key = name in [key.name for key in view.keys]
        yield Condition(
            name, "not null", f"{column} IS NULL" + (excluding_sql(absent) if view.grouped and is_key else "")
        )
    if expect.unique:
        more = f"{present} AND {quote_identifier(count_column(name))} > 1"
        yield Condition(name, "unique", more, counted=True)
    if expect.in_set:
        numeric = not isinstance(expect.in_set[0], str | bool)
        values = ", ".join(map(literal_sql, expect.in_set))
        words = f"in the set {', '.join(map(str, expect.in_set))}"
        yield Condition(name, words, f"{present} AND {number if numeric else column} NOT IN ({values})")
    if expect.regex:
        mark = quote_identifier(match_column(name, expect.regex))
        yield Condition(name, f"matching {expect.regex}", f"{present} AND NOT {mark}", pattern=expect.regex)


def excluding_sql(sets: Sequence[str]) -> str:
    """Leave out the rows of some grouping sets."""
    return f" AND {GROUPING} NOT IN ({', '.join(map(literal_sql, sets))})" if sets else ""


def literal_sql(value: str | float) -> str:
    """Write a value as DuckDB reads it."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, bool) else f"'{float(value)!r}'::DOUBLE"


def count_column(name: str) -> str:
    """Name the column that says how many rows of an interval have the value of a column."""
    return f"{name} in how many rows"


def match_column(name: str, pattern: str) -> str:
    """Name the column that says if a text matches; by a hash, since DuckDB ignores the case of names."""
    return f"match {hashlib.sha256(f'{name} {pattern}'.encode()).hexdigest()}"


def evaluate_conditions(conditions: Sequence[Condition], presented: pa.Table) -> Iterator[tuple[str, str]]:
    """Write a sentence for each condition that an interval breaks."""
    if not conditions or not presented.num_rows:
        return
    for name, pattern in {(each.column, each.pattern) for each in conditions if each.pattern}:
        presented = mark_matches(presented, name, pattern)
    groups = f"interval, {GROUPING}" if GROUPING in presented.column_names else "interval"
    counts = ", ".join(
        f"count(*) OVER (PARTITION BY {groups}, {quote_identifier(name)}) AS {quote_identifier(count_column(name))}"
        for name in sorted({each.column for each in conditions if each.counted})
    )
    source = f"(SELECT *, {counts} FROM presented)" if counts else "presented"
    columns = ", ".join(
        f"count(*) FILTER ({each.broken}) AS n{at}, "
        f"min({quote_identifier(each.column)}::VARCHAR) FILTER ({each.broken}) AS e{at}"
        for at, each in enumerate(conditions)
    )
    query = f"SELECT interval, count(*) AS total, {columns} FROM {source} GROUP BY interval ORDER BY interval"
    for row in query_tables(query, presented=presented).to_pylist():
        for at, each in enumerate(conditions):
            if row[f"n{at}"]:
                example = "" if row[f"e{at}"] is None else f", for example {row[f'e{at}']}"
                yield (
                    row["interval"],
                    f"{each.column} {each.words}: {row[f'n{at}']} of {row['total']} rows are not{example}",
                )


def mark_matches(presented: pa.Table, name: str, pattern: str) -> pa.Table:
    """Add the column that says if a text matches a pattern, which is asked of each text once."""
    column, matches = presented[name].combine_chunks(), re.compile(pattern).fullmatch
    texts = pc.unique(column)
    fitting = [text for text in texts.to_pylist() if text is not None and matches(text)]
    mark = pc.is_in(column, pa.array(fitting, column.type))
    return presented.append_column(match_column(name, pattern), mark)


def compare_row_counts(expect: ExpectRows, rows: int, served: int | None) -> Iterator[str]:
    """Write a sentence for each bound that a number of rows breaks.

    ``served`` is None or 0 where there is nothing to compare with.
    """
    if expect.at_least is not None and rows < expect.at_least:
        yield f"at least {expect.at_least} rows: there are {rows}"
    if expect.at_most is not None and rows > expect.at_most:
        yield f"at most {expect.at_most} rows: there are {rows}"
    if expect.max_change is not None and served and abs(rows - served) > expect.max_change * served:
        yield f"a change of at most {expect.max_change:.0%} of the rows: there are {rows}, {served} are served"


def name_needed_columns(view: CompiledView) -> set[str]:
    """Name the columns that something is expected of."""
    return {each.column for each in view.expect if isinstance(each, Expect)}


def compares_with_served(view: CompiledView) -> bool:
    """Return whether a view expects something of the change against what is served."""
    return any(isinstance(each, ExpectRows) and each.max_change is not None for each in view.expect)
