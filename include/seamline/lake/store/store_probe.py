"""Whether a store keeps two writers apart: of several that create the same object at once, one may win."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import SetupError, StoreUnavailable

RACES = 8
WRITERS = 8


def probe_creation(place: Location) -> tuple[str, str]:
    """Race writers for objects below a place; return what is wrong and the way out, both empty where nothing is.

    A disk is not asked: its links are exclusive.
    """
    if not isinstance(place, ObjectPath):
        return "", ""
    name = f"_probe/{uuid.uuid4().hex}"
    try:
        for race in range(RACES):
            if (winners := race_writers(place / name / str(race))) != 1:
                return (
                    f"{place}: {winners} of {WRITERS} writers were told that they had created the same object.",
                    "use a store whose conditional puts (If-None-Match) are atomic: S3, GCS, Azure, versitygw.",
                )
    except (SetupError, StoreUnavailable) as error:
        return error.message, error.hint
    except OSError as error:
        return (
            f"{place} cannot be used: {error}.",
            "check the address, the region, the credentials and the clock.",
        )
    finally:
        with suppress(OSError, SetupError):
            place.bucket.delete([f"{place.key}/{name}/{race}".lstrip("/") for race in range(RACES)])
    return "", ""


def require_exclusive_creation(place: Location) -> None:
    """Raise SetupError if a bucket's store does not keep two writers apart, or cannot be used; disks do."""
    if isinstance(place, ObjectPath):
        problem, hint = probe_creation(place)
        if problem:
            raise SetupError(problem, hint=hint)


def race_writers(place: ObjectPath) -> int:
    """Let writers create one object at once; return how many were told that they have.

    StoreUnavailable if nobody knows."""
    with ThreadPoolExecutor(WRITERS) as threads:
        won = list(threads.map(lambda number: create_or_wait(place, number), range(WRITERS)))
    found = place.read_bytes()
    if sum(won) == 1 and found != str(won.index(True)).encode():
        raise StoreUnavailable(
            f"{place}: another writer's object is there than that of the one who was told so.",
            hint="use another store.",
        )
    return sum(won)


def create_or_wait(place: ObjectPath, number: int) -> bool:
    """Create an object; False if another has."""
    return place.bucket.create(place.key, str(number).encode())
