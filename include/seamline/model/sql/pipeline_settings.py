"""``CREATE PIPELINE``: the settings of a pipeline, and of its two layers."""

from __future__ import annotations

from typing import Any

from seamline.model.definition.layers import Batch, Stream
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.restarts import RESTARTS, RestartPolicy
from seamline.model.sql.options import Options, list_settings, refuse_options, take_settings
from seamline.model.sql.reader import Reader
from seamline.model.sql.tokens import SqlToken

PIPELINE = (
    "write CREATE PIPELINE name WITH (batch.interval = '1 day', batch.start = '2026-01-01', "
    "defaults = '2026-11');"
)
STEPS = ("rules", "select", "where", "side")
"""What a source says of its records, and of an only source the pipeline."""
RESTART = "stream.restart"


def take_pipeline_settings(reader: Reader, name: str, token: SqlToken, options: Options) -> dict[str, Any]:
    """Take the settings of the pipeline and of its layers."""
    batch = take_settings(reader, Batch, options, before="batch.")
    for each in ("interval", "start"):
        if each not in batch:
            reader.fail(f"batch.{each} is missing.", PIPELINE, token)
    restart = take_restart(reader, options)
    stream = take_settings(reader, Stream, options, before="stream.") | restart
    settings = take_settings(reader, Pipeline, options, besides=("name", *STEPS))
    known = [
        *list_settings(Pipeline),
        *(f"batch.{each}" for each in list_settings(Batch)),
        *(f"stream.{each}" for each in list_settings(Stream)),
        RESTART,
    ]
    steps = dict.fromkeys(STEPS, "it belongs to CREATE SOURCE.")
    refuse_options(reader, options, {*known} - {"name", *STEPS}, steps)
    made = {"name": name, "batch": Batch(**batch), **settings}
    return made | ({"stream": Stream(**stream)} if stream else {})


def take_restart(reader: Reader, options: Options) -> dict[str, Any]:
    """Take the restart policy: ``stream.restart = 'FixedDelay', stream.restart.delay = '10 seconds'``."""
    if RESTART not in options:
        return {}
    option = options.pop(RESTART)
    policies: dict[str, type[RestartPolicy]] = {each.__name__: each for each in RESTARTS}
    if option.value not in policies:
        reader.fail(
            f"There is no restart policy {option.value!r}.", f"there are {', '.join(policies)}.", option.token
        )
    kind = policies[option.value]
    return {"restart": kind(**take_settings(reader, kind, options, before=f"{RESTART}."))}
