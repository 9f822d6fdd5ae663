"""A bucket of an object store: whole objects by key, created by one writer only, and every request counted.

Requests that change nothing are retried by the client, for seconds. One that creates an object is sent once: whoever
sends it finds out by reading what became of it (``log_store.retry_commit``).
"""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TypeVar

from seamline.lake.store.object_entries import Entry, describe_object
from seamline.lake.store.store_clients import open_client
from seamline.model.errors import StoreRefused
from seamline.runtime.store_refusals import explain_failure, refuse
from seamline.runtime.store_settings import require_sound_settings

T = TypeVar("T")
SCHEMES = ("s3", "gs", "az", "abfss")
PATIENCE = timedelta(seconds=6)
"""How long requests that change nothing are retried: less than a lease lasts."""
LONGEST = timedelta(minutes=2)
"""How long one such request may take, with its body."""
QUICK = timedelta(seconds=5)
"""How long a look at a log may take."""
LOG = "/_delta_log/"
UNKNOWN_AFTER = timedelta(seconds=3)
"""How long a creation is waited for. A lease is renewed every five seconds, and lasts fifteen."""
requests: Counter[str] = Counter()
"""How many requests this process has sent, by kind: get, head, list, put, create, replace, delete."""
_counting = threading.Lock()


class Bucket:
    """One bucket; ``url`` is its scheme and name, as in ``s3://lake``. Settings come from the environment.

    StoreRefused, also from each request, where the store refuses it until somebody changes something;
    StoreUnavailable where that may pass.
    """

    def __init__(self, url: str) -> None:
        require_sound_settings(url)
        self.url = url
        self._patient = open_client(url, PATIENCE, timeout=LONGEST, connected_within=UNKNOWN_AFTER)
        self._quick = open_client(url, PATIENCE, timeout=QUICK, connected_within=UNKNOWN_AFTER)
        self.answered = False
        self._once = open_client(url, timedelta(0), timeout=UNKNOWN_AFTER, connected_within=UNKNOWN_AFTER)

    def get(self, key: str) -> bytes:
        """Return an object's bytes; FileNotFoundError if there is none."""
        import obstore

        # A lease does not wait for a store that says nothing; a large file may take its time.
        client = self._quick if LOG in key else self._patient
        found = self._ask("get", key, lambda: obstore.get(client, key))
        self._require_tag(found.meta["e_tag"])
        return self._ask("", key, lambda: bytes(found.bytes()))

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return a part of an object's bytes; FileNotFoundError if there is none."""
        import obstore

        return self._ask(
            "get", key, lambda: bytes(obstore.get_range(self._patient, key, start=start, length=length))
        )

    def head(self, key: str) -> Entry | None:
        """Describe an object; None if there is none."""
        import obstore

        try:
            found = self._ask("head", key, lambda: obstore.head(self._quick, key))
        except FileNotFoundError:
            return None
        except StoreRefused:
            # An answer without a body has no reason in it; a listing's has.
            self.list_folder(key)
            raise
        self._require_tag(found["e_tag"])
        return describe_object(found)

    def read_headers(self, key: str) -> dict[str, str]:
        """Return all that the store says of an object, by header in lower case; only S3 has any to be read.

        Our client keeps most of it to itself, but it signs an address for us, by keys or a role.
        """
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        import obstore

        if not self.url.startswith("s3://"):
            return {}
        address = self._ask("head", key, lambda: obstore.sign(self._quick, "HEAD", key, QUICK))
        try:
            with urlopen(Request(address, method="HEAD"), timeout=QUICK.total_seconds()) as answer:
                return {name.lower(): value for name, value in answer.headers.items()}
        except HTTPError as error:
            raise explain_failure(self.url, OSError(f"code: {error.code} Refused")) from None
        except URLError as error:
            raise explain_failure(self.url, OSError(str(error.reason))) from None

    def put(self, key: str, data: bytes) -> None:
        """Put an object in place of what may be there."""
        import obstore

        self._ask("put", key, lambda: obstore.put(self._patient, key, data))

    def put_pieces(self, key: str, pieces: Iterator[bytes], size: int) -> None:
        """Put an object that comes in pieces of ``size`` bytes, in place of what may be there; two are on their way."""
        import obstore

        self._ask(
            "put",
            key,
            lambda: obstore.put(
                self._patient, key, pieces, use_multipart=True, chunk_size=size, max_concurrency=2
            ),
        )

    def create(self, key: str, data: bytes) -> bool:
        """Put an object where there is none; False if there is one, StoreUnavailable if nobody knows."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        try:
            self._ask(
                "create", key, lambda: obstore.put(self._once, key, data, mode="create", use_multipart=False)
            )
        except (AlreadyExistsError, PreconditionError):
            return False
        return True

    def get_tagged(self, key: str) -> tuple[bytes, str]:
        """Return an object's bytes, and what distinguishes them from others; FileNotFoundError if there is none."""
        import obstore

        def send() -> tuple[bytes, str]:
            found = obstore.get(self._quick, key)
            return bytes(found.bytes()), found.meta["e_tag"] or ""

        return self._ask("get", key, send)

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        """Put an object in place of the content with a tag, or of none if that is empty; return the new one's tag.

        None if another content is there, StoreUnavailable if nobody knows.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        def send() -> str:
            if tag:
                done = obstore.put(self._once, key, data, mode={"e_tag": tag}, use_multipart=False)
            else:
                done = obstore.put(self._once, key, data, mode="create", use_multipart=False)
            return done["e_tag"] or ""

        try:
            return self._ask("replace", key, send)
        except (AlreadyExistsError, PreconditionError, FileNotFoundError):
            return None

    def list_objects(self, prefix: str) -> list[Entry]:
        """List all objects below a prefix, which is a whole part of a key, or empty."""
        import obstore

        found = self._ask(
            "list", prefix, lambda: obstore.list(self._patient, prefix=prefix or None).collect()
        )
        return [describe_object(each) for each in found]

    def list_folder(self, prefix: str) -> tuple[list[Entry], list[str]]:
        """List the objects right below a prefix, and the prefixes right below it.

        Consoles and Hadoop mark a folder by an object whose key ends in a slash: the client tells it by the folder's
        own key, and it is no object of the folder.
        """
        import obstore

        found = self._ask(
            "list", prefix, lambda: obstore.list_with_delimiter(self._patient, prefix=prefix or None)
        )
        objects = [describe_object(each) for each in found["objects"] if each["path"] != prefix]
        return objects, list(found["common_prefixes"])

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; one that is not there is no error."""
        import obstore

        if keys:
            try:
                self._ask("delete", keys[0], lambda: obstore.delete(self._patient, list(keys)))
            except FileNotFoundError:
                # Some stores stop at the first that is not there.
                for key in keys if len(keys) > 1 else ():
                    self.delete([key])

    def copy(self, key: str, to: str) -> None:
        """Copy an object within the store."""
        import obstore

        self._ask("copy", key, lambda: obstore.copy(self._patient, key, to))

    def _ask(self, kind: str, key: str, send: Callable[[], T]) -> T:
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        with _counting:
            requests[kind] += bool(kind)
        try:
            found = send()
            self.answered = True
            return found
        except FileNotFoundError as error:
            if error.filename:
                # It is what was to be put that is gone, and says where it was.
                raise
            if isinstance(refusal := explain_failure(self.url, error), StoreRefused):
                raise refusal from None
            raise FileNotFoundError(errno.ENOENT, "there is no such object", f"{self.url}/{key}") from None
        except BaseError as error:
            if kind in ("create", "replace") and isinstance(error, (AlreadyExistsError, PreconditionError)):
                raise
            raise explain_failure(self.url, error, answered=self.answered) from None

    def _require_tag(self, tag: str | None) -> None:
        """Raise StoreRefused for an object without a tag: each store gives one, and a server of pages does not."""
        if tag is None:
            raise refuse("NotS3", self.url)


@lru_cache(maxsize=16)
def open_bucket(url: str) -> Bucket:
    """Return this process's client of a bucket; RuntimeError in the child of a fork, if its parent had one.

    The threads of such a client are not there in the child: it would wait for them for ever.
    """
    if _forked:
        raise RuntimeError("this process was forked from one that has used a bucket: start it anew")
    _used.add(url)
    return Bucket(url)


@contextmanager
def use_settings(changed: Mapping[str, str | None]) -> Iterator[None]:
    """Have other settings in the environment while the block runs, for this process and what it starts.

    None stands for one that must not be there. Clients that were opened with other settings are forgotten.
    """
    before = {name: os.environ.get(name) for name in changed}
    replace_settings(changed)
    try:
        yield
    finally:
        replace_settings(before)


def replace_settings(settings: Mapping[str, str | None]) -> None:
    """Put settings into the environment, or take them away, and forget the clients that had others."""
    for name, value in settings.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    open_bucket.cache_clear()


_used: set[str] = set()
_forked: list[int] = []


def mark_forked() -> None:
    """Note that this process cannot use a bucket, if the one that it was forked from has."""
    if _used:
        open_bucket.cache_clear()
        _forked.append(os.getpid())


os.register_at_fork(after_in_child=mark_forked)
