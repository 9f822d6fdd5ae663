"""Somebody who asks all the time, while things go wrong."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType

from tests.faults.rig.oracle import Sample

from seamline.lake.store.locations import Location
from seamline.model.errors import NotFound, SeamlineError
from seamline.serve.read import read


class Reader:
    """Asks for a view again and again in a thread; keeps one answer of each epoch, and every step back."""

    def __init__(self, view: str, warehouse: Location, definitions: Path, *, every: float = 0.3) -> None:
        self.view, self.warehouse, self.definitions, self.every = view, warehouse, definitions, every
        self.samples: list[Sample] = []
        self.asked = 0
        self.refused: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self.last = time.monotonic()
        self.halt = threading.Event()
        self.thread = threading.Thread(target=self.run, name="reader", daemon=True)

    def __enter__(self) -> Reader:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.halt.set()
        self.thread.join(60)
        if error is None and self.failure:
            raise self.failure

    def run(self) -> None:
        """Ask until told to stop, or until an answer cannot be had for a reason that is none."""
        try:
            while not self.halt.wait(self.every):
                self.ask()
        except BaseException as failure:  # noqa: BLE001 - it is the test's, which raises it
            self.failure = failure

    def ask(self) -> Sample | None:
        """Ask once; before the stream's first epoch there is nothing to find."""
        self.asked += 1
        try:
            found = read(self.view, warehouse=self.warehouse, definitions=self.definitions, format="answer")
        except NotFound:
            if self.samples:
                raise
            self.refused["not found"] += 1
            return None
        except SeamlineError as error:
            self.refused[type(error).__name__] += 1
            return None
        sample = Sample.of(found.complete_to, found.table)
        if not self.samples or sample != self.samples[-1]:
            self.samples.append(sample)
            self.last = time.monotonic()
        return sample
