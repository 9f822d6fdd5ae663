"""Upkeep of a sink's files by who writes them: merging, and deleting what no manifest names any more (rule 34)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from seamline.lake.engine.duckdb_connections import open_beside
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import delete_files
from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.file_manifests import (
    DataFile,
    FileManifest,
    list_counting_files,
    list_unneeded_files,
    list_unneeded_manifests,
)
from seamline.plan.maintain.merged_files import FileMerge, plan_merge
from seamline.runtime.failpoints import hit_failpoint
from seamline.sinks.files.held_files import HeldFiles, sort_out_damaged
from seamline.sinks.files.manifest_log import ManifestLog
from seamline.sinks.files.merging import Merging

log = logging.getLogger("seamline.sinks")
TIDIES_EVERY, SWEEPS_EVERY = 10.0, 3600.0
"""Seconds between two pieces of upkeep, and between two looks for files that nobody needs."""
GRACE = 3600.0
"""Seconds for which manifests are kept that nobody needs, for who reads by them, and files with them."""
LONGEST_CHAIN = 64
"""Manifests after which one lists all files."""
AT_ONCE = 500
"""Manifests that are deleted in one piece."""
LONGEST_TURN = 20.0
"""Seconds after which no other merge is begun: something may wait to be sent."""
RESEND_RANGE = "`seamline sinks resend PIPELINE SINK --from TIME`"
NEVER = float("-inf")


class FileUpkeep:
    """The upkeep of the files of one writer, a piece at a time."""

    def __init__(self, manifests: ManifestLog, merging: Merging, name: Callable[[str], str]) -> None:
        self.manifests, self.merging, self.name = manifests, merging, name
        self.files: dict[str, DataFile] | None = None
        """The files that count, by name; None until they are read."""
        self.tidied, self.swept = NEVER, NEVER

    def count(self, added: Iterable[DataFile], removed: Iterable[str] = ()) -> None:
        """Count files that were committed."""
        if self.files is not None:
            for name in removed:
                self.files.pop(name, None)
            self.files.update({each.file: each for each in added})

    def forget(self) -> None:
        """Count no files: the last manifest says that none counts."""
        self.files = {}

    def tidy(self, stopping: Callable[[], bool]) -> None:
        """Do what is due, and nothing for some seconds then."""
        now = self.manifests.clock()
        if 0 <= now - self.tidied < TIDIES_EVERY:
            return
        self.tidied = now
        files = self.read_files()
        if self.newest.number - self.newest.base >= LONGEST_CHAIN:
            self.manifests.commit_whole(self.newest.position, list(files.values()))
        self.delete_manifests()
        until = time.monotonic() + LONGEST_TURN
        while not stopping() and self.merge_some(now) and time.monotonic() < until:
            hit_failpoint("sink_merged")
        if not 0 <= now - self.swept < SWEEPS_EVERY:
            self.swept = now
            self.sweep(now)

    @property
    def newest(self) -> FileManifest:
        """The newest manifest."""
        assert self.manifests.newest is not None
        return self.manifests.newest

    def read_files(self) -> dict[str, DataFile]:
        """Return the files that count."""
        if self.files is None:
            self.files = list_counting_files(self.manifests.read_chain(self.newest))
        return self.files

    def merge_some(self, now: float) -> bool:
        """Merge the files of one bucket, if there are some to be merged."""
        files, merging = self.read_files(), self.merging
        merge = plan_merge(files.values(), now, merging.size, history=merging.history)
        if merge is None:
            return False
        try:
            made = list(merging.merge(merge, lambda: self.name(merge.bucket), now))
        except Exception as error:
            damage = self.explain_damage(merge)
            if damage is None:
                raise
            raise damage from error
        hit_failpoint("sink_merging")
        removed = [each.file for each in merge.files]
        self.manifests.commit(self.newest.position, made, removed)
        self.count(made, removed)
        log.info("%s: %s files of %s are %s now", self.manifests.sink, len(removed), merge.bucket, len(made))
        return True

    def explain_damage(self, merge: FileMerge) -> SetupError | None:
        """Say which of the files that were to be merged is damaged, and what mends it; None where none is."""
        held = HeldFiles(self.merging.form, self.merging.shape)
        with (
            open_beside(1) as con,
            sort_out_damaged(con, self.merging.root, merge.files, held) as (_, damage),
        ):
            for name, why in damage.items():
                return SetupError(
                    f"{len(damage)} files below {self.merging.root} are damaged, {name} among them: {why}.",
                    hint=f"`seamline sinks audit` names them; sending their windows again mends them: {RESEND_RANGE}.",
                )
        return None

    def delete_manifests(self) -> None:
        """Delete manifests that are old, and not needed to read by the newest."""
        written = self.manifests.list_ages()
        latest = max(written.values())
        ages = {number: latest - at for number, at in written.items()}
        self.manifests.delete(list_unneeded_manifests(ages, self.newest, GRACE)[:AT_ONCE])

    def sweep(self, now: float) -> None:
        """Delete files that no manifest names, which writers before this one have left."""
        root = self.manifests.root
        found = list_found_files(root)
        kept = self.read_kept()
        unneeded: Sequence[str] = list_unneeded_files(sorted(found), kept, self.manifests.claim)
        drafts = [
            name
            for name, about in found.items()
            if name.startswith("_manifests/_commit_") and now - about.changed / 1e9 > GRACE
        ]
        delete_files(root / name for name in [*unneeded, *drafts])
        if unneeded:
            log.info("%s: %s files that no manifest names were deleted", self.manifests.sink, len(unneeded))

    def read_kept(self) -> list[FileManifest]:
        """Read all manifests that are there; of those that are only kept for a while none has to be right."""
        kept = []
        for number in self.manifests.list_numbers():
            try:
                kept.append(FileManifest.from_bytes(self.manifests.fetch(number), number))
            except SetupError:
                if number >= self.newest.base:
                    raise
        return kept
