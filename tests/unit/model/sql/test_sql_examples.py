"""The shipped examples in SQL: the twin that is shipped, and what a printer makes of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.examples import catalog, declared
from tests.unit.model.sql.printed import OnlyInPython, print_pipeline

import seamline
from seamline import Pipeline
from seamline.model.compile.catalog import load_catalog
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import to_json
from seamline.model.definition.sources import Source
from seamline.model.sql.pipeline_file import read_pipeline_text

FOLDER = Path(__file__).parents[4] / "include" / "examples" / "sql"
IN_PYTHON = {
    "abandoned_carts": "Process",
    "merged_sessions": "CoGroup",
    "payments": "a suite",
    "scored_payments": "Ask",
    "sensor_alarms": "Process",
}
"""Examples that SQL cannot say, and what it lacks."""


def test_the_shipped_twin_is_the_same_pipeline() -> None:
    """Both files are shown side by side: they are one definition, and share their tables."""
    twin, original = seamline.pipeline_from_sql(FOLDER / "interval_join.sql"), declared("interval_join")
    assert twin == original
    assert to_json(twin) == to_json(original)
    ours, theirs = compile_pipeline(twin), compile_pipeline(original)
    assert [view.id for view in ours.views] == [view.id for view in theirs.views]
    assert ours.record_version == theirs.record_version


def test_check_finds_the_twin_in_its_folder() -> None:
    """An example that does not load is the first thing a reader sees."""
    found = load_catalog(FOLDER)
    assert (sorted(found.pipelines), found.problems) == (["interval_join"], ())


def on_one_line(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose schemas have single spaces, as all texts of SQL have them."""
    alone = isinstance(pipeline.source, Source)
    sources = [pipeline.source] if isinstance(pipeline.source, Source) else pipeline.source
    made = [replace(each, schema=" ".join(each.schema.split())) for each in sources]
    return replace(pipeline, source=made[0] if alone else made)


@pytest.mark.parametrize("name", sorted(catalog().pipelines))
def test_an_example_in_sql_is_the_example(name: str) -> None:
    """What real definitions use can be said; what cannot is known by name."""
    if name in IN_PYTHON:
        with pytest.raises(OnlyInPython, match=IN_PYTHON[name]):
            print_pipeline(declared(name))
        return
    original = on_one_line(declared(name))
    read = read_pipeline_text(print_pipeline(original), f"{name}.sql")
    assert to_json(read) == to_json(original)
    versions = [[view.id for view in compile_pipeline(each).views] for each in (read, original)]
    assert versions[0] == versions[1]
