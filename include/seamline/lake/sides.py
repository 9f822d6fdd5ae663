"""The records of a named side: rows of the master that no view sees."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seamline.lake.layout import Layout
from seamline.lake.master import Master
from seamline.lake.originals import SHOWN
from seamline.model.compiled import CompiledPipeline
from seamline.model.errors import NotFound
from seamline.model.record import SIDE


def side_rows(pipeline: CompiledPipeline, layout: Layout, name: str) -> pa.Table:
    """Give the rows of a side in the order they came, each once, as of one version of the master; NotFound."""
    names = [each for each, _ in pipeline.record.sides]
    if name not in names:
        raise NotFound(
            f"{pipeline.name} has no side {name!r}.", hint=f"it has {', '.join(names) or 'none'}; see side=."
        )
    master = Master.open(layout).table
    columns = [*SHOWN, *(field.name for field in pipeline.schema.fields)]
    held = master.handle.to_pyarrow_dataset()
    missing = [column for column in (SIDE, *columns) if column not in held.schema.names]
    if missing:
        raise NotFound(
            f"The master of {pipeline.name} has no column {missing[0]!r} yet.", hint="start the stream first."
        )
    found = held.to_table(columns=columns, filter=pc.field(SIDE) == name)
    return found.sort_by([(column, "ascending") for column in ("_epoch", "_partition", "_offset")])
