"""Whether lineage is to be told: the official client's own settings say so, and it is not imported to ask them.

Its documentation: https://openlineage.io/docs/client/python/configuration.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from seamline.model.errors import SeamlineError, SetupError
from seamline.model.time.intervals import parse_duration

NAMESPACES = ("AIRFLOW__OPENLINEAGE__NAMESPACE", "OPENLINEAGE_NAMESPACE")
PACE = "SEAMLINE_LINEAGE_EVERY"
VARIABLES = ("OPENLINEAGE_URL", "OPENLINEAGE__TRANSPORT", "OPENLINEAGE__TRANSPORT__TYPE")
FILE = "openlineage.yml"


def is_configured(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the client would find a server, or whatever else takes events, by its settings."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    if any(environ.get(name) for name in VARIABLES):
        return True
    named = environ.get("OPENLINEAGE_CONFIG")
    places = [*([Path(named)] if named else []), Path(FILE), Path("~/.openlineage").expanduser() / FILE]
    return any(each.is_file() for each in places)


def read_namespace(environ: Mapping[str, str] = os.environ) -> str:
    """Return the namespace of jobs, by the variables of Airflow's provider and of other integrations."""
    return next((environ[name] for name in NAMESPACES if environ.get(name)), "default")


def read_pace(environ: Mapping[str, str] = os.environ) -> float:
    """Return after how many seconds a stream tells more, at the earliest; SetupError for no length of time."""
    text = environ.get(PACE) or "1 minute"
    try:
        return parse_duration(text).total_seconds()
    except SeamlineError as error:
        raise SetupError(f"{PACE}: {error.message}", hint='for example: "1 minute".') from error
