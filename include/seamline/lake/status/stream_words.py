"""What a stream's supervisor and driver last said: files of their machine, and in a bucket an object for all others.

The supervisor puts both into the bucket, at its own pace: no epoch waits for that, nor does the lease. A store that is
away leaves others with older words, and the lease says whether the stream lives.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from seamline.lake.status.status_files import read_json_file
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.store.shared_objects import Row, SharedObject, find_shared_object
from seamline.runtime.processes import Life, life_of

STREAM = "stream"
SUPERVISOR, DRIVER = "supervisor", "driver"
EVERY = 5.0
"""Seconds between two puts: half a million a month."""


def read_words_here(layout: Layout) -> Row | None:
    """Return what supervisor and driver have said on this machine; None if no supervisor did, or its file is broken."""
    folder = home_folder() / "streams" / layout.pipeline
    said = read_row(folder / f"{SUPERVISOR}.json")
    if said is None or not isinstance(said.get("token"), int):
        return None
    return {"token": said["token"], SUPERVISOR: said, DRIVER: read_row(folder / f"{DRIVER}.json")}


def read_row(file: Path) -> Row | None:
    """Read a file that a process has left; None if there is none, or it is broken."""
    try:
        found = read_json_file(file)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def read_words_elsewhere(layout: Layout) -> Row | None:
    """Return what another machine has put into the bucket since anybody had the lease here; None on disk.

    A store that does not answer is an OSError, unless the stream's supervisor is seen to live here.
    """
    if (shared := find_shared_object(layout.status(STREAM))) is None:
        return None
    here = read_words_here(layout)
    try:
        found, _ = shared.read()
    except OSError:
        if here and life_of(here[SUPERVISOR].get("supervisor", {}).get("name", "")) is Life.ALIVE:
            return None
        raise
    return found if is_newer(found, here) else None


def is_newer(found: Row | None, than: Row | None) -> bool:
    """Return whether words are of a later holder of the lease than others; what is no words is not."""
    if found is None or not isinstance(found.get("token"), int):
        return False
    return than is None or int(found["token"]) > int(than["token"])


class Publisher:
    """Puts what is said here into the bucket every few seconds, in a thread of its own; on disk it does nothing."""

    def __init__(self, layout: Layout, *, every: float = EVERY, say: Callable[[str], object] = print) -> None:
        self.layout, self.every, self.say = layout, every, say
        self.shared = find_shared_object(layout.status(STREAM))
        self.tag, self.trouble = "", ""
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, name="publisher", daemon=True)
        if self.shared:
            self.thread.start()

    def run(self) -> None:
        """Publish until it is over, and then once more."""
        while not self.over.wait(self.every):
            self.try_publish()
        self.try_publish()

    def try_publish(self) -> None:
        """Publish; what goes wrong is said once, and tried again at the next turn."""
        try:
            if self.shared:
                self.publish(self.shared)
            self.trouble = ""
        except Exception as error:  # noqa: BLE001 - no stream ends because others cannot see it
            if not self.trouble:
                self.say(f"other machines do not hear of it: {type(error).__name__}: {error}")
            self.trouble = str(error)

    def publish(self, shared: SharedObject) -> None:
        """Put what is said here in place of what is there, unless a later holder of the lease has said that."""
        if (here := read_words_here(self.layout)) is None:
            return
        for _ in range(2):
            if not self.tag:
                found, self.tag = shared.read()
                if is_newer(found, here):
                    self.tag = ""
                    return
            # Forgotten until it is answered: what became of a put that fails is read.
            tag, self.tag = self.tag, ""
            if put := shared.replace(here, tag):
                self.tag = put
                return

    def close(self, *, within: float = 5.0) -> None:
        """Publish the last words, which are not waited for longer than ``within`` seconds."""
        self.over.set()
        if self.shared:
            self.thread.join(within)
