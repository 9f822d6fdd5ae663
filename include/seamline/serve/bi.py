"""The merged views as SQL for other engines, over the serving tables: any reader of Delta can take them from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location
from seamline.model.compile.compiled_pipeline import CompiledPipeline, CompiledView

ENGINES = ("duckdb", "spark", "trino")


def bi_views_sql(
    pipeline: CompiledPipeline, layout: Layout, views: Iterable[CompiledView], engine: str
) -> Iterator[str]:
    """Write what makes each view known to an engine, as ``PIPELINE_VIEW``.

    The rows are those of ``seamline.read``, as of the last refresh (``serve_every``): sketches are presented.
    """
    for view in views:
        name = f"{pipeline.name}_{view.name}"
        place = layout.serving(view)
        match engine:
            case "duckdb":
                scanned = f"delta_scan({quote_string(place)})"
                yield f"CREATE OR REPLACE VIEW {quote_ansi_name(name)} AS SELECT * FROM {scanned};"
            case "spark":
                location = quote_spark_string(place)
                yield f"CREATE TABLE IF NOT EXISTS {quote_spark_name(name)} USING DELTA LOCATION {location};"
            case _:
                # Trino registers what is there, in the catalog's own schema.
                yield (
                    f"CALL delta.system.register_table(schema_name => 'default', table_name => {quote_string(name)}, "
                    f"table_location => {quote_string(place.as_uri())});"
                )


def quote_string(value: str | Location) -> str:
    """Quote a string for SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def quote_spark_string(value: str | Location) -> str:
    """Quote a string for Spark SQL, which reads two quotes as the end of one string and the begin of the next."""
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_ansi_name(name: str) -> str:
    """Quote a name for standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_spark_name(name: str) -> str:
    """Quote a name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
