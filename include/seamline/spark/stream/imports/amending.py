"""What an epoch reads that is no micro-batch of Kafka's records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from seamline.kernel.kernel_config import Read
from seamline.model.errors import SeamlineError
from seamline.model.protocol.epoch import EpochKind


@dataclass(frozen=True)
class Amending:
    """What an epoch reads that is no micro-batch of Kafka's records, and how."""

    kind: EpochKind
    """AMEND for offsets of a hole, IMPORT for rows of files, READ for those of a table that is a source."""
    topic_ids: Mapping[str, str]
    """The ids of the lanes of what is read, by the name of the topic as whose records it is validated."""
    until: datetime | None = None
    """Rows of this event time (UTC) and later are left out; None for no bound."""
    read: Read | None = None
    """What makes raw records of what the frame has; None where it has them."""
    find_fault: Callable[[Exception], SeamlineError | None] = lambda _: None
    """Finds what is wrong with where they come from, if that is what a task failed with."""
