"""The records of a named side: rows of the master that no view sees."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.log.master import Master
from seamline.lake.read.originals import IN_ORDER, list_shown_columns
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.record_rules import SIDE
from seamline.model.errors import NotFound


def side_rows(pipeline: CompiledPipeline, layout: Layout, name: str) -> pa.Table:
    """Return the rows of a side in the order they came, each once, as of one version of the master; NotFound."""
    names = [each for each, _ in pipeline.record.sides]
    if name not in names:
        raise NotFound(
            f"{pipeline.name} has no side {name!r}.", hint=f"it has {', '.join(names) or 'none'}; see side=."
        )
    master = Master.open(layout).table
    of = [each.source.name for each in pipeline.alone if name in dict(each.record.sides)]
    columns = list_shown_columns(pipeline, of)
    held = master.handle.to_pyarrow_dataset()
    added = [field for field in pipeline.record.added if field.name not in held.schema.names]
    later = {field.name for field in added}
    missing = [column for column in (SIDE, *columns) if column not in (*held.schema.names, *later)]
    if missing:
        raise NotFound(
            f"The master of {pipeline.name} has no column {missing[0]!r} yet.", hint="start the stream first."
        )
    asked = [column for column in columns if column not in later]
    found = held.to_table(columns=asked, filter=pc.field(SIDE) == name)
    for field in added:
        found = found.append_column(field.name, pa.nulls(found.num_rows, arrow_type(field.type.spark)))
    found = found.select(columns)
    return found.sort_by(IN_ORDER)
