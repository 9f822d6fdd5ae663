"""Answers of functions that a definition names: one that is declared with ``async`` has done nothing yet."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any


def await_answer(answer: Any) -> Any:
    """Await what a function has returned, if that can be awaited, by a loop of this thread's own."""
    return asyncio.run(as_coroutine(answer)) if inspect.isawaitable(answer) else answer


async def as_coroutine(answer: Any) -> Any:
    """Await something; a loop runs coroutines only."""
    return await answer
