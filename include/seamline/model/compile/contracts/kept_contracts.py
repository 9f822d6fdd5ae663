"""Contracts in files beside the definitions: written by a command, and kept by whoever edits a definition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.contracts.broken_promises import list_broken_promises
from seamline.model.compile.contracts.json_schema import make_json_schema
from seamline.model.compile.contracts.odcs import make_odcs, raise_version
from seamline.model.errors import DefinitionError

FOLDER = "contracts"


def locate_contract(pipeline: CompiledPipeline, form: str = "odcs") -> Path:
    """Return the file of a contract, in a folder beside the definition; ``form`` is odcs or schema.

    JSON is YAML: tools of the standard read it.
    """
    return Path(pipeline.definition.origin.file).parent / FOLDER / f"{pipeline.name}.{form}.json"


def read_contract(pipeline: CompiledPipeline) -> dict[str, Any] | None:
    """Read the contract that is kept, None where there is none; DefinitionError where it cannot be read."""
    place = locate_contract(pipeline)
    try:
        found = json.loads(place.read_text())
        if all(isinstance(each["properties"], list) for each in found["schema"]):
            return dict(found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise unreadable(pipeline, f"{type(error).__name__}: {error}") from None
    raise unreadable(pipeline, "its schema has no properties")


def unreadable(pipeline: CompiledPipeline, why: str) -> DefinitionError:
    """Say that a contract cannot be read."""
    origin = pipeline.definition.origin
    return DefinitionError(
        f"The contract {locate_contract(pipeline)} cannot be read: {why}.",
        hint=f"restore it, or delete it and run `seamline contract {pipeline.name} --write`.",
        field="contract",
        file=origin.file,
        line=origin.line,
    )


def list_broken_contracts(pipeline: CompiledPipeline) -> Iterator[DefinitionError]:
    """List what a definition breaks of the contract that is kept of it."""
    try:
        kept = read_contract(pipeline)
    except DefinitionError as problem:
        yield problem
        return
    origin = pipeline.definition.origin
    for place, why in list_broken_promises(kept, make_odcs(pipeline)) if kept else ():
        yield DefinitionError(
            f"The contract of {pipeline.name} is broken: of {place}, {why}.",
            hint=f"undo the edit, or agree on it with those concerned and run `seamline contract {pipeline.name} "
            "--write`.",
            field="contract",
            file=origin.file,
            line=origin.line,
        )


def renew_contract(pipeline: CompiledPipeline, kept: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the contract that follows the one that is kept: of the same version where nothing is another."""
    if kept is None:
        return make_odcs(pipeline)
    same = make_odcs(pipeline, str(kept["version"]))
    if same == kept:
        return same
    broken = any(list_broken_promises(kept, same))
    return {**same, "version": raise_version(str(kept["version"]), broken=broken)}


def write_contract(pipeline: CompiledPipeline, contract: Mapping[str, Any]) -> list[Path]:
    """Write a contract in both forms, and return the files."""
    documents = {"odcs": contract, "schema": make_json_schema(pipeline)}
    files = {locate_contract(pipeline, form): document for form, document in documents.items()}
    for place, document in files.items():
        place.parent.mkdir(exist_ok=True)
        place.write_text(format_document(document))
    return [*files]


def format_document(document: Mapping[str, Any]) -> str:
    """Write a document as text."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
