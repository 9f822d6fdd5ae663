"""``python -m seamline.local.revisions.described_definitions``: what the definitions of a folder say, into a file.

Definitions are code, and code of two revisions has the same names: each revision is loaded by a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seamline.model.compile.catalog import Catalog, load_catalog
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.fingerprint import view_facts
from seamline.model.compile.stored_definition import CONTENT, encode_definition_part
from seamline.model.errors import DefinitionError
from seamline.plan.revision.revision_facts import PipelineFacts, RevisionFacts, ViewFacts


def describe_catalog(catalog: Catalog, folder: Path) -> RevisionFacts:
    """Describe every pipeline, and say what is wrong with the others; files are named below ``folder``."""
    found = {name: describe_pipeline(each) for name, each in catalog.pipelines.items()}
    return RevisionFacts(found, tuple(format_problem(each, folder) for each in catalog.problems))


def describe_pipeline(pipeline: CompiledPipeline) -> PipelineFacts:
    """Describe a pipeline: its versions, what they are made of, and its settings."""
    definition = pipeline.definition
    views = tuple(
        ViewFacts(view.id, view_facts(definition, declared, (), view.uses))
        for declared, view in zip(definition.views, pipeline.views, strict=True)
    )
    settings: dict[str, Any] = encode_definition_part(definition)[CONTENT]
    return PipelineFacts(pipeline.name, pipeline.record_version, views, settings)


def format_problem(problem: DefinitionError, folder: Path) -> str:
    """Say where a definition is wrong, and what."""
    file = Path(problem.file)
    place = file.relative_to(folder) if file.is_relative_to(folder) else file
    line = f":{problem.line}" if problem.line else ""
    field = f"{problem.field}: " if problem.field else ""
    return f"{place}{line}: {field}{problem.message}" if problem.file else f"{field}{problem.message}"


def main(arguments: Sequence[str]) -> None:
    """Load the definitions of a folder with other places to import from, and write what they say."""
    folder, out, path = arguments
    sys.path[:] = json.loads(path)
    place = Path(folder)
    found = describe_catalog(load_catalog(place), place) if place.is_dir() else RevisionFacts()
    Path(out).write_text(found.to_json(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
