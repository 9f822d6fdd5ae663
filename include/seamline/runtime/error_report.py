"""An error that ends one process, told to another as data: its kind, its message and its hint, in a file."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import Any

from seamline.model.errors import SeamlineError, restore_error


def write_error_report(path: Any, error: SeamlineError) -> None:
    """Write an error for whoever waits for this process, to a place on disk or in a bucket.

    A write that fails is ignored: there is the exit code.
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps(error.to_facts()))
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
