"""Two answers of a view side by side, and what the master knows of the places where they differ, as SQL.

The relations ``before`` and ``after`` have the interval, keys, pane, rows and presented measures; ``marks`` has the
intervals with their epochs; ``differing`` are the rows of the first query that differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from seamline.lake.engine import states
from seamline.lake.engine.accepted_rows import record_version_sql, repeated_id_sql
from seamline.lake.engine.derived_rows import DUCKDB
from seamline.lake.engine.duckdb_scans import quote_literal, read_parquet_sql
from seamline.lake.engine.states import floor_sql, quote_identifier
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.tables.reprocessed import REASON
from seamline.model.compile.compiled_pipeline import CompiledMeasure, CompiledPipeline, CompiledView
from seamline.model.compile.derived_rows import derived_rows_sql
from seamline.model.time.window_arithmetic import Gaps

INTERVAL = "_interval"
CLOSE = 1e-9
"""How much two doubles may differ, as a share: sums are added up in another order."""


def list_state_place_names(view: CompiledView) -> list[str]:
    """List the columns that distinguish the states of an interval."""
    return [*(key.name for key in view.keys), "pane"]


def side_by_side_sql(view: CompiledView) -> str:
    """Write the query that puts both answers side by side; ``_kind`` is NULL if they agree."""
    names = [INTERVAL, *list_state_place_names(view)]
    on = " AND ".join(
        f"b.{quote_identifier(name)} IS NOT DISTINCT FROM a.{quote_identifier(name)}" for name in names
    )
    either = {
        name: f"CASE WHEN b._there THEN b.{quote_identifier(name)} ELSE a.{quote_identifier(name)} END"
        for name in names
    }
    places = ", ".join(f"{text} AS {quote_identifier(name)}" for name, text in either.items())
    texts = {measure.name: measure_differs_sql(measure) for measure in view.measures}
    wrong = ", ".join(f"CASE WHEN {text} THEN {quote_literal(name)} END" for name, text in texts.items())
    changes = ", ".join(
        f"{quote_literal(measure.name)}: {relative_change_sql(measure)}" for measure in view.measures
    )
    rows = "coalesce({}.rows, 0)"
    # A record may make a session longer, or two into one: they are weighed key by key.
    if isinstance(view.windows, Gaps):
        whole = ", ".join(either[name] for name in [INTERVAL, *(key.name for key in view.keys)])
        rows = f"sum(coalesce({{}}.rows, 0)) OVER (PARTITION BY {whole})::BIGINT"
    shown = "WHERE rows <> 0" if view.netted else ""
    return (
        f"SELECT {places}, {rows.format('b')} AS _was, {rows.format('a')} AS _made, "
        f"CASE WHEN a._there IS NULL THEN 'missing' WHEN b._there IS NULL THEN 'extra' "
        f"WHEN a.rows <> b.rows OR {' OR '.join(texts.values())} THEN 'changed' END AS _kind, "
        f"list_filter([{wrong}], lambda _x: _x IS NOT NULL) AS _measures, {{{changes}}} AS _changes "
        f"FROM (SELECT *, true AS _there FROM before {shown}) b "
        f"FULL JOIN (SELECT *, true AS _there FROM after {shown}) a "
        f"ON {on}"
    )


def measure_differs_sql(measure: CompiledMeasure) -> str:
    """Write whether a measure differs."""
    one, other = f"b.{quote_identifier(measure.name)}", f"a.{quote_identifier(measure.name)}"
    differing = f"{one} IS DISTINCT FROM {other}"
    if pa.types.is_floating(arrow_type(measure.result)):
        close = f"abs({one} - {other}) <= {CLOSE} * greatest(1, abs({one}), abs({other}))"
        differing = f"({differing} AND ({close}) IS NOT TRUE)"
    names = [quote_identifier(source.beyond) for source in measure.sources if source.beyond]
    beyond = [f"b.{name} IS DISTINCT FROM a.{name}" for name in names]
    return f"({' OR '.join([differing, *beyond])})"


def relative_change_sql(measure: CompiledMeasure) -> str:
    """Write a measure's change as a share of what it was."""
    type = arrow_type(measure.result)
    if not (pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)):
        return "NULL::DOUBLE"
    one, other = (f"{side}.{quote_identifier(measure.name)}::DOUBLE" for side in "ba")
    return f"({other} - {one}) / nullif(abs({one}), 0)"


def difference_evidence_sql(pipeline: CompiledPipeline, view: CompiledView, paths: Sequence[str]) -> str:
    """Write the query for what is known of each place that differs: records that are spare, and that no slice has.

    ``paths`` are files of the master, and of what was validated again. Of rows that may be withdrawn nothing is known.
    """
    if view.netted:
        return "SELECT *, 0::BIGINT AS _spare, 0::BIGINT AS _unsliced FROM differing"
    keys = [quote_identifier(key.name) for key in view.keys]
    places = [INTERVAL, *keys] if isinstance(view.windows, Gaps) else [INTERVAL, *keys, "_pane"]
    pane = "" if isinstance(view.windows, Gaps) else f", {floor_sql('_event_time', view.pane)} AS _pane"
    repeated = repeated_id_sql(pipeline, f"m.{INTERVAL}")
    source = f"SELECT * FROM {read_parquet_sql(paths, uneven=True)} UNION ALL BY NAME " if paths else ""
    fitting = f"{record_version_sql(pipeline.record_version)} AND {REASON} IS NULL"
    rows = f"(SELECT * FROM ({source}SELECT * FROM blank) WHERE {fitting})"
    if view.join:
        repeated, rows = "FALSE", f"({derived_rows_sql(view.join, rows, DUCKDB)})"
    read = (
        f"SELECT r.*, m.{INTERVAL}, _epoch > _before AND {repeated} AS _repeated, "
        f"_epoch > greatest(_until, _before) AS _above{pane} "
        f"FROM {rows} r JOIN marks m ON m.{INTERVAL} = {floor_sql('_event_time', pipeline.grid.length)} "
        f"WHERE _epoch <= _cut AND m.{INTERVAL} IN (SELECT {INTERVAL} FROM differing)"
    )
    where = f"WHERE {view.where.duckdb}" if view.where else ""
    counted = (
        f"SELECT {', '.join(places)}, count(*) FILTER (_repeated) AS _spare, count(*) FILTER (_above) AS _unsliced "
        f"FROM {states.exploded_rows_sql(view, f'({read})')} {where} GROUP BY ALL"
    )
    on = " AND ".join(
        f"c.{name} IS NOT DISTINCT FROM d.{'pane' if name == '_pane' else name}" for name in places
    )
    return (
        f"SELECT d.*, coalesce(c._spare, 0) AS _spare, coalesce(c._unsliced, 0) AS _unsliced "
        f"FROM differing d LEFT JOIN ({counted}) c ON {on}"
    )
