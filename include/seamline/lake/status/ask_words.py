"""What processes that ask last said: a file of their machine for each question."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seamline.lake.status.status_files import read_json_file
from seamline.lake.storage.layout import home_folder
from seamline.plan.stream.ask_counts import AskCount


def locate_ask_words(pipeline: str, ask: str) -> Path:
    """Locate the file of a question of a pipeline."""
    return home_folder() / "streams" / pipeline / "asks" / f"{ask}.json"


def read_ask_words(pipeline: str, asks: Iterable[str]) -> dict[str, AskCount]:
    """Read what was said of questions, by their names, without those of which nothing was."""
    said = {ask: read_json_file(locate_ask_words(pipeline, ask)) for ask in asks}
    return {ask: AskCount(**row) for ask, row in said.items() if row is not None}
