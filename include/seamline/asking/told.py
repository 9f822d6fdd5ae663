"""What the driver says to a process that asks: lines of JSON, the newest of which counts."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import IO

from seamline.model.protocol.seam import NOTHING


@dataclass(frozen=True)
class Word:
    """Where the stream stands."""

    epoch: int = NOTHING
    """E, the last committed epoch."""
    decisions: int = 0
    """How many decisions to ask again there are, of all questions."""

    def to_line(self) -> bytes:
        """Write it as the driver says it."""
        return json.dumps(vars(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Word:
        """Read what ``to_line`` wrote."""
        return cls(**json.loads(line))


class Listener:
    """Hears the driver in a thread of its own; the driver has gone, or wants no more, where its line ends."""

    def __init__(self, line: IO[bytes], first: Word) -> None:
        self.word, self.over = first, threading.Event()
        threading.Thread(target=self.listen, args=[line], name="driver", daemon=True).start()

    def listen(self, line: IO[bytes]) -> None:
        """Listen until there is nothing more to hear."""
        for said in line:
            if said.endswith(b"\n"):
                self.word = Word.from_line(said)
        self.over.set()
