"""An error that ends one process, told to another as data: its kind, its message and its hint, in a file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from seamline.model.errors import DefinitionError, SeamlineError


def write_error_report(path: Any, error: SeamlineError) -> None:
    """Write an error for whoever waits for this process, to a place on disk or in a bucket.

    A write that fails is ignored: there is the exit code.
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps(facts_of_error(error)))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


def take_error_report(path: Any) -> SeamlineError | None:
    """Read the error that a process has left, and delete it; None if it left none, or nothing that can be read."""
    try:
        return restore_error(json.loads(path.read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        # If nothing was built, the folder is empty.
        with suppress(OSError):
            path.unlink(missing_ok=True)
            path.parent.rmdir()


def facts_of_error(error: SeamlineError) -> dict[str, str]:
    """Return what another process is told of an error, the inverse of ``restore_error``."""
    whole, _, _ = str(error).partition("\n\nHint: ")
    return {"error": type(error).__name__, "message": whole, "hint": error.hint}


def restore_error(facts: Mapping[str, str]) -> SeamlineError:
    """Return the error that ``facts_of_error`` described, a SeamlineError if this process does not know its kind.

    Raises KeyError and TypeError for what describes none.
    """
    kinds, kind = [SeamlineError], SeamlineError
    while kinds:
        each = kinds.pop()
        kind = each if each.__name__ == facts["error"] else kind
        kinds += each.__subclasses__()
    # Some kinds are made of other words than these.
    error = kind.__new__(kind)
    vars(error).update(field="", file="", line=0) if issubclass(kind, DefinitionError) else None
    SeamlineError.__init__(error, str(facts["message"]), hint=str(facts["hint"]))
    return error
