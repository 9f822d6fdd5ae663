"""Sinks into files in a definition, and how long what they send waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.unit.model.refused import require_refused
from tests.unit.model.sinks.test_database_sinks import with_sinks
from tests.unit.shop import DEFINITION

from seamline import FileSink
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.compile.stored_definition import from_json, to_json
from seamline.model.definition.sinks.sink_base import Sink
from seamline.model.protocol.sinks.marks import Mark
from seamline.model.protocol.sinks.rolling import Pace, Waiting

FILES = FileSink("sales", path="/exports/sales")
PATH, BUCKETS = "sinks[sales_files].path", "sinks[sales_files].buckets"


def test_a_sink_into_files_is_stored() -> None:
    """A version that is run from what was stored has it too."""
    sink = replace(FILES, format="json", buckets=["1 hour", "customer"], history=True, when="certified")
    assert from_json(to_json(compile_pipeline(with_sinks(sink)).definition)).sinks == (sink,)


def test_files_of_another_form_are_written_anew() -> None:
    """Rows of one place would be in two folders otherwise; how long they wait changes nothing that is there."""
    others = [
        replace(FILES, format="json"),
        replace(FILES, buckets=["1 hour"]),
        replace(FILES, when="complete"),
    ]
    assert len({each.form for each in [FILES, *others]}) == 4
    assert replace(FILES, roll_age="5 minutes", history=True).form == FILES.form
    mark = Mark("view", FILES.form, "commit")
    assert Mark.parse(str(mark)) == mark


@pytest.mark.parametrize(
    ("sinks", "field", "words"),
    [
        ([replace(FILES, path="exports")], PATH, "no place for files"),
        ([replace(FILES, path="~/exports")], PATH, "no place for files"),
        ([replace(FILES, path="ftp://host/exports")], PATH, "no place for files"),
        ([replace(FILES, path="/ex\nports")], PATH, "no place for files"),
        (
            [FILES, replace(FILES, path="/exports/sales/eu", name="eu")],
            "sinks[eu].path",
            "within the path of",
        ),
        (
            [FILES, replace(FILES, path="/exports/sales/", name="b")],
            "sinks[sales_files]",
            "overwrite each other",
        ),
        ([replace(FILES, format="csv")], "sinks[sales_files].format", "not one of parquet, json"),
        ([replace(FILES, buckets=["amount"])], BUCKETS, "neither a duration nor a key"),
        ([replace(FILES, buckets=["1 fortnight"])], BUCKETS, "is not a duration"),
        ([replace(FILES, buckets=["1 day", "1 hour"])], BUCKETS, "named twice"),
        ([replace(FILES, buckets=["customer", "customer"])], BUCKETS, "named twice"),
        ([replace(FILES, roll_age="soon")], "sinks[sales_files].roll_age", "is not a duration"),
        ([replace(FILES, roll_idle="")], "sinks[sales_files].roll_idle", "is not a duration"),
        ([replace(FILES, roll_megabytes=0)], "sinks[sales_files].roll_megabytes", "not a size of files"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(sinks: list[Sink], field: str, words: str) -> None:
    """A sink that cannot write is found out before anything starts."""
    require_refused(with_sinks(*sinks), field, words, sinks[0].origin.file)


def test_columns_of_views_are_not_named_as_folders_are() -> None:
    """A reader that takes folders for columns would have two of one name."""
    text = DEFINITION.replace("customer", "in_stock")
    found = with_sinks(FILES, text=text)
    require_refused(found, "sinks[sales_files].view", "rename it", FILES.origin.file)


def test_changes_wait_until_they_are_old_or_nothing_follows() -> None:
    """A minute at most, and ten seconds after the last change."""
    pace = FILES.waits
    assert pace == Pace(timedelta(minutes=1), timedelta(seconds=10))
    waiting = Waiting().see(3, 3, 100.0)
    assert not waiting.is_due(pace, 1_000.0), "nothing waits"
    waiting = waiting.see(4, 3, 100.0)
    assert not waiting.is_due(pace, 109.0)
    assert waiting.is_due(pace, 110.0), "nothing has followed"
    for second in range(101, 161):
        waiting = waiting.see(second, 3, float(second))
    assert waiting.is_due(pace, 160.0), "the first change is old"
    assert not waiting.see(160, 160, 161.0).is_due(pace, 300.0), "it was sent"
    assert waiting.is_due(Pace(), 160.0)
