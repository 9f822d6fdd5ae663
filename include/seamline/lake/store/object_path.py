"""A place in a bucket, with the words that ``pathlib`` has for one on disk, as far as a warehouse needs them.

There are no folders: a place is a folder if a key goes on below it. What makes or syncs a folder does nothing.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import total_ordering

from seamline.lake.store.bucket import Bucket, open_bucket
from seamline.lake.store.object_entries import Entry


@dataclass(frozen=True)
class ObjectStat:
    """What a listing says of an object, in the words of ``os.stat``."""

    st_size: int
    """Bytes."""
    st_mtime: float
    """Seconds since 1970 when it was put there."""
    st_mtime_ns: int
    """The same in nanoseconds."""
    st_ino: int
    """Distinguishes its content from another's."""


@total_ordering
class ObjectPath:
    """A key below a bucket, or the beginning of keys."""

    __slots__ = ("key", "url")

    def __init__(self, url: str, key: str = "") -> None:
        self.url = url
        """The bucket, as in ``s3://lake``."""
        self.key = key
        """The key, without a slash at either end; empty for the bucket itself."""

    @classmethod
    def parse(cls, text: str) -> ObjectPath:
        """Read ``s3://bucket/key``."""
        scheme, _, rest = text.partition("://")
        bucket, _, key = rest.partition("/")
        return cls(f"{scheme}://{bucket}", "/".join(part for part in key.split("/") if part))

    @property
    def bucket(self) -> Bucket:
        """The client of its bucket."""
        return open_bucket(self.url)

    def __str__(self) -> str:
        return f"{self.url}/{self.key}" if self.key else self.url

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and (self.url, self.key) == (other.url, other.key)

    def __lt__(self, other: ObjectPath) -> bool:
        return (self.url, self.key) < (other.url, other.key)

    def __hash__(self) -> int:
        return hash((self.url, self.key))

    def __reduce__(self) -> tuple[type[ObjectPath], tuple[str, str]]:
        return ObjectPath, (self.url, self.key)

    def __truediv__(self, name: object) -> ObjectPath:
        parts = [part for part in str(name).split("/") if part]
        return ObjectPath(self.url, "/".join([*([self.key] if self.key else []), *parts]))

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on."""
        return self.name[len(self.stem) :]

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket and the parts of the key."""
        return (self.url, *self.key.split("/")) if self.key else (self.url,)

    @property
    def parent(self) -> ObjectPath:
        """The place above."""
        return ObjectPath(self.url, self.key.rpartition("/")[0])

    @property
    def parents(self) -> list[ObjectPath]:
        """The places above, the nearest first, down to the bucket."""
        return [self.parent, *self.parent.parents] if self.key else []

    def with_name(self, name: str) -> ObjectPath:
        """Return the place beside this one of another name."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> ObjectPath:
        """Return the place beside this one with another suffix."""
        return self.with_name(self.stem + suffix)

    def as_posix(self) -> str:
        """Return the place as text."""
        return str(self)

    def as_uri(self) -> str:
        """Return the place as a URL, which it is."""
        return str(self)

    def is_relative_to(self, other: object) -> bool:
        """Return whether this place is the other one, or below it."""
        return isinstance(other, ObjectPath) and other in (self, *self.parents)

    def relative_to(self, other: ObjectPath) -> RelativeKey:
        """Return the way from a place above; ValueError if it is none."""
        if not self.is_relative_to(other):
            raise ValueError(f"{self} is not below {other}")
        return RelativeKey(self.key[len(other.key) :].strip("/"))

    def exists(self) -> bool:
        """Return whether there is an object here, or below."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether there is an object here."""
        return self.bucket.head(self.key) is not None

    def is_dir(self) -> bool:
        """Return whether there is an object below."""
        objects, folders = self.bucket.list_folder(self.key)
        return bool(objects or folders)

    def stat(self) -> ObjectStat:
        """Describe the object; FileNotFoundError if there is none."""
        if (found := self.bucket.head(self.key)) is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", str(self))
        return stat_of(found)

    def read_bytes(self) -> bytes:
        """Return the object's bytes; FileNotFoundError if there is none."""
        return self.bucket.get(self.key)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the object's text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> int:
        """Put an object here, whole or not at all, and return its size."""
        self.bucket.put(self.key, data)
        return len(data)

    def write_text(self, text: str, encoding: str = "utf-8") -> int:
        """Put a text here."""
        return self.write_bytes(text.encode(encoding))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a folder is there once something is in it."""

    def rmdir(self) -> None:
        """Do nothing: a folder is gone once nothing is in it."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object; whether it was there is not asked."""
        self.bucket.delete([self.key])

    def rename(self, target: ObjectPath) -> ObjectPath:
        """Copy the object to another place of the bucket, then delete it here."""
        self.bucket.copy(self.key, target.key)
        self.unlink()
        return target

    replace = rename

    def iterdir(self) -> Iterator[ObjectPath]:
        """List the objects and folders right below."""
        objects, folders = self.bucket.list_folder(self.key)
        for key in [*(each.key for each in objects), *folders]:
            yield ObjectPath(self.url, key)

    def walk_objects(self) -> Iterator[tuple[ObjectPath, ObjectStat]]:
        """List all objects below with what the listing says of them."""
        for each in self.bucket.list_objects(self.key):
            yield ObjectPath(self.url, each.key), stat_of(each)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """List the places below that match a pattern, part by part; ``**`` is not understood."""
        first, _, rest = pattern.partition("/")
        for each in self.iterdir():
            if fnmatchcase(each.name, first):
                if rest:
                    yield from each.glob(rest)
                else:
                    yield each


class RelativeKey(str):
    """The way from one place to another below it."""

    __slots__ = ()

    def as_posix(self) -> str:
        """Return it as text."""
        return str(self)

    @property
    def parts(self) -> tuple[str, ...]:
        """Its parts."""
        return tuple(self.split("/"))


def stat_of(entry: Entry) -> ObjectStat:
    """Describe an object in the words of ``os.stat``."""
    at: datetime = entry.modified
    seconds = at.timestamp()
    # The same in every process, unlike hash().
    content = int.from_bytes(hashlib.sha256(str(entry.tag).encode()).digest()[:7], "big")
    return ObjectStat(entry.size, seconds, int(seconds * 1e9), content)
