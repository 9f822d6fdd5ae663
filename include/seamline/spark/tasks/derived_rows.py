"""The rows of a join in Spark."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.derived_rows import VERSION_ORDER, Dialect, derived_rows_sql
from seamline.spark.tasks.measures import quote_column


def latest_sql(rows: str, versions: str, keys: Sequence[str]) -> str:
    """Write rows with their latest versions, in one sort of both: each is behind all versions of its own time."""
    at, *place = VERSION_ORDER
    both = (
        f"SELECT *, false AS _is_left FROM ({versions}) "
        f"UNION ALL SELECT *, NULL AS _version, true AS _is_left FROM ({rows})"
    )
    return (
        f"SELECT * FROM (SELECT *, last_value(_version, true) OVER (PARTITION BY {', '.join(keys)} "
        f"ORDER BY {', '.join([at, '_is_left', *place])} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS _latest "
        f"FROM ({both})) WHERE _is_left"
    )


SPARK = Dialect(
    quote=quote_column,
    micros="unix_micros",
    same="<=>",
    text=lambda made: made.spark,
    null=lambda type: f"CAST(NULL AS {type})",
    record=lambda values: f"struct({', '.join(f'{value} AS f{at}' for at, value in enumerate(values))})",
    latest=latest_sql,
    start=lambda micros, size: f"(({micros}) - pmod(({micros}), {size}))",
)


def derive_rows(rows: DataFrame, join: CompiledJoin) -> DataFrame:
    """Return all derived rows of some with the columns of the master, which have every row in their reach."""
    name = f"seamline_rows_of_{join.name}"
    rows.createOrReplaceTempView(name)
    return rows.sparkSession.sql(derived_rows_sql(join, name, SPARK))
