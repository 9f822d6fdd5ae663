"""What is wrong with sinks into files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from seamline.model.compile.problems import Problems
from seamline.model.compile.sinks.database_rules import list_column_names
from seamline.model.definition.pipeline import Pipeline
from seamline.model.definition.sinks.file_sink import FILE_FORMATS, FileSink
from seamline.model.time.intervals import parse_duration

PLACE = re.compile(r"/.*|file:///.*|(s3|gs|az|abfss)://[^/].*", re.DOTALL)
LABEL = "in_"
"""What the names of folders begin with, which readers take for columns."""
MOST_MEGABYTES = 256


def starts_like_duration(bucket: str) -> bool:
    """Return whether a bucket is a piece of time, and no key."""
    return bucket.strip()[:1].isdigit()


def check_file_sink(pipeline: Pipeline, sink: FileSink, problems: Problems) -> None:
    """Note a place that there cannot be, buckets that are none, and columns that files have themselves."""
    field = f"sinks[{sink.id}]"
    for setting, told, hint in list_wrong_settings(pipeline, sink):
        problems.note(f"{field}.{setting}", sink.origin, told, hint)
    for setting in ("roll_age", "roll_idle"):
        problems.attempt(f"{field}.{setting}", sink.origin, partial(parse_duration, getattr(sink, setting)))
    for bucket in filter(starts_like_duration, sink.buckets):
        problems.attempt(f"{field}.buckets", sink.origin, partial(parse_duration, bucket))


def is_within(path: str, other: str) -> bool:
    """Return whether a path is below another, and not the same."""
    return path.rstrip("/").startswith(f"{other.rstrip('/')}/")


def list_wrong_settings(pipeline: Pipeline, sink: FileSink) -> Iterator[tuple[str, str, str]]:
    """List the settings that are wrong, what about them, and a way out."""
    if not PLACE.fullmatch(sink.path) or not sink.path.isprintable():
        yield "path", f"{sink.path!r} is no place for files.", "name a whole path, or s3://BUCKET/PREFIX."
    for other in pipeline.sinks:
        if isinstance(other, FileSink) and is_within(sink.path, other.path):
            told = f"{sink.path!r} is within the path of sink {other.id!r}."
            yield "path", told, "name places beside each other."
    if sink.format not in FILE_FORMATS:
        yield "format", f"{sink.format!r} is not one of {', '.join(FILE_FORMATS)}.", "name one of them."
    if not 1 <= sink.roll_megabytes <= MOST_MEGABYTES:
        told = f"{sink.roll_megabytes} is not a size of files."
        yield "roll_megabytes", told, f"name a number from 1 to {MOST_MEGABYTES}."
    yield from list_wrong_buckets(pipeline, sink)
    for name in list_column_names(pipeline, sink.view):
        if name.startswith(LABEL):
            told = f"{name!r} begins as the names of folders do, which readers take for columns."
            yield "view", told, f"rename it: not {LABEL} in front."


def list_wrong_buckets(pipeline: Pipeline, sink: FileSink) -> Iterator[tuple[str, str, str]]:
    """List the buckets that are neither a duration nor a key of the view, or are there twice."""
    keys = [key for view in pipeline.views if view.name == sink.view for key in view.keys]
    for bucket in sink.buckets:
        if not starts_like_duration(bucket) and bucket not in keys:
            told = f"{bucket!r} is neither a duration nor a key of {sink.view}."
            yield "buckets", told, f'write "1 day", or one of {", ".join(keys)}.'
    if sum(map(starts_like_duration, sink.buckets)) > 1 or len({*sink.buckets}) < len(sink.buckets):
        yield "buckets", "A bucket is named twice.", "name one duration at most, and each key once."
