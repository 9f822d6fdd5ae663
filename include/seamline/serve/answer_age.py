"""How old an answer may be, where to ask for what is new is a request to a store."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from seamline.lake.storage.kept.table_following import FOLLOWER
from seamline.lake.storage.kept.table_reading import Reading, read_side_by_side
from seamline.lake.store.seconds_setting import read_seconds_setting
from seamline.model.errors import BadRange

SETTING = "SEAMLINE_STORE_MAX_AGE"


@contextmanager
def read_within_age(question: Hashable, max_age: float | None = None) -> Iterator[Reading]:
    """Have the block see what had been committed ``max_age`` seconds ago, or later; None is what the setting says.

    Where that is not 0, a thread follows the tables that were read, so that the next time nobody has to ask for them.
    """
    allowed = read_seconds_setting(os.environ, SETTING, 0.0) if max_age is None else max_age
    if not 0 <= allowed < math.inf:
        raise BadRange(f"max_age={allowed} is no age in seconds.", hint="pass 0 or more, as max_age=1.0.")
    with read_side_by_side(question, max_age=allowed) as reading:
        yield reading
    if allowed:
        FOLLOWER.follow(reading.held, allowed / 2)
