"""Sessions in SQL: a partial session is (keys, first, last, states), cut at the borders of intervals.

Rows, and partial sessions too, are numbered per key by the session they are in: a new one begins where the last
instant before it is at least a gap away, or in another interval if sessions are cut there. Instants that are the
same get the same number whatever their order, for the running total goes over peers.
"""

from __future__ import annotations

from collections.abc import Sequence

from seamline.lake.engine.duckdb_scans import span_start_sql

SESSION = "_session"
LAST_ROW = "lag(_event_time) OVER (_ordered)"
LAST_PARTIAL = "max(_last) OVER (_ordered ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"


def of_rows(relation: str, keys: Sequence[str], gap: int, interval: int) -> str:
    """Write the query for rows with ``_event_time``, numbered by session among those of the same (quoted) ``keys``."""
    return numbered_sessions_sql(relation, keys, "_event_time", LAST_ROW, gap, interval)


def of_partials(relation: str, keys: Sequence[str], gap: int, interval: int | None) -> str:
    """Write the query for partial sessions (``pane`` is the first instant, ``_last`` the last), numbered alike."""
    return numbered_sessions_sql(relation, keys, "pane", LAST_PARTIAL, gap, interval)


def numbered_sessions_sql(
    relation: str, keys: Sequence[str], moment: str, before: str, gap: int, interval: int | None
) -> str:
    """Number what is at ``moment`` by the session that it is in; ``before`` is the last instant before it."""
    at = f"epoch_us({moment})"
    near = f"{at} - _before < {gap}"
    if interval is not None:
        near += f" AND {span_start_sql(at, interval)} <= _before"
    groups = f"PARTITION BY {', '.join(keys)} " if keys else ""
    ordered = f"WINDOW _ordered AS ({groups}ORDER BY {moment})"
    seen = f"SELECT *, epoch_us({before}) AS _before FROM {relation} {ordered}"
    flagged = f"SELECT *, CASE WHEN {near} THEN 0 ELSE 1 END AS _new FROM ({seen})"
    columns = f"* EXCLUDE (_before, _new), sum(_new) OVER (_ordered)::BIGINT AS {SESSION}"
    return f"SELECT {columns} FROM ({flagged}) {ordered}"
