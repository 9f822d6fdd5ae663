"""Whether a failure is a disk that is full."""

from __future__ import annotations

from seamline.model.errors import DiskFull


def disk_full(error: BaseException) -> DiskFull | None:
    """Return the error that a full disk is, whichever engine met it, in its own words; None for any other."""
    for said in str(error).splitlines():
        if "No space left on device" in said or "os error 28" in said:
            hint = "free some space, then run it again: partly written data is never read."
            return DiskFull(f"The disk is full: {said.strip()[:300]}", hint=hint)
    return None
