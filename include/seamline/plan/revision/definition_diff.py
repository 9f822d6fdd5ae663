"""Two revisions of the definitions: which versions of views are new, which are gone, and what made them so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from seamline.plan.revision.changed_parts import PartChange, list_part_changes
from seamline.plan.revision.revision_facts import PipelineFacts, RevisionFacts

TRANSFORM = frozenset({"transform", "transform_schema", "transform_rows", "transform_version"})
OF_NUMBERS = TRANSFORM | {"views", "source", "select", "where", "rules", "side", "lookups", "derive"}
"""Settings whose changes show in fingerprints, as far as they change numbers."""


class ViewChangeKind(StrEnum):
    """What happens to a view."""

    ADDED = "new view"
    VERSION = "new version"
    RENAMED = "renamed"
    GONE = "gone"


class PipelineChangeKind(StrEnum):
    """What happens to a pipeline."""

    ADDED = "new pipeline"
    CHANGED = "changed"
    GONE = "gone"
    UNKNOWN = "not comparable"


@dataclass(frozen=True)
class ViewChange:
    """What happens to one view."""

    kind: ViewChangeKind
    """What happens."""
    view: str
    """Its name, as it is after."""
    before: str = ""
    """Its version before, ``name/fingerprint``; empty where there was none."""
    after: str = ""
    """Its version after; empty where there is none."""
    parts: tuple[PartChange, ...] = ()
    """The parts of the fingerprint that differ."""

    @property
    def record(self) -> bool:
        """Return whether records mean something else: they are validated again before a build."""
        return any(each.part.startswith("record.") for each in self.parts)

    @property
    def built(self) -> bool:
        """Return whether there is a version that has to be built."""
        return bool(self.after)


@dataclass(frozen=True)
class PipelineChange:
    """What happens to one pipeline."""

    name: str
    """The pipeline."""
    kind: PipelineChangeKind
    """What happens to it."""
    views: tuple[ViewChange, ...] = ()
    """What happens to its views; those that stay as they are are left out."""
    settings: tuple[str, ...] = ()
    """Settings that differ and change no number."""
    intervals: tuple[str, str] | None = None
    """The lengths of intervals before and after, where they differ: a log with rows refuses that."""

    @property
    def built(self) -> tuple[str, ...]:
        """The versions that have to be built."""
        return tuple(each.after for each in self.views if each.built)


@dataclass(frozen=True)
class DefinitionDiff:
    """What happens between two revisions."""

    pipelines: tuple[PipelineChange, ...]
    """The pipelines of which anything differs, by name."""
    base_problems: tuple[str, ...] = ()
    """What is wrong with the earlier definitions."""
    problems: tuple[str, ...] = ()
    """What is wrong with the later ones."""

    @property
    def builds(self) -> bool:
        """Return whether any version has to be built."""
        return any(each.built for each in self.pipelines)


def compare_revisions(before: RevisionFacts, after: RevisionFacts) -> DefinitionDiff:
    """Compare the definitions of two revisions.

    A pipeline that only one of them has, while the other has a broken file, is not known to be new or gone.
    """
    found = []
    for name in sorted({*before.pipelines, *after.pipelines}):
        old, new = before.pipelines.get(name), after.pipelines.get(name)
        if old and new:
            change = compare_pipelines(old, new)
            if change.views or change.settings or change.intervals:
                found.append(change)
        elif (before if new else after).problems:
            found.append(PipelineChange(name, PipelineChangeKind.UNKNOWN))
        elif new:
            views = tuple(ViewChange(ViewChangeKind.ADDED, each.name, after=each.id) for each in new.views)
            found.append(PipelineChange(name, PipelineChangeKind.ADDED, views))
        elif old:
            views = tuple(ViewChange(ViewChangeKind.GONE, each.name, before=each.id) for each in old.views)
            found.append(PipelineChange(name, PipelineChangeKind.GONE, views))
    return DefinitionDiff(tuple(found), before.problems, after.problems)


def compare_pipelines(old: PipelineFacts, new: PipelineFacts) -> PipelineChange:
    """Compare two definitions of a pipeline."""
    views = tuple(list_view_changes(old, new))
    names = {**new.settings, **old.settings}
    settings = [each for each in names if old.settings.get(each) != new.settings.get(each)]
    kept = tuple(each for each in settings if not (each in OF_NUMBERS and views))
    lengths = [find_interval_length(each) for each in (old, new)]
    other = (lengths[0], lengths[1]) if lengths[0] != lengths[1] else None
    return PipelineChange(new.name, PipelineChangeKind.CHANGED, views, kept, other)


def find_interval_length(pipeline: PipelineFacts) -> str:
    """Return the length of a pipeline's intervals, as its views have it."""
    return next((str(each.facts.get("interval", "")) for each in pipeline.views), "")


def list_view_changes(old: PipelineFacts, new: PipelineFacts) -> Iterator[ViewChange]:
    """List what happens to the views of a pipeline, those that are gone last.

    A view with the fingerprint of one that is gone was renamed: its tables have the name in their path.
    """
    gone = {each.id.partition("/")[2]: each for each in old.views if new.view(each.name) is None}
    for view in new.views:
        before = old.view(view.name)
        if before is None:
            former = gone.pop(view.id.partition("/")[2], None)
            kind = ViewChangeKind.RENAMED if former else ViewChangeKind.ADDED
            yield ViewChange(kind, view.name, former.id if former else "", view.id)
        elif before.id != view.id:
            parts = list_part_changes(before.facts, view.facts)
            yield ViewChange(ViewChangeKind.VERSION, view.name, before.id, view.id, parts)
    for each in gone.values():
        yield ViewChange(ViewChangeKind.GONE, each.name, each.id)
