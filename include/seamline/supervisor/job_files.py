"""Where the Spark jobs are."""

from __future__ import annotations

import os
from pathlib import Path

import seamline
from seamline.model.errors import SetupError


def jobs_folder() -> Path:
    """Return the folder of the Spark jobs: SEAMLINE_JOBS, else ``spark_jobs`` of the checkout we run from."""
    named = os.environ.get("SEAMLINE_JOBS")
    place = Path(named) if named else Path(seamline.__file__).resolve().parents[2] / "spark_jobs"
    if not place.is_dir():
        raise SetupError(f"There is no folder {place} of Spark jobs.", hint="set SEAMLINE_JOBS.")
    return place
