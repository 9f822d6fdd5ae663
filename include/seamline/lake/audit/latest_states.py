"""What an as-of join's slices add up to above a floor, by interval: what is there now, less what was there then."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from seamline.lake.audit.refolded import settle_zeros
from seamline.lake.audit.state_differences import BLOCK
from seamline.lake.engine import states
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.pane_ranges import to_unix_micros
from seamline.lake.engine.states import floor_sql
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.intervals import Grid
from seamline.model.time.zone_clock import MICROSECOND


def compute_latest_states(
    con: duckdb.DuckDBPyConnection, view: CompiledView, grid: Grid, rows: str, until: int
) -> pa.Table:
    """Compute the states of the blocks from each interval's floor to an epoch, of rows of the log in its reach.

    ``floors`` are the intervals with their floors; above a view's frontier there are no slices, whatever is published.
    """
    join = view.join
    assert join
    floors: dict[int, list[int]] = {}
    for start, floor in con.sql(f"SELECT _interval, _floor FROM floors WHERE _floor < {until}").fetchall():
        floors.setdefault(floor, []).append(to_unix_micros(start))
    made = []
    for floor, starts in floors.items():
        first = min(starts) - view.before // MICROSECOND
        end = max(starts) + grid.length // MICROSECOND
        reached = f"epoch_us(_event_time) >= {first} AND epoch_us(_event_time) < {end}"
        for number in (until, floor):
            known = f"(SELECT * FROM {rows} WHERE _epoch <= {number} AND {reached})"
            shown = (
                f"(SELECT r.*, f._floor + 1 AS _from, {until}::BIGINT AS _to "
                f"FROM ({derived_rows_sql(join, known, DUCKDB)}) r "
                f"JOIN floors f ON f._interval = {floor_sql('_event_time', grid.length)} AND f._floor = {floor})"
            )
            found = states.compute_row_states(con, view, shown, by=BLOCK)
            made.append(found if number == until else states.negate_states(view, found))
    return settle_zeros(view, states.combine_states(view, made, by=BLOCK))
