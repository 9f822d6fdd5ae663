"""What the tables of a pipeline are called in lineage."""

from __future__ import annotations

from seamline.lake.storage.layout import Layout
from seamline.lake.tables.lookups.lookup_tables import FUNCTION, path_of
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.lineage.dataset_names import TableNames, name_place


def name_tables(pipeline: CompiledPipeline, layout: Layout) -> TableNames:
    """Name the tables of a pipeline, and those of its look-ups; what a function returns has no name."""
    joins = (*pipeline.lookups, *(each for view in pipeline.views for each in view.decorations))
    files = {each.name: each for each in joins if each.table and not FUNCTION.fullmatch(each.table)}
    return TableNames(
        name_place(str(layout.table("master"))),
        name_place(str(layout.table("quarantine"))),
        {view.id: name_place(str(layout.slices(view))) for view in pipeline.views},
        {view.id: name_place(str(layout.generations(view))) for view in pipeline.views},
        {view.name: name_place(str(layout.serving(view))) for view in pipeline.views},
        {
            name: name_place(each.table if "://" in each.table else str(path_of(each)))
            for name, each in files.items()
        },
    )
