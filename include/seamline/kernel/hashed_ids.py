"""Event ids as hashes: of the interval and of the columns of an id, the same for equal values in every process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.event_ids import list_id_expressions

DOUBLES = ("FLOAT", "DOUBLE", "REAL")
LOWER_HALF = 2**64 - 1


def hash_ids(
    con: duckdb.DuckDBPyConnection, pipeline: CompiledPipeline, relation: str, others: Sequence[str] = ()
) -> duckdb.DuckDBPyRelation:
    """Select the hashes (``HASHES``) of a relation's event ids, and its columns ``others``."""
    own = ", ".join([f"md5_number({id_text_sql(pipeline)}) AS _id", "epoch_us(_event_time) AS _at", *others])
    halves = f"(_id >> 64)::UBIGINT AS high, (_id & {LOWER_HALF}::UHUGEINT)::UBIGINT AS low"
    columns = ", ".join([halves, '_at AS "at"', *others])
    return con.sql(f"SELECT {columns} FROM (SELECT {own} FROM {relation})")


def id_text_sql(pipeline: CompiledPipeline) -> str:
    """Write the text of an id: no two ids have the same one, for each value says how long it is."""
    cell = f"epoch_us({floor_sql('_event_time', pipeline.grid.length)})"
    types = {field.name: field.type.duckdb for field in pipeline.schema.fields}
    texts = [cell]
    for name, column in zip(pipeline.event_id, list_id_expressions(pipeline, quote_identifier), strict=True):
        text = f"({column})::VARCHAR" if pipeline.alone else f"{column}::VARCHAR"
        if types.get(name) in DOUBLES:
            # Equal values have one text: there are two zeros, and NaN with either sign.
            text = f"CASE WHEN isnan({column}) THEN 'nan' ELSE ({column} + 0.0)::VARCHAR END"
        texts += [f"length({text})", text]
    return f"concat_ws(':', {', '.join(texts)})"


def split_ids(table: pa.Table, parts: int, chosen: Iterable[int] | None = None) -> dict[int, pa.Table]:
    """Share ids out among so many parts; return the shares of those ``chosen``, of all for None."""
    part = table["high"].to_numpy() % np.uint64(parts)
    return {
        number: table.filter(pa.array(part == number))
        for number in (range(parts) if chosen is None else chosen)
    }
