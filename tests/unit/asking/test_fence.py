"""What an asker does first: it ends the writing of all others, and only then looks at what they have written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.unit.asking.payments import row
from tests.unit.asking.test_asker import Life

from seamline.asking.positions import Position


def test_the_topic_is_read_when_nobody_else_can_write(tmp_path: Path) -> None:
    """The last record of an older process lands just before it is fenced off."""
    life = Life(tmp_path, Position(3))
    life.hold(2)

    def fence() -> Any:
        life.master.tail = frozenset([row(0).place])
        return life.topic

    async def story() -> None:
        living = asyncio.create_task(life.asker.run(fence))
        await life.written(1)
        life.driver.over.set()
        await living

    asyncio.run(story())
    assert life.topic.offsets == [1]
