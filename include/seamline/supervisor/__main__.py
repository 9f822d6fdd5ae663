"""``python -m seamline.supervisor PIPELINE``: what ``start_detached`` starts; ``_driver`` is the resident driver."""

from __future__ import annotations

import sys

from seamline.lake.storage.layout import Layout, warehouse
from seamline.lake.tables.table_format import require_format
from seamline.model.errors import SeamlineError
from seamline.runtime.disk import disk_full
from seamline.runtime.process_exit import end
from seamline.supervisor import resident
from seamline.supervisor.driver_watch import watching
from seamline.supervisor.process import supervise
from seamline.supervisor.stream_logs import say


def main(pipeline: str) -> int:
    """Supervise; give the exit code."""
    try:
        layout = Layout(warehouse(), pipeline)
        if pipeline == resident.NAME:
            return supervise(pipeline, layout, command=resident.command)
        return supervise(pipeline, require_format(layout), watching=watching(pipeline, layout))
    except Exception as error:
        ours = error if isinstance(error, SeamlineError) else disk_full(error)
        if ours is None:
            raise
        say(str(ours))
        return ours.exit_code


if __name__ == "__main__":
    end(main(sys.argv[1]))
