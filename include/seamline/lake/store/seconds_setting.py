"""Settings of a store that are seconds, from the environment."""

from __future__ import annotations

import math
from collections.abc import Mapping

from seamline.model.errors import SetupError


def read_seconds_setting(environ: Mapping[str, str], name: str, default: float) -> float:
    """Read a number of seconds, the default where it is not set; SetupError for what is no such number."""
    text = environ.get(name) or str(default)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise SetupError(
            f"{name} is {text!r}.", hint=f"set it to a number of seconds, as {default:g} or 0.5."
        )
    return seconds
