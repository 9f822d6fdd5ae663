"""Lives that somebody thought of: names of a user's that are ours elsewhere."""

from __future__ import annotations

from dataclasses import replace

from tests.lives.events.sending import Send
from tests.lives.events.streaming import Epoch
from tests.lives.lives import Life, lived
from tests.lives.records import Column
from tests.lives.test_versions import shape_of

from seamline import collect_distinct
from seamline.model.compile.compiled_pipeline import GROUPING, compile_pipeline
from seamline.model.definition.windows import Tumbling


def test_a_measure_may_have_the_name_of_a_column_that_only_other_views_have() -> None:
    """Rows were put in the order of its lists, for the column that names a row's set of keys."""
    shape = shape_of(Tumbling("1 hour"))
    definition = shape.pipeline.definition
    view = replace(definition.views[0], measures={GROUPING: collect_distinct("customer", limit=3)})
    compiled = compile_pipeline(replace(definition, views=[view]))
    shape = replace(shape, columns=(Column("customer", "STRING", ("a", "b")),), pipeline=compiled)
    failure = lived(Life(1, shape, ((0, Send(9, 12, 0)), (1, Epoch(40)))))
    assert failure is None, str(failure)
