"""The manifests of a sink in its folder: read in order, and created one after another by one writer (rule 34)."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from seamline.lake.storage.durability import sync_file, sync_folder
from seamline.lake.store.created_files import draft_file
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location, delete_files, list_places, replace_file
from seamline.model.errors import Fenced, SetupError, StoreUnavailable
from seamline.model.protocol.sinks.file_manifests import RESEND, DataFile, FileManifest
from seamline.model.protocol.sinks.positions import SinkPosition
from seamline.sinks.target_errors import TargetUnavailable

FOLDER = "_manifests"
SUFFIX = ".json"
HINT = "newest"
"""The file that names the newest manifest, for who cannot list: it may be behind, and is never ahead."""
ATTEMPTS = 10
Clock = Callable[[], float]


class ManifestLog:
    """The manifests of one sink, for one writer that has taken over.

    Fenced where another has since; nothing that this one does is a commit then.
    """

    def __init__(self, root: Location, sink: str, clock: Clock = time.time) -> None:
        self.root, self.folder, self.sink, self.clock = root, root / FOLDER, sink, clock
        self.writer = ""
        self.types: Mapping[str, str] = {}
        """The types of columns in the files of this writer."""
        self.newest: FileManifest | None = None
        self.digest = ""
        """The SHA-256 of the newest manifest."""

    @property
    def claim(self) -> int:
        """The number of this writer's first manifest."""
        return int(self.writer.partition("-")[0])

    @property
    def token(self) -> str:
        """What is random in this writer's name."""
        return self.writer.partition("-")[2]

    def take_over(self, *, anew: bool = False) -> FileManifest:
        """Create a manifest that changes nothing, by which all earlier writers are fenced off.

        SetupError where what is there cannot be gone on with. With ``anew`` it is not looked at: files that are there
        do not count any more.
        """
        for _ in range(ATTEMPTS):
            numbers, self.digest = self.list_numbers(), ""
            found = None if anew else self.find_newest(numbers)
            number = max([-1, *numbers[-1:], self.read_hint()]) + 1
            self.writer = f"{number}-{secrets.token_hex(4)}"
            claimed = self.follow(number, found)
            with suppress(Fenced):
                self.create(claimed, look=self.require_newest)
                return claimed
        raise TargetUnavailable(
            f"Others keep writing manifests of {self.sink} to {self.folder}.", hint="end them."
        )

    def find_newest(self, numbers: Sequence[int]) -> FileManifest | None:
        """Read the newest manifest, None where there is none; SetupError where some are not there, or another's."""
        if not numbers:
            if strangers := [each for each in list_places(self.root, "*") if not is_ours(each.name)]:
                raise SetupError(
                    f"{self.root} has files, {strangers[0].name} among them, and no manifest of a sink.",
                    hint="name an empty place; or, where a sink's manifests were deleted, run "
                    "`seamline sinks resend PIPELINE SINK`. It deletes no files of others.",
                )
            return None
        if (told := self.read_hint()) > numbers[-1]:
            raise explain_loss(self.folder, f"manifest {told} was deleted")
        data = self.fetch(numbers[-1])
        found, self.digest = FileManifest.from_bytes(data, numbers[-1]), digest(data)
        if found.sink != self.sink:
            raise SetupError(
                f"{self.root} has the files of sink {found.sink}, and not of {self.sink}.",
                hint="give each sink a path of its own.",
            )
        if {*range(found.base, found.number)} - {*numbers}:
            raise explain_loss(self.folder, f"of manifests {found.base} to {found.number} some are not there")
        return found

    def read_owner(self) -> str:
        """Return whose the newest manifest is, also where the rest of it cannot be read; empty where nobody knows."""
        with suppress(SetupError, ValueError, TypeError, KeyError, IndexError):
            return str(json.loads(self.fetch(self.list_numbers()[-1]))["sink"])
        return ""

    def read_chain(self, newest: FileManifest) -> list[FileManifest]:
        """Read the manifests up to one from the whole one below it; SetupError where one is not what it was."""
        chain = [newest]
        while (later := chain[-1]).number > newest.base:
            number = later.number - 1
            data = self.fetch(number)
            if later.previous and digest(data) != later.previous:
                raise explain_loss(self.folder, f"manifest {number} was changed")
            chain.append(FileManifest.from_bytes(data, number))
        return chain[::-1]

    def commit(
        self, position: SinkPosition | None, added: Sequence[DataFile] = (), removed: Sequence[str] = ()
    ) -> None:
        """Create the next manifest."""
        assert self.newest is not None
        made = self.follow(self.newest.number + 1, self.newest)
        types = tuple({**dict(made.types), **self.types}.items()) if added else made.types
        self.create(replace(made, position=position, added=tuple(added), removed=tuple(removed), types=types))

    def commit_whole(self, position: SinkPosition | None, files: Sequence[DataFile]) -> None:
        """Create the next manifest, by which these are all files that count."""
        assert self.newest is not None
        made = self.follow(self.newest.number + 1, self.newest)
        types = made.types if files else ()
        made = replace(made, position=position, added=tuple(files), whole=True, base=made.number, types=types)
        self.create(made)

    def follow(self, number: int, before: FileManifest | None) -> FileManifest:
        """Return the manifest that changes nothing after another; a whole one without files after none."""
        whole, base = before is None, before.base if before else number
        position = before.position if before else None
        made = FileManifest(number, self.sink, self.writer, whole, base, self.digest, self.clock(), position)
        return replace(made, types=before.types if before else ())

    def create(self, made: FileManifest, *, look: Callable[[FileManifest], None] | None = None) -> None:
        """Create a manifest where there is none, and see to it that it is the newest; Fenced where it is not."""
        data = made.to_bytes()
        self.folder.mkdir(parents=True, exist_ok=True)
        with draft_file(self.folder, data, before=sync_file) as put:
            self.settle(made, put)
        sync_folder(self.folder)
        (look or self.require_predecessor)(made)
        self.newest, self.digest = made, digest(data)
        replace_file(self.folder / HINT, json.dumps({"number": made.number, "base": made.base}).encode())

    def settle(self, made: FileManifest, put: Callable[[str], bool]) -> None:
        """Put a manifest in its place, as often as nobody says what became of it."""
        last: StoreUnavailable | None = None
        for _ in range(ATTEMPTS):
            try:
                if put(name_manifest(made.number)):
                    return
                found = FileManifest.from_bytes(self.fetch(made.number), made.number)
            except StoreUnavailable as error:
                last = error
                continue
            if found.writer == made.writer:
                return
            raise self.explain_fence(f"manifest {made.number} is of {found.writer}")
        assert last is not None
        raise last

    def require_predecessor(self, made: FileManifest) -> None:
        """Require that the manifest before is there: where it was deleted, others had gone on, and this is none."""
        if (self.folder / name_manifest(made.number - 1)).exists():
            return
        if self.list_numbers()[-1] > made.number:
            raise self.explain_fence(f"it has slept since manifest {made.number - 1}")
        raise explain_loss(self.folder, f"manifest {made.number - 1} was deleted")

    def require_newest(self, made: FileManifest) -> None:
        """Require that no later manifest is there: the number may have been taken before, and been deleted since."""
        if (last := self.list_numbers()[-1]) > made.number:
            raise self.explain_fence(f"there is manifest {last}")

    def explain_fence(self, why: str) -> Fenced:
        """Say that another writes."""
        return Fenced(
            f"Another process writes files of {self.sink} than {self.writer}: {why}.",
            hint="this one ends; nothing is to be done.",
        )

    def read_hint(self) -> int:
        """Return the number of the newest manifest as the hint has it, -1 where none can be read."""
        with suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            told: Mapping[str, Any] = json.loads((self.folder / HINT).read_bytes())
            return int(told["number"])
        return -1

    def fetch(self, number: int) -> bytes:
        """Return a manifest; SetupError where it is not there."""
        try:
            return (self.folder / name_manifest(number)).read_bytes()
        except FileNotFoundError:
            raise explain_loss(self.folder, f"manifest {number} was deleted") from None

    def list_numbers(self) -> list[int]:
        """List the numbers of the manifests that are there."""
        return sorted(self.list_ages())

    def list_ages(self) -> dict[int, float]:
        """List the manifests that are there, each with when it was put there, in seconds since 1970."""
        found = list_found_files(self.folder)
        names = {each.removesuffix(SUFFIX): about for each, about in found.items() if each.endswith(SUFFIX)}
        return {int(name): about.changed / 1e9 for name, about in names.items() if name.isdigit()}

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete manifests one after another, in this order."""
        for number in numbers:
            delete_files([self.folder / name_manifest(number)])


def explain_loss(folder: Location, why: str) -> SetupError:
    """Say that manifests, or files that they name, are not as they were."""
    return SetupError(f"What is in {folder} is not as it was written: {why}.", hint=RESEND)


def name_manifest(number: int) -> str:
    """Name the file of a manifest."""
    return f"{number:020d}{SUFFIX}"


def digest(data: bytes) -> str:
    """Return the SHA-256 of a manifest."""
    return hashlib.sha256(data).hexdigest()


def is_ours(name: str) -> bool:
    """Return whether a name is no file of anybody's: the folder of manifests, or hidden."""
    return name == FOLDER or name.startswith(".")
