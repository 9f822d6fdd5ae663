"""What a view expects, evaluated row by row: the oracle of the one query that a certificate asks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from seamline.lake.engine.windowing import format_grouping_set
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledView
from seamline.model.definition.expectations import Expect, ExpectationSuite, ExpectRows
from seamline.model.time.intervals import format_utc_instant
from seamline.testing.oracle import to_nearest_double

Presented = Mapping[str, Any]


def list_unmet_expectations(view: CompiledView, rows: Sequence[Presented], served: int | None) -> list[str]:
    """Say what is not met by the presented rows of an interval; ``served`` is their number in what is served.

    Suites are met: a scenario on the plain engine needs none of what evaluates them.
    """
    found = []
    for expect in view.expect:
        match expect:
            case Expect():
                unmet = [row for row in rows if not meets(view, expect, row, rows)]
                found += [describe_unexpected_value(view, row, expect.column) for row in unmet]
            case ExpectRows() if not has_expected_count(expect, len(rows), served):
                found.append(f"{len(rows)} rows, {served} before")
            case ExpectationSuite():
                continue
    return found


def describe_unexpected_value(view: CompiledView, row: Presented, column: str) -> str:
    """Describe a value that an expectation does not allow, with its key and window."""
    keys = "".join(f"{key.name}={row[key.name]}, " for key in view.keys)
    return f"{column} is {row[column]} ({keys}window {format_utc_instant(row['window_start'])})"


def meets(view: CompiledView, expect: Expect, row: Presented, rows: Sequence[Presented]) -> bool:
    """Return whether a row is what was expected of its column."""
    value = to_nearest_double(view, row, expect.column)
    if value is None:
        return not expect.not_null or is_total_over(view, row, expect.column)
    low, high = expect.at_least, expect.at_most
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (not expect.in_set or value in expect.in_set)
        and (not expect.regex or re.fullmatch(expect.regex, value) is not None)
        and (not expect.unique or count_alike(row, expect.column, rows) == 1)
    )


def is_total_over(view: CompiledView, row: Presented, column: str) -> bool:
    """Return whether a row's grouping set is without a key, so that it has none."""
    absent = [format_grouping_set(names) for names in view.sets if column not in names]
    return view.grouped and column in [key.name for key in view.keys] and row[GROUPING] in absent


def count_alike(row: Presented, column: str, rows: Sequence[Presented]) -> int:
    """Count the rows of the same grouping set with the same value."""
    alike = Counter((each.get(GROUPING), each[column]) for each in rows)
    return alike[row.get(GROUPING), row[column]]


def has_expected_count(expect: ExpectRows, rows: int, served: int | None) -> bool:
    """Return whether there are as many rows as was expected."""
    return (
        (expect.at_least is None or rows >= expect.at_least)
        and (expect.at_most is None or rows <= expect.at_most)
        and (expect.max_change is None or not served or abs(rows - served) <= expect.max_change * served)
    )
