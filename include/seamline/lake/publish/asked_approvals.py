"""Whether a person was asked about what a run has built: what died before waits for nobody, and is built again."""

from __future__ import annotations

import json
from contextlib import suppress

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import replace_file
from seamline.lake.tables.builds_table import Builds


def note_asked(layout: Layout, run: str) -> None:
    """Note that somebody is asked to approve what the last attempt of a run has built."""
    built = sorted({row.generation for row in Builds.ensure(layout).of(run)})
    replace_file(layout.approval(run), json.dumps({"generations": built}).encode())


def read_asked(layout: Layout, run: str) -> frozenset[str]:
    """Read which generations of a run somebody was asked about; of an attempt before them that says nothing."""
    # A file that is not whole is of a machine that has lost power: the question is put again.
    with suppress(FileNotFoundError, ValueError):
        return frozenset(json.loads(layout.approval(run).read_bytes())["generations"])
    return frozenset()
