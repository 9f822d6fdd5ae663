"""What may happen in a life: each operation is a value, made from a seed, and does the same wherever it stands."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from tests.lives.world import World


class Operation:
    """One thing that happens; ``weight`` is how often it is drawn, ``switch`` what must be on for it.

    What is ``harmless`` touches no table.
    """

    weight: ClassVar[int] = 1
    switch: ClassVar[str] = ""
    harmless: ClassVar[bool] = False

    @classmethod
    def draw(cls, chance: Random) -> Operation:
        """Draw one of this kind."""
        return cls()

    def run(self, world: World) -> None:
        """Let it happen."""
        raise NotImplementedError
