"""Run a pipeline's stream: ``python -m seamline.jobs.stream --pipeline NAME --token N``. Started by the supervisor."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from seamline.lake.storage.layout import definitions_folder, home_folder, locate_tables
from seamline.lineage.configuration import is_configured
from seamline.model.compile.catalog import load_pipeline
from seamline.model.compile.processes.lawfulness import require_all_lawful
from seamline.model.errors import SeamlineError
from seamline.model.protocol.job_arguments import StreamJob
from seamline.runtime.process_exit import exit_process
from seamline.runtime.stop_signals import set_when_asked
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.spark.session.session import halved_driver_settings, start_spark_in_thread
from seamline.tracing.process_traces import flush_traces, trace_epochs

if TYPE_CHECKING:
    from seamline.spark.stream.driver_loop import Driver


def main(argv: list[str]) -> int:
    """Run the job that the arguments describe; give the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("seamline.stream").setLevel(logging.INFO)
    job = StreamJob.parse(argv)
    try:
        pipeline = load_pipeline(definitions_folder(), job.pipeline)
        require_all_lawful(pipeline)
        stream, layout = pipeline.definition.stream, locate_tables(job.pipeline)
        # The JVM starts while we import, and look at Kafka and the log: most of a start is waiting for it.
        spark = start_spark_in_thread(
            f"seamline stream {job.pipeline}",
            cores=stream.master,
            memory=stream.memory,
            warehouse=str(layout.warehouse),
            more=halved_driver_settings(home_folder() / "streams" / job.pipeline / "attempt.json"),
        )
        from seamline.lake.tables.table_format import require_format
        from seamline.spark.stream.driver_loop import Driver
        from seamline.spark.stream.imports.import_run import ImportRun
        from seamline.spark.stream.registries import require_registry_connections

        require_registry_connections(pipeline)
        driver = (ImportRun if job.imports else Driver)(
            pipeline, require_format(layout), job.token, home_folder()
        )
        set_when_asked(driver.stopping)
        driver.start(spark.result())
        driver.writer.timing.told = trace_epochs(job.pipeline)
        with report_lineage(driver):
            driver.run()
        driver.spark.stop()
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            raise
        print(ours, file=sys.stderr, flush=True)
        return ours.exit_code
    finally:
        flush_traces()
    return 0


def report_lineage(driver: Driver) -> AbstractContextManager[None]:
    """Return what tells the lineage of a stream while it runs; nothing where no server is configured, or of imports."""
    if driver.alone or not is_configured():
        return nullcontext()
    from seamline.spark.stream.lineage import driver_lineage

    return driver_lineage.report_lineage(driver)


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
