"""A query of steps, each of which adds columns to all that is there before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class QueryStep(NamedTuple):
    """What is added to a relation."""

    added: str = ""
    """A select list; it may be empty."""
    beside: str = ""
    """A join; it may be empty."""
    named: str = ""
    """What the relation is called then, by steps that read it a second time; empty if none does."""


def chain_steps_sql(steps: Iterable[QueryStep], relation: str, columns: Iterable[str], verdict: str) -> str:
    """Chain steps, each over all that is there before it, and choose columns of the last."""
    before, links = relation, list[str]()
    for at, step in enumerate(steps, 1):
        named = step.named or f"step{at}"
        kept = "MATERIALIZED " if step.named else ""
        links.append(
            f"{named} AS {kept}(SELECT *{step.added and f', {step.added}'} FROM {before} {step.beside})"
        )
        before = named
    return f"WITH {', '.join(links)} SELECT {', '.join([*columns, verdict])} FROM {before}"
