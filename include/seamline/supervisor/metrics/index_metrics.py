"""Indexes in numbers: how large the files are that a stream's driver keeps on this host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seamline.supervisor.metrics.index_sizes import read_index_sizes
from seamline.supervisor.metrics.metric_families import Family


@dataclass(frozen=True)
class IndexSizes:
    """The indexes of a pipeline's stream."""

    pipeline: str
    """The pipeline's name."""
    sizes: Mapping[str, int]
    """Bytes of each kind of index that there is."""


INDEX_FAMILIES: tuple[Family[IndexSizes], ...] = (
    Family(
        "seamline_index_bytes",
        "Size of an index's files on this host: ids (of dedup_within=), joined (of joins), changed (of changelogs).",
        lambda found: (((index,), size) for index, size in sorted(found.sizes.items())),
        ("index",),
    ),
)


def read_all_index_sizes(pipelines: Iterable[str]) -> list[IndexSizes]:
    """Read how large the indexes of pipelines are."""
    return [IndexSizes(name, read_index_sizes(name)) for name in pipelines]
