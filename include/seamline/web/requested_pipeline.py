"""The pipeline that a page is about; without Airflow, of which a process that only reads tables knows nothing."""

from __future__ import annotations

from seamline.lake.storage.layout import Layout, definitions_folder, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.compile.catalog import load_cached_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline


def open_requested_pipeline(name: str) -> tuple[CompiledPipeline, Layout]:
    """Find a pipeline and its tables; NotFound."""
    pipeline = load_cached_catalog(definitions_folder()).pipeline(name)
    return pipeline, require_format(locate_tables(pipeline.name))
