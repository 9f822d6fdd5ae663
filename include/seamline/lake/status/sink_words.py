"""What the process of a pipeline's sinks last said of each: a file of its machine for each sink."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from seamline.lake.status.status_files import read_json_file
from seamline.lake.storage.layout import home_folder


@dataclass(frozen=True)
class SinkWords:
    """How a sink does."""

    at: str
    """When it was said, UTC."""
    state: str
    """What it is at: "sending", "waiting", "failed", "ended"."""
    version: int = -1
    """The version of the serving table that the target shows; -1 for none, or where that is not known."""
    newest: int = -1
    """The newest version of the serving table."""
    sent: int = 0
    """Changes that this process has sent."""
    seconds: float = 0.0
    """How long the last difference took to be sent."""
    error: str = ""
    """Why it failed; empty where it did not."""


def locate_sink_words(pipeline: str, sink: str) -> Path:
    """Locate the file of a sink of a pipeline."""
    return home_folder() / "streams" / pipeline / "sinks" / f"{sink}.json"


def write_sink_words(pipeline: str, sink: str, words: SinkWords) -> None:
    """Say how a sink does, in one step."""
    file = locate_sink_words(pipeline, sink)
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(asdict(words)))
    draft.replace(file)


def read_sink_words(pipeline: str, sink: str) -> SinkWords | None:
    """Read what was said of a sink; None if nothing was."""
    row = read_json_file(locate_sink_words(pipeline, sink))
    return None if row is None else SinkWords(**row)
