"""What changes take away and add, found again for an audit: what slices add up to above a floor, by interval.

All rows of the log are read that have the keys of those in the audited span: no snapshot is believed.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from seamline.lake.audit.refolded import settle_zeros
from seamline.lake.audit.state_differences import BLOCK
from seamline.lake.engine.changed_index import image_schema
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_connections import register_tables
from seamline.lake.engine.signed_states import compute_signed_states
from seamline.lake.engine.states import floor_sql
from seamline.lake.joins.joined_rows import log_rows_sql
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.committed_log import CommittedLog, committed_epochs_sql
from seamline.model.compile.changes.changes_sql import changes_sql, contributions_sql, same_key_sql
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.derived_rows import side_rows_sql


def recount_changes(
    con: duckdb.DuckDBPyConnection, view: CompiledView, layout: Layout, log: CommittedLog, until: int
) -> pa.Table:
    """Compute the states that each interval's slices above its floor add up to, with ``_from`` and ``_to``.

    ``floors`` and ``blank`` are tables of the connection.
    """
    changelog = view.changelog
    assert changelog
    logged = log_rows_sql(log.pipeline, layout, [(None, None)], until)
    committed = f"(SELECT * FROM {logged} WHERE {committed_epochs_sql('_epoch', log.log)})"
    rows = side_rows_sql(changelog, changelog.sides[0], committed, DUCKDB)
    interval = floor_sql("_event_time", log.pipeline.grid.length)
    audited = f"JOIN floors f ON f._interval = {interval} WHERE _epoch > _floor"
    same = same_key_sql(changelog, "r", "t", DUCKDB)
    # Read twice rather than kept: of a long log most rows are of other keys.
    mine = f"SELECT r.* FROM ({rows}) r SEMI JOIN (SELECT r.* FROM ({rows}) r {audited}) t ON {same}"
    changes = changes_sql(changelog, "no_images", f"({mine})", DUCKDB)
    signed = contributions_sql(changelog, f"({changes})", DUCKDB)
    with register_tables(no_images=image_schema(changelog).empty_table()):
        con.execute(
            "CREATE OR REPLACE TEMP TABLE placed_rows AS "
            f"SELECT r.*, _floor + 1 AS _from, {until}::BIGINT AS _to FROM ({signed}) r {audited}"
        )
        try:
            return settle_zeros(view, compute_signed_states(con, view, "placed_rows", by=BLOCK))
        finally:
            con.execute("DROP TABLE placed_rows")
