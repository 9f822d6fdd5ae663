"""What deltalake's requests to a store have failed with, in the same sentences as those of our own client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError

from seamline.lake.store.locations import Location
from seamline.lake.store.object_path import ObjectPath
from seamline.model.errors import StoreRefused, StoreUnavailable
from seamline.runtime.store_refusals import CODE, explain_failure, shorten_error


@contextmanager
def explain_errors(place: Location) -> Iterator[None]:
    """Let deltalake's errors at a place in a bucket say what a store has refused, and nothing of what it answered."""
    try:
        yield
    except (DeltaError, OSError) as error:
        if not isinstance(place, ObjectPath) or isinstance(
            error, FileNotFoundError | StoreRefused | StoreUnavailable
        ):
            raise
        explained = explain_failure(place.url, error, answered=place.bucket.answered)
        if isinstance(error, OSError) or isinstance(explained, StoreRefused):
            raise explained from None
        raise type(error)(shorten_error(error)) if CODE.search(str(error)) else error from None
