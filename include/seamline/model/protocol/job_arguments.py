"""The arguments of the Spark jobs: typed, and the same on both sides of a command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from seamline.model.time.intervals import Interval

BRIEF = {"spark.sql.codegen.wholeStage": "false"}
"""Spark's settings for a small build: compiling its stages would take longer than running them as they are."""


@dataclass(frozen=True)
class StreamJob:
    """Run the stream of a pipeline under a fencing token."""

    pipeline: str
    """The pipeline's name."""
    token: int
    """The fencing token."""
    imports: bool = False
    """Whether it imports what was asked for, and ends, without reading the topics."""

    def to_argv(self) -> list[str]:
        """Write the job as arguments, the inverse of ``parse``."""
        return ["--pipeline", self.pipeline, "--token", str(self.token), *["--imports"] * self.imports]

    @classmethod
    def parse(cls, argv: Sequence[str]) -> StreamJob:
        """Read what ``to_argv`` wrote."""
        parser = argparse.ArgumentParser(prog="python -m seamline.jobs.stream", description=cls.__doc__)
        parser.add_argument("--pipeline", required=True)
        parser.add_argument("--token", required=True, type=int)
        parser.add_argument("--imports", action="store_true")
        return cls(**vars(parser.parse_args(argv)))


@dataclass(frozen=True)
class BuildJob:
    """A build of some intervals up to a cut."""

    pipeline: str
    """The pipeline's name."""
    run: str
    """The run's id."""
    cut: int
    """An edge that the master contains: the last epoch to read."""
    spans: tuple[Interval, ...]
    """The intervals."""
    reason: str = ""
    """Why they are built."""
    planned: int = -1
    """The version of the manifest that this was decided on."""
    actor: str = ""
    """Who asked for the run."""

    def to_argv(self) -> list[str]:
        """Write the job as arguments, the inverse of ``parse``."""
        # With "=": a reason may begin with a dash.
        argv = [
            f"--pipeline={self.pipeline}",
            f"--run={self.run}",
            f"--cut={self.cut}",
            f"--reason={self.reason}",
            f"--planned={self.planned}",
            f"--actor={self.actor}",
        ]
        argv += [f"--span={span}" for span in self.spans]
        return argv

    @classmethod
    def parse(cls, argv: Sequence[str]) -> BuildJob:
        """Read what ``to_argv`` wrote."""
        parser = argparse.ArgumentParser(prog="python -m seamline.jobs.build", description=cls.__doc__)
        parser.add_argument("--pipeline", required=True)
        parser.add_argument("--run", required=True)
        parser.add_argument("--cut", required=True, type=int)
        parser.add_argument("--reason", default="")
        parser.add_argument("--planned", default=-1, type=int)
        parser.add_argument("--actor", default="")
        parser.add_argument("--span", dest="spans", action="append", default=[], type=Interval.parse)
        found = vars(parser.parse_args(argv))
        return cls(**{**found, "spans": tuple(found["spans"])})
