"""Upkeep as it is asked for, by a command, a task or a job: the tables first, then a look at the topic."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from seamline.lake.maintain.upkeep import maintain_tables
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.supervisor.counts.taking import describe_taking
from seamline.supervisor.sources.ageing_gaps import note_ageing_gaps


def run_upkeep(compiled: CompiledPipeline, layout: Layout, *, env: Mapping[str, str] = os.environ) -> str:
    """Take producers' statements, do all upkeep, and say in lines what was done and what Kafka may delete unread.

    ``env`` has the connection; that no broker answers is said, and harms nothing.
    """
    taken = describe_taking(compiled, layout, env=env)
    done = maintain_tables(compiled, layout)
    return "\n".join([*taken, str(done), *note_ageing_gaps(compiled, layout, now=datetime.now(UTC), env=env)])
