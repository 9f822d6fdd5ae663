"""The rows of a join in Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame

from seamline.model.compile.compiled_join import CompiledJoin
from seamline.model.compile.derived_rows import Dialect, derived_rows_sql
from seamline.spark.tasks.measures import quote_column

SPARK = Dialect(
    quote=quote_column,
    micros="unix_micros",
    same="<=>",
    text=lambda made: made.spark,
    null=lambda type: f"CAST(NULL AS {type})",
    start=lambda micros, size: f"(({micros}) - pmod(({micros}), {size}))",
)


def derive_rows(rows: DataFrame, join: CompiledJoin) -> DataFrame:
    """Return all derived rows of some with the columns of the master, which have every row in their reach."""
    name = f"seamline_rows_of_{join.name}"
    rows.createOrReplaceTempView(name)
    return rows.sparkSession.sql(derived_rows_sql(join, name, SPARK))
