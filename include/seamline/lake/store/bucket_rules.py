"""What a bucket does by itself to the objects in it: deletes them, keeps their old versions, locks them.

An object is put there, and what the store says of it is read: that takes no other rights than a warehouse does, and
keys and roles alike give them. Stores that do not say so are believed to have no such rules.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import StoreRefused, StoreUnavailable
from seamline.plan.maintain.transfers import PIPELINE_TABLES

MOST_FOLDERS = 20
"""So many folders of a place are looked at."""
RULE, VERSION = "x-amz-expiration", "x-amz-version-id"
LOCK, LOCKED_UNTIL = "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date"


@dataclass(frozen=True)
class Concern:
    """A rule of a bucket that a warehouse in it suffers from."""

    fact: str
    """What the bucket does."""
    hint: str
    """What to do about it."""
    loses: bool
    """Whether tables are lost by it; otherwise it costs money or space."""


def list_concerns(place: Location) -> list[Concern]:
    """List what a bucket does with objects at a place, and in the folders of its pipelines; a disk does nothing."""
    if not isinstance(place, ObjectPath):
        return []
    folders = [each for each in place.iterdir() if is_pipeline(each)][:MOST_FOLDERS]
    found = [concern for each in [place, *folders] for concern in look_at_folder(each)]
    return list({concern.fact: concern for concern in found}.values())


def is_pipeline(folder: ObjectPath) -> bool:
    """Return whether a folder is a pipeline's: into other people's nothing is put."""
    return any((folder / name / "_delta_log").is_dir() for name in PIPELINE_TABLES)


def look_at_folder(folder: ObjectPath) -> list[Concern]:
    """Put an object into a folder, look at what the store says of it, and delete it."""
    probe = folder / "_probe" / uuid.uuid4().hex
    try:
        probe.write_bytes(b"probe")
        found = [*judge_object(folder, probe.bucket.read_headers(probe.key))]
    except (StoreRefused, StoreUnavailable) as error:
        fact = f"What {folder.url} does by itself with objects could not be looked at: {error.message}"
        found = [Concern(fact, error.hint, loses=False)]
    try:
        probe.unlink()
    except (StoreRefused, StoreUnavailable) as error:
        fact = f"Upkeep and retention could delete nothing: {error.message}"
        found.append(Concern(fact, error.hint, loses=False))
    return found


def judge_object(folder: ObjectPath, headers: Mapping[str, str]) -> Iterator[Concern]:
    """Judge by the headers that an object has what becomes of it."""
    if rule := headers.get(RULE):
        yield Concern(
            f"A life-cycle rule of {folder.url} deletes what is put into {folder}: {rule}.",
            "take this place out of the rule, before it deletes parts of tables.",
            loses=True,
        )
    if headers.get(VERSION, "null") != "null":
        yield Concern(
            f"{folder.url} keeps old versions of objects.",
            "what upkeep deletes is paid for on: give the bucket a life-cycle rule that deletes noncurrent versions.",
            loses=False,
        )
    if mode := headers.get(LOCK):
        until = headers.get(LOCKED_UNTIL, "a date that the store does not state")
        yield Concern(
            f"{folder.url} locks objects ({mode}), now until {until}.",
            "upkeep and retention free nothing before that: use a bucket without a default retention.",
            loses=False,
        )
