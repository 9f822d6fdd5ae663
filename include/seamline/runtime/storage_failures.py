"""Whether a failure is one of what the tables are kept on: a full disk, or a store that refuses or does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from seamline.model.errors import DiskFull, SeamlineError, StoreRefused, StoreUnavailable
from seamline.runtime.store_refusals import explain_failure

FULL = ("No space left on device", "os error 28")
CLIENTS = re.compile(
    r"Generic (?:S3|GCS|MicrosoftAzure) error"
    r"|already exists[^<]{0,60}?Error performing (?:GET|HEAD|POST|DELETE)\b"
)
"""What a client says of a store. To a request that creates nothing, 409 is that another is in the way."""
RAISED = re.compile(
    r"^[^\w\n]*(?:Caused by: )?(?:seamline\.model\.errors\.StoreUnavailable|(?:[\w$]+\.)+SdkClientException): ",
    re.MULTILINE,
)
"""How a line begins that says what a worker of Spark's has raised, or Hadoop's S3A."""
ADDRESS = re.compile(r"https?://[^/\s]+(?:/[^/\s?]+)?")
"""A store and a bucket, as a client names them."""


def explain_storage_failure(error: BaseException) -> DiskFull | StoreRefused | StoreUnavailable | None:
    """Return the error that a full disk or a failing store is, in the words of who met it; None for any other."""
    return disk_full(error) or store_failed(error)


def disk_full(error: BaseException) -> DiskFull | None:
    """Return the error that a full disk is, whichever engine met it; None for any other."""
    for said in str(error).splitlines():
        if any(each in said for each in FULL):
            hint = "free some space, then run it again: partly written data is never read."
            return DiskFull(f"The disk is full: {said.strip()[:300]}", hint=hint)
    return None


def store_failed(error: BaseException) -> StoreRefused | StoreUnavailable | None:
    """Return the error that a store is which did not do what it was asked, whichever client met it; None otherwise.

    What we have already called by another name keeps it.
    """
    for each in list_causes(error):
        if isinstance(each, SeamlineError):
            return each if isinstance(each, StoreUnavailable) else None
        told = isinstance(each, OSError) or is_of_deltalake(each)
        if told and (found := CLIENTS.search(str(each))):
            return find_refusal(str(each)) or describe_absence(find_line(str(each), found.start()))
        if found := RAISED.search(str(each)):
            return describe_absence(find_line(str(each), found.start()))
    return None


def find_refusal(said: str) -> StoreRefused | None:
    """Return the refusal that a client tells of; None if it may pass: credentials that cannot be had may."""
    address = ADDRESS.search(said)
    explained = explain_failure(address[0] if address else "the store", OSError(said), answered=True)
    return explained if isinstance(explained, StoreRefused) else None


def describe_absence(said: str) -> StoreUnavailable:
    """Return the error that a store is which is away, with what was said of it."""
    return StoreUnavailable(
        f"The store does not do what it is asked: {said.partition('<')[0].strip()[:300]}",
        hint="run it again when the store is there: partly written data is never read.",
    )


def find_line(text: str, at: int) -> str:
    """Return the line of a text that a place is in."""
    return text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]


def is_of_deltalake(error: BaseException) -> bool:
    """Return whether deltalake has raised an error: what records say is in other people's errors."""
    return any(kind.__name__ == "DeltaError" for kind in type(error).__mro__)


@contextmanager
def translate_store_errors() -> Iterator[None]:
    """Raise what a client says of a store that refuses or is away as the error of ours."""
    try:
        yield
    except Exception as error:
        ours = store_failed(error)
        if ours is None or ours is error:
            raise
        raise ours from error


def list_causes(error: BaseException) -> Iterator[BaseException]:
    """List an error and what it was raised from, each once: an error may be raised from itself."""
    found: BaseException | None = error
    seen: list[BaseException] = []
    while found is not None and not any(each is found for each in seen):
        seen.append(found)
        yield found
        found = found.__cause__
