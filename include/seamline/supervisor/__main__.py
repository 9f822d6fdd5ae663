"""``python -m seamline.supervisor PIPELINE``: what ``start_detached`` starts; ``_driver`` is the resident driver."""

from __future__ import annotations

import sys

from seamline.lake.storage.layout import locate_tables
from seamline.lake.tables.table_format import require_format
from seamline.model.errors import SeamlineError
from seamline.runtime.process_exit import exit_process
from seamline.runtime.storage_failures import explain_storage_failure
from seamline.supervisor import resident
from seamline.supervisor.driver_watch import make_watch_factory
from seamline.supervisor.process import supervise
from seamline.supervisor.stream_logs import print_with_time


def main(pipeline: str) -> int:
    """Supervise; return the exit code."""
    try:
        layout = locate_tables(pipeline)
        if pipeline == resident.NAME:
            return supervise(pipeline, layout, command=resident.make_driver_command)
        return supervise(pipeline, require_format(layout), watching=make_watch_factory(pipeline, layout))
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else explain_storage_failure(error)
        if ours is None:
            raise
        print_with_time(str(ours))
        return ours.exit_code


if __name__ == "__main__":
    exit_process(main(sys.argv[1]))
