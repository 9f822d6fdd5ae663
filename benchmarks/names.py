"""What systems are called in plots and tables."""

NAMES = {
    "seamline": "Seamline",
    "spark_lambda": "Spark, lambda by hand",
    "spark_tuned": "Spark, lambda tuned by hand",
    "spark_stateful": "Spark, stateful, no archive",
    "stateful": "Spark, stateful, no archive",
    "flink_work": "Flink SQL, archive and counts",
    "flink_only": "Flink SQL, counts only",
    "flink": "Flink SQL, counts only",
    "spark sql": "Spark SQL by hand",
    "duckdb": "DuckDB",
    "polars": "Polars",
}
