"""Live many lives, up to the first that goes wrong."""

from __future__ import annotations

import math
import time
from collections.abc import Collection

import pytest
from tests.lives import lives
from tests.lives.lives import Tally
from tests.lives.switches import ON


def live(seeds: Collection[int], *, seconds: float = math.inf, on: Collection[str] = ON) -> Tally:
    """Live lives while there is time; fail with the first that goes wrong, shrunk, and how to live it again."""
    tally, until = Tally(), time.monotonic() + seconds
    for seed in seeds:
        if tally.lives and time.monotonic() > until:
            break
        life = lives.drawn(seed, on)
        failure = lives.lived(life)
        tally.add(life)
        if failure:
            pytest.fail(lives.told(*lives.shrunk(life, failure, until=time.monotonic() + 60)), pytrace=False)
    return tally
