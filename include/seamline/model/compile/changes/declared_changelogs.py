"""The changelogs that a definition declares, and what in it says which rows they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamline.model.definition.changes import Changelog
from seamline.model.definition.pipeline import Pipeline


def find_changelog(pipeline: Pipeline, names: Sequence[str]) -> Changelog | None:
    """Find the changelog of which a view counts the rows; None where it counts others."""
    return next(
        (each for each in pipeline.derive if isinstance(each, Changelog) and [each.name] == list(names)), None
    )


def changelog_facts(pipeline: Pipeline, changelog: Changelog) -> dict[str, Any]:
    """List all that says which rows a table has after its changes."""
    source = next((each for each in pipeline.sources if each.name == changelog.of), None)
    said = {name: getattr(source, name, "") for name in ("key", "order", "deleted")}
    return {"of": changelog.of, **said, "key": list(said["key"])}
