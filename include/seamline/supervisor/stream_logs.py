"""The output of a stream's processes, across the files that it was rotated into."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from seamline.supervisor.driver_process import LOGS_KEPT

BLOCK = 65536


def files_of(log: Path) -> list[Path]:
    """List a log and what it was rotated into, newest first."""
    older = [log.with_name(f"{log.name}.{number}") for number in range(1, LOGS_KEPT + 1)]
    return [each for each in (log, *older) if each.exists()]


def last_lines(log: Path, count: int) -> list[str] | None:
    """Read the last lines, oldest first, from as many files as needed; None if there is no log."""
    if not (files := files_of(log)):
        return None
    lines: list[str] = []
    for file in files:
        if len(lines) >= count:
            break
        lines = [*tail_of(file, count - len(lines)), *lines]
    return lines


def tail_of(file: Path, count: int) -> list[str]:
    """Return the last lines of a file, which is read from its end."""
    data = b""
    with file.open("rb") as log:
        at = log.seek(0, 2)
        while at > 0 and data.count(b"\n") <= count:
            start = max(at - BLOCK, 0)
            log.seek(start)
            data = log.read(at - start) + data
            at = start
    return data.decode(errors="replace").splitlines()[-count:] if count else []


def follow_log(log: Path, *, wait: Callable[[], object] = lambda: time.sleep(0.2)) -> Iterator[str]:
    """Follow what is added to a log from now on, also in the file that follows when it is rotated."""
    file = log.open("rb")
    file.seek(0, 2)
    try:
        while True:
            if text := file.read():
                yield text.decode(errors="replace")
            elif is_log_replaced(log, file):
                # What was written before the move was read above; the new file is read from its start.
                if text := file.read():
                    yield text.decode(errors="replace")
                file.close()
                file = log.open("rb")
            else:
                wait()
    finally:
        file.close()


def is_log_replaced(log: Path, file: BinaryIO) -> bool:
    """Return whether a log is another file by now, or was emptied."""
    try:
        now, then = log.stat(), os.fstat(file.fileno())
    except FileNotFoundError:
        return False
    return (now.st_ino, now.st_dev) != (then.st_ino, then.st_dev) or now.st_size < file.tell()


def print_with_time(text: str) -> None:
    """Write a line with its time to our own output."""
    print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {text}", flush=True)
