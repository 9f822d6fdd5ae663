"""Where the jobs are: the processes that run Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import seamline
from seamline.model.errors import SetupError
from seamline.model.protocol.job_arguments import StreamJob


def job_command(name: str) -> list[str]:
    """Return the command that runs a job; the folder that it starts in adds nothing to what it may import."""
    if os.environ.get("SEAMLINE_JOBS"):
        return [sys.executable, str(find_job_file(name))]
    return [sys.executable, "-P", "-m", f"seamline.jobs.{name}"]


def make_stream_command(pipeline: str, token: int) -> list[str]:
    """Return the command of a pipeline's stream."""
    return [*job_command("stream"), *StreamJob(pipeline, token).to_argv()]


def make_import_command(pipeline: str, token: int) -> list[str]:
    """Return the command of a run of a pipeline's imports."""
    return [*job_command("stream"), *StreamJob(pipeline, token, imports=True).to_argv()]


def find_job_file(name: str) -> Path:
    """Return the file of a job, for spark-submit: ours, or of the folder SEAMLINE_JOBS; SetupError if it is gone."""
    folder = os.environ.get("SEAMLINE_JOBS") or Path(seamline.__file__).parent / "jobs"
    file = Path(folder) / f"{name}.py"
    if not file.is_file():
        raise SetupError(
            f"There is no job {file}.", hint="unset SEAMLINE_JOBS, or name a folder that has it."
        )
    return file
