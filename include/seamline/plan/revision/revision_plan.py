"""What a change of definitions costs, and what it would change of published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seamline.plan.batch.batch_plan import BatchPlan
from seamline.plan.revision.definition_diff import DefinitionDiff, PipelineChange
from seamline.plan.revision.preview import ViewPreview


@dataclass(frozen=True)
class RebuildSize:
    """What the new versions of a pipeline have to be built of."""

    plan: BatchPlan
    """The builds, of all intervals that a new version lacks, however many a run takes."""
    intervals: Mapping[str, int]
    """By new version: how many intervals it lacks."""


@dataclass(frozen=True)
class PlannedChange:
    """A pipeline that changes."""

    change: PipelineChange
    """What happens to it."""
    size: RebuildSize | None = None
    """What is to be built; None where that is not known, or is nothing."""
    unknown: str = ""
    """Why the size is not known; empty where it is."""
    previews: tuple[ViewPreview, ...] = ()
    """What would change of published numbers."""


@dataclass(frozen=True)
class RevisionPlan:
    """A change of definitions, planned."""

    base: str
    """The revision that it is compared with."""
    diff: DefinitionDiff
    """What differs in the definitions."""
    pipelines: tuple[PlannedChange, ...]
    """The pipelines that change, by name."""
    notes: tuple[str, ...] = ()
    """What is to be known of the comparison."""

    @property
    def differs(self) -> bool:
        """Return whether published numbers would change, as far as was looked."""
        return any(each.differs for one in self.pipelines for each in one.previews)
