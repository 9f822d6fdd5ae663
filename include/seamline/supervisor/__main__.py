"""``python -m seamline.supervisor PIPELINE``: what ``start_detached`` starts."""

from __future__ import annotations

import sys

from seamline.lake.format import require_format
from seamline.lake.layout import Layout, warehouse
from seamline.model.errors import SeamlineError
from seamline.supervisor.process import say, supervise


def main(pipeline: str) -> int:
    """Supervise; give the exit code."""
    try:
        return supervise(pipeline, require_format(Layout(warehouse(), pipeline)))
    except SeamlineError as error:
        say(str(error))
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
