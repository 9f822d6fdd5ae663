"""The page of refusals is what the definition language says today, case by case.

`python -m tests.unit.project.test_refusals` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tests.laws import test_own_measures, test_windows
from tests.unit import records
from tests.unit.kernel import test_debezium, test_formats
from tests.unit.lake.read import test_decorations
from tests.unit.model import (
    test_asks,
    test_definition,
    test_evolution,
    test_fold_definitions,
    test_joins,
    test_lookups,
    test_record,
    test_sources,
    test_transform,
    test_wrong_types,
)
from tests.unit.model.as_of import test_as_of_definitions
from tests.unit.model.functions import test_last_rows
from tests.unit.model.processes import test_process_pipelines
from tests.unit.model.rules import test_rule_tables

from seamline.model.compile.compiled_pipeline import compile_with_problems
from seamline.model.definition.pipeline import Pipeline, View
from seamline.model.errors import DefinitionError

PAGE = Path(__file__).parents[3] / "docs" / "refusals.md"
HEAD = """# What the definition language refuses

Each line is a wrong definition of our tests with the message and the hint its author gets, after the file and the line.
`seamline check` gives all problems of all definitions at once.
Written by `python -m tests.unit.project.test_refusals`.

| field | message | hint |
| --- | --- | --- |
"""


TABLES = (
    test_definition.WRONG,
    test_own_measures.WRONG,
    test_sources.WRONG,
    test_joins.WRONG,
    test_as_of_definitions.WRONG,
    test_asks.WRONG,
    test_process_pipelines.WRONG,
    test_fold_definitions.WRONG,
    test_last_rows.WRONG,
    test_debezium.WRONG,
    test_rule_tables.WRONG,
    test_wrong_types.REFUSED,
)
"""Wrong definitions that are written out."""


def cases() -> Iterator[tuple[str, Pipeline, str]]:
    """List every wrong definition with its name and the field that is wrong."""
    for name, (wrong, field, *_) in chain.from_iterable(table.items() for table in TABLES):
        yield name, wrong, field
    for name, (format, schema, _) in test_formats.WRONG.items():
        yield name, test_formats.pipeline(f"{schema}, at TIMESTAMP", format=format), "source.format"
    for name, (changes, field, _) in test_record.WRONG.items():
        yield name, test_record.pipeline(test_record.SCHEMA, **changes), field
    for name, (changes, field, _) in test_transform.WRONG_ROWS.items():
        yield name, replace(test_transform.worded(), **changes), field
    for name, (changes, field, _) in test_transform.WRONG.items():
        yield name, replace(test_transform.texts(), **changes), field
    for name, (changes, field, _) in test_lookups.WRONG.items():
        yield name, test_lookups.wrong(changes), field
    for name, (changes, field, _) in test_evolution.WRONG.items():
        yield name, records.pipeline(test_evolution.SCHEMA, **changes), field
    for name, (made, field, _) in test_decorations.WRONG.items():
        yield name, made, field
    for window, _ in test_windows.WRONG:
        view = View("v", keys=[], window=window, measures=test_definition.VIEW.measures)
        yield str(window), replace(test_definition.ORDERS, views=[view]), "views[v].window"


def problem(wrong: Pipeline, field: str) -> DefinitionError:
    """Return the problem that a wrong definition has in a field."""
    return next(each for each in compile_with_problems(wrong)[1] if each.field.startswith(field))


def page() -> str:
    """Write the page."""
    rows = {}
    for _, wrong, field in cases():
        found = problem(wrong, field)
        cells = (re.sub(r"\[[^\]]*\]", "[...]", found.field), found.message, found.hint)
        rows[" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)] = None
    return HEAD + "".join(f"| {row} |\n" for row in sorted(rows))


def test_sixty_mistakes_are_told_apart() -> None:
    """A message that two mistakes share tells neither author what is wrong."""
    assert len({problem(wrong, field).message for _, wrong, field in cases()}) >= 60


def test_the_page_is_what_the_language_says() -> None:
    """Else run `python -m tests.unit.project.test_refusals`."""
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
