"""What may go wrong with a target, beside what its definition cannot have known."""

from __future__ import annotations

from seamline.model.errors import SeamlineError


class TargetUnavailable(SeamlineError):
    """The system that a sink writes to does not answer, or cannot do it now; the sink tries again, nothing is lost."""

    exit_code = 53
