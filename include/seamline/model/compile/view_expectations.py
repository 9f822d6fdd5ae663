"""What a view expects, checked against the columns that it presents."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from seamline.model.compile.compiled_measure import CompiledMeasure
from seamline.model.compile.problems import Problems
from seamline.model.definition.expectations import Expect, Expectation, ExpectationSuite, ExpectRows
from seamline.model.definition.pipeline import View
from seamline.model.measures import strip_type_parameters
from seamline.model.types.schema import Field

NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE")
TYPE = re.compile(r"expect_[a-z0-9_]+")
SEVERITIES = ("critical", "warning", "info")
Problem = tuple[str, str]


def list_expectations(view: View) -> tuple[Expectation, ...]:
    """List what a view expects, which may be one thing or several."""
    alone = isinstance(view.expect, Expect | ExpectRows | ExpectationSuite)
    return (view.expect,) if alone else tuple(view.expect)  # type: ignore[arg-type, return-value]


def check_expectations(
    view: View, keys: Sequence[Field], measures: Sequence[CompiledMeasure], problems: Problems
) -> None:
    """Note expectations of columns that are not there, and those that could never be evaluated."""
    types = {key.name: key.type.spark for key in keys} | {each.name: each.result for each in measures}
    types = {name: strip_type_parameters(type) for name, type in types.items()}
    for each in list_expectations(view):
        match each:
            case Expect():
                if each.column not in view.measures and each.column not in view.keys:
                    shown = f"it presents {', '.join([*view.keys, *view.measures])}."
                    found = [(f"The view presents no column {each.column!r}.", shown)]
                else:
                    found = list(find_column_problems(each, types.get(each.column, "")))
            case ExpectRows():
                found = list(find_row_problems(each))
            case ExpectationSuite():
                found = list(find_suite_problems(each))
        for message, hint in found:
            problems.note(f"views[{view.name}].expect", each.origin, message, hint)


def find_column_problems(expect: Expect, type: str) -> Iterator[Problem]:
    """Say what is wrong with an expectation of a column of a type; the type is empty if it is not known."""
    name = expect.column
    if wrong := [each for each in (expect.at_least, expect.at_most) if not is_bound(each)]:
        yield f"{wrong[0]!r} is no bound for {name!r}.", "write a number."
    bounded = (expect.at_least, expect.at_most) != (None, None)
    if not type:
        return
    if bounded and type not in NUMBERS:
        yield (
            f"{name!r} presents {type}, which has no bounds.",
            "set bounds on a column that presents one number, or expect not_null.",
        )
    if expect.regex and type != "STRING":
        yield f"{name!r} presents {type}, which no regex matches.", "a regex is for a STRING."
    if expect.regex and (trouble := find_regex_problem(expect.regex)):
        yield (
            f"The regex {expect.regex!r} of {name!r} is wrong: {trouble}.",
            "write it as Python's re has it.",
        )
    if expect.unique and type in ("ARRAY", "STRUCT", "MAP"):
        yield (
            f"{name!r} presents {type}, whose values are not compared.",
            "expect something of another column.",
        )
    if not isinstance(expect.in_set, list | tuple) or not all(
        fits_type(value, type) for value in expect.in_set
    ):
        yield (
            f"{name!r} presents {type}; in_set={expect.in_set!r} is not a list of its values.",
            "list texts for a STRING, numbers for a number, and True or False for a BOOLEAN.",
        )


def is_bound(value: object) -> bool:
    """Return whether a value is a number to compare with, or None for no bound."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (plain and math.isfinite(value))  # type: ignore[arg-type]


def find_regex_problem(pattern: str) -> str:
    """Say what is wrong with a pattern; empty if nothing is."""
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return ""


def fits_type(value: object, type: str) -> bool:
    """Return whether a value may stand in the set of a column of a type."""
    if isinstance(value, bool):
        return type == "BOOLEAN"
    return type == "STRING" if isinstance(value, str) else isinstance(value, int | float) and type in NUMBERS


def find_row_problems(expect: ExpectRows) -> Iterator[Problem]:
    """Say what is wrong with an expected number of rows."""
    bounds = [expect.at_least, expect.at_most, expect.max_change]
    if bounds == [None] * 3:
        yield "Nothing is expected of the number of rows.", "for example ExpectRows(at_least=1)."
    if any(not is_bound(bound) or (bound or 0) < 0 for bound in bounds):
        yield (
            f"{expect!r} has a bound that is no number, or below 0.",
            "bounds are numbers of rows, max_change is a share such as 0.5.",
        )


def find_suite_problems(suite: ExpectationSuite) -> Iterator[Problem]:
    """Say what is wrong with a suite, as far as can be told without importing what evaluates it."""
    if not suite.expectations:
        yield "The suite has no expectations.", "list some, or leave the suite out."
    for each in suite.expectations:
        if not TYPE.fullmatch(str(each.get("type", ""))) or not isinstance(each.get("kwargs", {}), Mapping):
            yield (
                f"{dict(each)!r} is not a configuration of an expectation.",
                'for example {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}}.',
            )
        elif each.get("severity", "critical") not in SEVERITIES:
            yield f"{each['severity']!r} is not a severity.", f"choose from {', '.join(SEVERITIES)}."
        elif not is_plain(each):
            yield f"{each['type']} has arguments that are not plain.", "use texts, numbers, lists and dicts."


def is_plain(configuration: object) -> bool:
    """Return whether a configuration can be kept as JSON."""
    try:
        json.dumps(configuration)
    except (TypeError, ValueError):
        return False
    return True
