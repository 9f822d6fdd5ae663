"""Where the figures of a run are kept, section by section, so that a run can go on where it was broken off."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("SEAMLINE_BENCH", ".seamline/bench"))


class Results:
    """The figures of one section."""

    def __init__(self, section: str) -> None:
        self.file = FOLDER / f"{section}.json"

    def write(self, figures: dict[str, Any]) -> None:
        """Keep a section's figures."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(figures, indent=1))
        print(f"written to {self.file}")

    def read(self) -> dict[str, Any] | None:
        """Return a section's figures, None if it was not run."""
        return json.loads(self.file.read_text()) if self.file.exists() else None
