"""Note in a file which functions of ours a process calls below some, for benchmarks.hot_paths: Python imports it first.

A line is the time, the function below which it was called, the module and the function; each is written once a second
at most, so that what only happens at a start can be left out.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

OURS = f"{os.sep}include{os.sep}seamline{os.sep}"
FOLDER = os.environ["SEAMLINE_TRACE"]
ENTRIES = dict(each.split(":") for each in os.environ["SEAMLINE_TRACED"].split(","))
"""The functions below which is traced, as ``module`` (a path below the package) to the function's name."""

state = threading.local()
written: dict[tuple[str, str, str], int] = {}


def note(frame: FrameType, event: str, _: Any) -> None:
    """Note a call below an entry; Python calls it for every call and return of a thread."""
    code = frame.f_code
    if OURS not in code.co_filename or code.co_name.startswith("<"):
        return
    module = code.co_filename.split(OURS)[1]
    entry = ENTRIES.get(module) == code.co_name
    if event == "call":
        if entry and not getattr(state, "entry", ""):
            state.entry, state.frame = code.co_name, frame
        if below := getattr(state, "entry", ""):
            key, second = (below, module, code.co_name), int(time.time())
            if written.get(key) != second:
                written[key] = second
                with Path(FOLDER, str(os.getpid())).open("a") as out:
                    out.write(f"{second}\t{below}\t{module}\t{code.co_name}\n")
    elif event == "return" and getattr(state, "frame", None) is frame:
        state.entry = ""


sys.setprofile(note)
threading.setprofile(note)
