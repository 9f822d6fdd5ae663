"""A publication with the spans of what it does."""

from __future__ import annotations

from collections.abc import Collection

from seamline.lake.publish.publishing import Publication, publish_run
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.plan.publish.publication import Decision
from seamline.tracing.process_traces import flush_traces, traced


def publish_traced(
    pipeline: CompiledPipeline,
    layout: Layout,
    run: str,
    *,
    decision: Decision | None = None,
    only: Collection[str] = (),
) -> Publication:
    """Publish as ``publish_run`` does, within the span that has started the process.

    Its spans are exported before this returns: a task of Airflow's ends without a word to those of its process.
    """
    try:
        with traced("publish", pipeline=pipeline.name, run=run):
            return publish_run(pipeline, layout, run, decision=decision, only=only, phase=traced)
    finally:
        flush_traces()
