"""The assets of a pipeline, from the topic to what people read."""

from __future__ import annotations

from dataclasses import dataclass

from airflow.sdk import Asset

from seamline.model.definition.pipeline import Pipeline
from seamline.orchestration.dag_docs import describe_origins


@dataclass(frozen=True)
class Assets:
    """A pipeline's assets, each made from the one before."""

    topic: Asset
    """What is read: topics, tables, or both."""
    master: Asset
    """The table of accepted records."""
    generations: Asset
    """What builds publish."""
    serving: Asset
    """The tables that other engines read."""
    intervals: Asset
    """What is certified and published, a partition for each interval."""

    @classmethod
    def of(cls, pipeline: Pipeline) -> Assets:
        """Return the assets of a pipeline, the same objects' worth at every parse."""

        def asset(layer: str, about: str) -> Asset:
            name = f"{pipeline.name}/{layer}"
            return Asset(name=name, uri=f"x-seamline://{name}", group=layer, extra={"about": about})

        return cls(
            topic=asset("topic", describe_origins(pipeline)),
            master=asset("master", "every record accepted, append-only"),
            generations=asset("generations", "certified batch computations, one per view and interval"),
            serving=asset("serving", "what is published and served"),
            intervals=asset("intervals", "certified and published intervals, one partition each"),
        )
