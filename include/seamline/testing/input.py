"""The input of a view as plain rows: its keys, conditions and expressions over the rows that were accepted."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import selected_sql
from seamline.lake.storage.arrow_types import master_schema
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView
from seamline.model.compile.event_ids import list_id_expressions
from seamline.testing.folding import list_fold_sources, query_rows
from seamline.testing.oracle import Row


def input_of(
    con: duckdb.DuckDBPyConnection, pipeline: CompiledPipeline, view: CompiledView, accepted: pa.Table
) -> list[Row]:
    """Evaluate a view over accepted rows, those that are not selected left out; an exploding one has a row per item.

    Of a join's view the rows are derived ones.
    """
    if not accepted.num_rows:
        return []
    if not view.derived:
        # A column that was added since is NULL in what was read before.
        blank = master_schema(pipeline).empty_table()
        accepted = pa.concat_tables([blank, accepted], promote_options="default")
    where = f"({view.where.duckdb}) IS TRUE" if view.where else "TRUE"
    ids = [] if view.derived else list_id_expressions(pipeline, states.quote_identifier)
    values = [each.expression.duckdb if each.expression else "1" for each in list_fold_sources(view)]
    keys = [states.quote_identifier(key.name) for key in view.ordered_by]
    ordinal = "0" if view.counts else "_ordinal"
    places = ["_epoch", "_event_time", "_partition", "_offset", "_topic", ordinal]
    relation = "rows" if view.counts else states.exploded_rows_sql(view, "rows")
    selected = "TRUE" if view.derived else selected_sql(pipeline)
    columns = [*places, selected, where, *ids, *keys, *values]
    found = query_rows(con, f"SELECT {', '.join(columns)} FROM {relation}", accepted)
    rows = []
    for epoch, at, partition, offset, topic, item, chosen, counts, *rest in found:
        if not chosen:
            continue
        named = dict(zip((key.name for key in view.ordered_by), rest[len(ids) :], strict=False))
        rows.append(
            Row(
                epoch,
                (at, partition, offset, item),
                topic,
                pipeline.grid.of(at).id,
                tuple(rest[: len(ids)]),
                named,
                tuple(rest[len(ids) + len(keys) :]),
                counts,
            )
        )
    return rows
