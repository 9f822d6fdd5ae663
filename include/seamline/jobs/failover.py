"""Fail a stream over as it was asked for in Airflow: ``python -m seamline.jobs.failover --pipeline NAME --order JSON``.

It reads no topic and starts no Spark.
"""

from __future__ import annotations

import argparse
import os
import sys

from seamline.lake.storage.layout import definitions_folder, locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.compile.catalog import load_pipeline
from seamline.runtime.process_exit import exit_process, run_reported
from seamline.supervisor.clusters.failing_over import carry_out_failover
from seamline.supervisor.clusters.failover_orders import FailoverOrder


def main(argv: list[str]) -> int:
    """Carry out one order; the exit code says what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m seamline.jobs.failover", description=__doc__)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--order", required=True, type=FailoverOrder.from_json)
    asked = parser.parse_args(argv)

    def work() -> str:
        pipeline = load_pipeline(definitions_folder(), asked.pipeline)
        layout = require_format(locate_tables(pipeline.name))
        return "\n".join(carry_out_failover(asked.order, pipeline, layout, os.environ))

    return run_reported(work)


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
