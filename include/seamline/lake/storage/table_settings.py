"""The settings that our tables are made with, and for how long their logs keep entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

CHECKPOINT_EVERY = "delta.checkpointInterval"
RETENTION = "delta.logRetentionDuration"
OTHERS_CLEAN = "delta.enableExpiredLogCleanup"
SETTINGS = {CHECKPOINT_EVERY: "50", "delta.dataSkippingNumIndexedCols": "-1", OTHERS_CLEAN: "false"}
"""Statistics of every column: by itself Delta has those of the first 32, and readers prune by the last ones.

Other writers would clean a log after a checkpoint that is not on disk yet, and list all of it for that.
"""
HOUR, DAY = "interval 1 hours", "interval 1 days"
KEPT = {
    "control": HOUR,
    "claims": HOUR,
    "ledger": HOUR,
    "master": DAY,
    "quarantine": DAY,
    "slices": DAY,
    "serving": DAY,
}
"""By the name of a table's folder; the others get an entry a run and keep Delta's own.

Opening a table lists what its log keeps, and a stream adds an entry a second. Nobody reads a ledger of an hour ago:
what was answered then is known by numbers of epochs, which are rows. A master's entries repair a short ledger, and
Spark opens a master at the version that a job has begun with.
"""
BY_ITSELF = timedelta(days=30)
"""For how long a log keeps its entries, unless the table says otherwise."""
SPAN = re.compile(r"\s*interval\s+(\d+)\s+(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


def settings_of(name: str) -> dict[str, str]:
    """Return the settings of a table by the name of its folder."""
    return {**SETTINGS, **({RETENTION: KEPT[name]} if name in KEPT else {})}


def parse_log_retention(settings: Mapping[str, str | None]) -> timedelta:
    """Parse how long a log is kept; Delta's default if that cannot be read."""
    found = SPAN.fullmatch(settings.get(RETENTION) or "")
    return timedelta(**{f"{found[2].lower()}s": int(found[1])}) if found else BY_ITSELF
