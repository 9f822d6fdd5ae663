"""Build and certify the intervals of one batch run: by spark-submit, or as a client of SPARK_REMOTE."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from seamline.lake.storage.layout import Layout, definitions_folder, locate_tables
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import SeamlineError, SetupError
from seamline.model.protocol.job_arguments import BuildJob
from seamline.runtime.error_report import write_error_report
from seamline.runtime.process_exit import exit_process
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.spark.session.session import (
    close_connect_session,
    format_session_summary,
    open_spark_session,
    start_spark_in_thread,
)
from seamline.supervisor.prespawned import fingerprint_code, serve_one_build
from seamline.supervisor.resident import READY, read_resident_port
from seamline.tracing.process_traces import flush_traces, traced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORK = (
    "lake.tables.table_format",
    "quality.certify",
    "quality.run_comparing",
    "spark.build.build",
)
"""The modules that ``run`` imports, while Spark starts: both take a second and more."""


def main(argv: list[str]) -> int:
    """Run the job that the arguments describe; the exit code says what went wrong."""
    job = BuildJob.parse(argv)
    try:
        pipeline = load_pipeline(definitions_folder(), job.pipeline)
        layout = locate_tables(pipeline.name)
        starting = start_spark_in_thread(
            f"seamline build {job.pipeline} {job.run}", warehouse=str(layout.warehouse)
        )
        with traced("build", pipeline=job.pipeline, run=job.run, cut=job.cut):
            run(job, pipeline, layout, starting)
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            raise
        print(f"Error: {ours}", file=sys.stderr)
        with suppress(SetupError):
            write_error_report(locate_tables(job.pipeline).failure(job.run), ours)
        return ours.exit_code
    finally:
        flush_traces()
    return 0


def run(job: BuildJob, pipeline: CompiledPipeline, layout: Layout, starting: Future[SparkSession]) -> None:
    """Build, certify and compare, and tell what came of it."""
    from seamline.lake.tables.table_format import require_format
    from seamline.quality.certify import certify_run
    from seamline.quality.run_comparing import compare_and_report
    from seamline.quality.suites import import_in_background
    from seamline.spark.build.build import build_intervals

    require_format(layout)
    import_in_background(pipeline)
    with traced("build.session"):
        spark = starting.result()
    print(format_session_summary(spark), flush=True)
    try:
        with traced("build.intervals", intervals=len(job.spans)):
            rows = build_intervals(spark, pipeline, layout, job)
    finally:
        close_connect_session(spark)
    with traced("build.certify"):
        certificates = certify_run(pipeline, layout, job.run, actor=job.actor)
    with traced("build.compare"):
        print(*compare_and_report(pipeline, layout, job.run), sep="\n")
    read = sum({row.interval: row.rows_read for row in rows}.values())
    print(f"{len(rows)} generations of {pipeline.name} at cut {job.cut}: {read} rows read.")
    print(f"{sum(each.good for each in certificates)} of {len(certificates)} certificates are green.")


def ready() -> int:
    """Get ready for a build, and wait for one: as the process that a resident driver keeps ready."""
    code = fingerprint_code()
    for name in WORK:
        import_module(f"seamline.{name}")
    spark = open_spark_session("seamline build")
    return serve_one_build(
        read_resident_port(), main, code, look=lambda: spark.conf.get("spark.sql.session.timeZone")
    )


if __name__ == "__main__":
    exit_process(ready() if sys.argv[1:] == [READY] else main(sys.argv[1:]))
