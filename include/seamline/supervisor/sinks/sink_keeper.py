"""Keeps the process of a pipeline's sinks up, beside the stream and never in its way."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from seamline.lake.storage.layout import Layout, home_folder
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.compile.stored_definition import to_json
from seamline.runtime.processes import own_process_name
from seamline.supervisor.driver_process import Driver, rotate_in_use
from seamline.supervisor.supervisor_heartbeat import ensure_stream_folder

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds until a process that has ended is started again: twice as long each time."""
SETTLED = 120.0
"""Seconds after which a process that ends has not failed at once."""
Commanding = Callable[[str], Sequence[str]]


def make_sinks_command(pipeline: str) -> list[str]:
    """Return the command of the process of a pipeline's sinks, which ends with this one."""
    return [sys.executable, "-P", "-m", "seamline.sinks", pipeline, own_process_name()]


class SinkKeeper:
    """Starts the process where the definition has sinks, and again when it has ended or the definition has changed."""

    def __init__(
        self, layout: Layout, say: Callable[[str], object], *, command: Commanding = make_sinks_command
    ) -> None:
        self.layout, self.say, self.command = layout, say, command
        self.process: Driver | None = None
        self.definition = ""
        self.pause, self.not_before = FIRST_PAUSE, 0.0

    def keep(self, compiled: CompiledPipeline) -> None:
        """Start, restart or stop the process, as the definition and its end demand; it waits for nothing."""
        wanted = to_json(compiled.definition) if compiled.definition.sinks else ""
        if self.process is not None and wanted != self.definition:
            self.end(within=1.0)
            self.pause, self.not_before = FIRST_PAUSE, 0.0
        if self.process is not None and self.process.exit_code is not None:
            self.note_end(self.process)
        if self.process is not None:
            rotate_in_use(self.process.log)
        elif wanted and time.monotonic() >= self.not_before:
            log = ensure_stream_folder(home_folder(), self.layout.pipeline) / "sinks.log"
            self.process = Driver(self.command(self.layout.pipeline), log, os.environ)
            self.definition = wanted

    def note_end(self, process: Driver) -> None:
        """Say that the process has ended, and wait longer each time before the next."""
        self.say(f"the process of the sinks ended with exit code {process.exit_code}: see {process.log.name}")
        self.pause = FIRST_PAUSE if process.age > SETTLED else min(2 * self.pause, LONGEST_PAUSE)
        self.not_before = time.monotonic() + self.pause
        process.kill()
        self.process = None

    def end(self, *, within: float) -> None:
        """Let the process send what is served by now, for so many seconds, and end it."""
        if self.process is not None:
            self.process.stop(within)
            self.process = None
