"""What Airflow shows of a DAG: its text, its name, its schedule spelled."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta

from seamline.model.definition.pipeline import Pipeline
from seamline.model.errors import DefinitionError
from seamline.plan.wording.source_text import describe_source


def name_of(stem: str) -> str:
    """Return a file's name as a DAG may bear it: one that must be another ends with a part of its hash."""
    name = re.sub(r"[^\w.-]", "_", stem)[:200]
    return name if name == stem else f"{name}-{hashlib.sha256(stem.encode()).hexdigest()[:6]}"


def format_cron(length: timedelta) -> str:
    """Write an interval's length as cron: daily, hourly, or every n hours or minutes."""
    minutes = int(length.total_seconds() // 60)
    if length == timedelta(days=1):
        return "0 0 * * *"
    if timedelta(hours=1) <= length < timedelta(days=1) and minutes % 60 == 0:
        return "0 * * * *" if minutes == 60 else f"0 */{minutes // 60} * * *"
    if length < timedelta(hours=1) and minutes and length == timedelta(minutes=minutes) and 60 % minutes == 0:
        return f"*/{minutes} * * * *"
    raise DefinitionError(
        f"An interval of {length} cannot be a schedule.",
        hint='use "1 hour", "6 hours" or "1 day".',
        field="batch",
    )


def format_dag_doc(pipeline: Pipeline, layer: str) -> str:
    """Write a DAG's page from the definition."""
    about = {
        "batch": "Plans, builds, certifies and publishes intervals. A scheduled run takes its interval and the "
        "dirty ones; a backfill exactly its own; a trigger takes the form's span, or the dirty intervals.",
        "stream": "Starts the stream's supervisor where none lives. A trigger takes the form's action: start, stop, "
        "pause, restart, savepoint or restore. Pausing this DAG stops the reconciling, "
        f"never the stream; `seamline stream stop {pipeline.name}` stops the stream.",
        "upkeep": "Compacts and cleans up. Never touches what a reader may still need.",
        "audit": "Compares what Kafka has, what was read, what the log contains and what each view makes of it. Fails "
        "where they do not agree, unless the form says not to; changes nothing.",
        "import": "Imports rows of files into the log, each once, through the same validation as records of the "
        "topic: the form says which. A stream that runs does it between its epochs, else the task.",
    }[layer]
    views = "\n".join(f"- `{pipeline.name}.{view.name}`" for view in pipeline.views)
    sources = "".join(f"- `{each.name}`: {describe_source(each)}\n" for each in pipeline.sources if each.name)
    views += f"\n\nSources:\n\n{sources}" if sources else "\n"
    return (
        f"{pipeline.description}\n\n{about}\n\nOwner: {pipeline.owner}. "
        f"{describe_origins(pipeline)}; "
        f"intervals of {pipeline.batch.interval} from {pipeline.batch.start} (UTC). Views:\n\n{views}"
    )


def describe_origins(pipeline: Pipeline) -> str:
    """Say which topics and tables a pipeline reads, in Markdown."""
    said = []
    if topics := pipeline.kafka_topics:
        names = "`, `".join(topics)
        said.append(f"Topic{'s' * (len(topics) > 1)} `{names}` through connection `{pipeline.connection}`")
    if tables := pipeline.tables:
        names = "`, `".join(each.table for each in tables)
        said.append(f"Delta table{'s' * (len(tables) > 1)} `{names}`")
    return "; ".join(said)
