"""Compact and clean the tables of a pipeline: ``python -m seamline.jobs.upkeep --pipeline NAME``. It needs no Spark."""

from __future__ import annotations

import argparse
import sys

from seamline.lake.storage.layout import definitions_folder, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.compile.catalog import load_pipeline
from seamline.runtime.process_exit import exit_process, run_reported
from seamline.supervisor.requested_upkeep import run_upkeep


def main(argv: list[str]) -> int:
    """Run the upkeep of one pipeline; the exit code says what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m seamline.jobs.upkeep", description=__doc__)
    parser.add_argument("--pipeline", required=True)
    name = parser.parse_args(argv).pipeline

    def work() -> str:
        pipeline = load_pipeline(definitions_folder(), name)
        return run_upkeep(pipeline, require_format(locate_tables(pipeline.name)))

    return run_reported(work)


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
