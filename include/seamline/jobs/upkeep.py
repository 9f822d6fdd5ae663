"""Compact and clean the tables of a pipeline: ``python -m seamline.jobs.upkeep --pipeline NAME``. It needs no Spark."""

from __future__ import annotations

import argparse
import sys

from seamline.lake.storage.layout import definitions_folder, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.compile.catalog import load_pipeline
from seamline.model.errors import SeamlineError
from seamline.runtime.process_exit import exit_process
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.supervisor.requested_upkeep import run_upkeep


def main(argv: list[str]) -> int:
    """Run the upkeep of one pipeline; the exit code says what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m seamline.jobs.upkeep", description=__doc__)
    parser.add_argument("--pipeline", required=True)
    name = parser.parse_args(argv).pipeline
    try:
        pipeline = load_pipeline(definitions_folder(), name)
        print(run_upkeep(pipeline, require_format(locate_tables(pipeline.name))))
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            raise
        print(ours, file=sys.stderr)
        return ours.exit_code
    return 0


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
