"""Records that cannot be validated, found among others by halving (rule 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from seamline.kernel.raw import reject_all_rows
from seamline.lake.storage.arrow_types import INSTANT
from seamline.model.errors import NotFound, StoreRefused, StoreUnavailable
from seamline.runtime.storage_failures import store_failed

UNREADABLE = "kernel error"
"""The reason of records that cannot be validated."""
Judge = Callable[[pa.Table], tuple[pa.Table, pa.Table]]
"""Parts raw records with their coordinates into rows and refusals."""


def validate_by_halves(raw: pa.Table, judge: Judge) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Validate records; where that fails, each half alone, down to the record that cannot be validated (rule 17).

    Raises NotFound, StoreRefused and StoreUnavailable: what a judge reads beside the records says nothing of them.
    """
    try:
        yield judge(raw)
    except (NotFound, StoreRefused, StoreUnavailable):
        raise
    except Exception as error:
        if failed := store_failed(error):
            raise failed from error
        if raw.num_rows > 1:
            half = raw.num_rows // 2
            yield from validate_by_halves(raw.slice(0, half), judge)
            yield from validate_by_halves(raw.slice(half), judge)
        else:
            yield reject_unreadable(raw, f"{type(error).__name__}: {error}"[:500])


def reject_unreadable(raw: pa.Table, why: str) -> tuple[pa.Table, pa.Table]:
    """Refuse records for what the kernel cannot bear."""
    none = raw.slice(0, 0).append_column("_event_time", pa.array([], INSTANT))
    return none, reject_all_rows(raw, UNREADABLE, why)
