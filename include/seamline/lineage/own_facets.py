"""Facets of our own, as classes of the official client; the folder ``schemas`` has the JSON schema of each."""

from __future__ import annotations

import attr
from openlineage.client.generated.base import InputDatasetFacet, RunFacet

from seamline.version import VERSION

PRODUCER = f"pkg:pypi/seamline@{VERSION.replace('+', '%2B')}"
"""Who tells: the package by its package URL, since the client takes a URI."""


def schema_url(name: str) -> str:
    """Return where a facet's schema is: a file of this package in this version."""
    return f"{PRODUCER}#seamline/lineage/schemas/{name}.json"


@attr.define
class OffsetRangeOfPartition:
    """A half-open range of a partition's offsets."""

    topicId: str  # noqa: N815 - the words of JSON
    partition: int
    start: int
    end: int


@attr.define
class SeamlineOffsetsInputDatasetFacet(InputDatasetFacet):
    """The offsets that were read since the event before."""

    partitions: list[OffsetRangeOfPartition]
    offsets: int

    @staticmethod
    def _get_schema() -> str:
        return schema_url("SeamlineOffsetsInputDatasetFacet")


@attr.define
class SeamlineStreamRunFacet(RunFacet):
    """What a stream's driver says of itself."""

    pipeline: str
    token: int
    epoch: int
    behind: dict[str, int]
    watermark: str | None = None

    @staticmethod
    def _get_schema() -> str:
        return schema_url("SeamlineStreamRunFacet")


@attr.define
class SeamlineSinkRunFacet(RunFacet):
    """What a sink says of itself."""

    pipeline: str
    sink: str
    versionBefore: int  # noqa: N815
    version: int
    changes: int

    @staticmethod
    def _get_schema() -> str:
        return schema_url("SeamlineSinkRunFacet")


@attr.define
class SeamlineBatchRunFacet(RunFacet):
    """What a task of a batch run says of itself."""

    pipeline: str
    airflowRunId: str  # noqa: N815
    cut: int
    intervals: list[str]
    intervalCount: int  # noqa: N815
    reason: str

    @staticmethod
    def _get_schema() -> str:
        return schema_url("SeamlineBatchRunFacet")
