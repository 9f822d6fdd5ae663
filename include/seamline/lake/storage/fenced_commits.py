"""Commits of one Delta table, fenced or conditional.

A commit is *fenced* when it carries the writer's token as a ``txn`` action on a version whose token is the
writer's own: it is refused once a newer token has landed (rule 4). It is *conditional* when it carries an app id of
its own on the version that was decided on: whoever decided too refuses it (rule 5).

What an epoch costs is here: the log is followed (``log_follower``) and appended to (``log_store``) commit by commit,
whatever the table has grown to; deltalake changes schemas and writes checkpoints.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import deltalake
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from seamline.lake.storage import commit_conflicts, durability, log_store, log_wholeness
from seamline.lake.storage.bucket_checkpoints import begin_checkpoint
from seamline.lake.storage.commit_conflicts import Meeting
from seamline.lake.storage.data_files import DataFile
from seamline.lake.storage.log_cleanup import BEATS, delete_old_entries
from seamline.lake.storage.log_entries import BY, ENGINE, ID, Commit, Draft
from seamline.lake.storage.log_follower import since_boot
from seamline.lake.storage.synced_log import Synced
from seamline.lake.storage.table_settings import parse_log_retention
from seamline.lake.store.explained_errors import explain_errors
from seamline.lake.store.locations import Location
from seamline.lake.store.promises import is_asking_free
from seamline.model.errors import Conflict, FenceLost, Overtaken

TOKEN = commit_conflicts.TOKEN
OVERTAKEN = ("concurrent", "changed since")
"""What deltalake says of a commit that another has overtaken; a full disk says neither."""
log = logging.getLogger("seamline.lake")


class Committed(Synced):
    """One Delta table at one version; only ``refresh`` and its own commits move it on."""

    def __init__(self, root: Location, handle: DeltaTable, newest: Commit | None) -> None:
        super().__init__(root, handle, newest)
        self.token: int | None = None
        self.insists = False
        """Whether a commit of which nobody knows is tried until someone does; else its writer goes on without it."""

    def fence(self, token: int) -> None:
        """Take the table over: from here on only commits under ``token`` succeed (rule 4).

        A live writer's commits may come in between; only a newer token is stronger.
        """
        while True:
            self.refresh()
            held = self.txn(TOKEN)
            if held is not None and held >= token:
                raise FenceLost(
                    f"{self.root.name} already carries token {held}, ours is {token}.",
                    hint="a newer writer is running; this one exits.",
                )
            self.token = token
            try:
                self._commit([], {TOKEN: token}, {}, synced=self.synced)
            except (Overtaken, FenceLost):
                continue
            return

    def append(
        self,
        files: Iterable[DataFile],
        *,
        txns: Mapping[str, int] | None = None,
        metadata: Mapping[str, str] | None = None,
        removes: Iterable[RemoveAction] = (),
        instead: pa.Schema | None = None,
        sync: bool | None = None,
    ) -> int:
        """Commit files (none is fine) and return the new version.

        With ``instead`` they replace all there is, and the table has that schema from then on. ``sync`` says whether
        the commit is on disk before this returns; without a word the table says so (``synced``).
        With a token the commit is fenced and raises FenceLost; without one it is conditional on its
        ``txns`` and raises Conflict.
        """
        now = datetime.now(UTC)
        written = list(files)
        for file in written:
            # A store has said that what was put there is there; to ask it again is a request for each.
            if is_asking_free(self.root) and not (self.root / file.path).is_file():
                raise FileNotFoundError(f"{self.root / file.path} vanished before its commit")
        actions: list[AddAction | RemoveAction] = [*removes, *(file.add(now) for file in written)]
        marks = dict(txns or {})
        if self.token is not None:
            if self.txn(TOKEN) != self.token:
                raise self._lost()
            marks[TOKEN] = self.token
        synced = self.synced if sync is None else sync
        return self._commit(actions, marks, dict(metadata or {}), instead=instead, synced=synced)

    def _commit(
        self,
        actions: list[AddAction | RemoveAction],
        txns: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        synced: bool,
        instead: pa.Schema | None = None,
    ) -> int:
        if synced:
            self.sync()
            self._sync_files(each.path for each in actions if isinstance(each, AddAction))
        if instead is not None or not self._appends:
            version = self._commit_reshaped(actions, txns, metadata, instead=instead)
            if synced:
                self.sync()
            return version
        draft = Draft.of(actions, txns, metadata, partition_by=self._partition_by, now=datetime.now(UTC))
        while not self._place(draft, synced=synced):
            pass
        if self.version % self._checkpoint_every == 0:
            self._keep_short()
        return self.version

    def _place(self, draft: Draft, *, synced: bool) -> bool:
        """Put a commit under the next version; false if another commit has it that does not concern this one."""
        if not self._follows():
            self._start_anew(draft.commit)
        self.require_ours()
        if synced:
            self.sync()
        ours, data = draft.placed(self.version + 1, self.newest)
        with log_store.draft_entry(self.root, data, synced=synced) as put:
            other = log_store.retry_commit(
                self.root, ours.version, lambda: self._put(put), insists=self.insists
            )
        match (
            Meeting.OURS
            if other is None
            else commit_conflicts.classify_commit_conflict(ours, other, newest=self.newest)
        ):
            case Meeting.OURS:
                self._require_seen(ours)
                if synced:
                    durability.sync_folder(self.root / log_store.FOLDER)
                    self._durable = ours.version
                self._follow(ours)
                self._looked = since_boot()
                return True
            case Meeting.LOST:
                raise self._lost()
            case Meeting.LATE:
                raise Overtaken(
                    f"An earlier commit of this writer has landed late in {self.root.name}.",
                    hint="read the table again: what is committed counts.",
                )
            case Meeting.OVERTAKEN:
                raise self._overtaken()
        self._follow(other or ours)
        return False

    def _put(self, put: Callable[[int], bool]) -> bool:
        return put(self.version + 1)

    def _follows(self) -> bool:
        """Return whether the next number is free, or its entry there: it may have been taken once, and cleaned away."""
        if (mark := self._marked()) == self._checkpoint:
            return True
        if log_store.read_last_checkpoint(self.root) > self.version:
            return log_store.entry_path(self.root, self.version + 1).exists()
        self._checkpoint = mark
        return True

    def _require_seen(self, ours: Commit) -> None:
        """Take back a commit that has landed where another was cleaned away: its writer slept since its last look."""
        if self._outlived() and log_store.read_last_checkpoint(self.root) >= ours.version:
            log_store.entry_path(self.root, ours.version).unlink(missing_ok=True)
            self._start_anew(ours)
            raise self._overtaken()

    def _start_anew(self, ours: Commit) -> None:
        """Read the table again; FenceLost or Conflict if a commit was decided on its earlier state."""
        conflict = self._overtaken()
        self._anew()
        if self.token is not None and self.txn(TOKEN) != self.token:
            raise self._lost()
        if ours.txns or ours.removes:
            raise conflict

    def _commit_reshaped(
        self,
        actions: list[AddAction | RemoveAction],
        txns: Mapping[str, int],
        metadata: Mapping[str, str],
        *,
        instead: pa.Schema | None,
    ) -> int:
        """Commit through deltalake, which knows more of the protocol; whether it did so is read in the log."""
        made = build_commit_properties(txns, metadata)
        self.require_ours()
        try:
            with explain_errors(self.root):
                self.handle.create_write_transaction(
                    actions,
                    "append" if instead is None else "overwrite",
                    self.handle.schema() if instead is None else deltalake.Schema.from_arrow(instead),
                    partition_by=self._partition_by or None,
                    commit_properties=made,
                )
        except (DeltaError, OSError) as error:
            if not self._landed((made.custom_metadata or {})[ID]):
                if isinstance(error, CommitFailedError) and (refusal := self._refusal(str(error).lower())):
                    raise refusal from error
                raise
        self._anew()
        return self.version

    def _landed(self, id: str) -> bool:
        """Return whether the commit of an id is in the log, above the version that is seen."""
        version = self.version + 1
        while (found := log_store.read_commit(self.root, version)) is not None:
            if found.id == id:
                return True
            version += 1
        return False

    def _refusal(self, words: str) -> FenceLost | Conflict | None:
        """Say that a commit was overtaken, where deltalake says so; None if it failed otherwise."""
        if self.token is not None:
            return self._lost() if "concurrent transaction" in words else None
        return self._overtaken() if any(each in words for each in OVERTAKEN) else None

    def _keep_short(self) -> None:
        """Write a checkpoint, which is on disk before anything counts on it; what it sums up is there before."""
        if not is_asking_free(self.root):
            # That reads some hundred objects: no epoch waits for it.
            begin_checkpoint(self.root, parse_log_retention(self.settings))
            return
        try:
            self.sync()
            with explain_errors(self.root):
                self.handle.create_checkpoint()
            durability.sync_file(log_wholeness.classic_checkpoint_path(self.root, self.version))
            durability.sync_folder(self.root / log_store.FOLDER)
            if self.root.name in BEATS:
                delete_old_entries(self.root, parse_log_retention(self.settings), now=datetime.now(UTC))
        except (DeltaError, OSError) as error:
            # The commit has landed; readers have more of them to go through until the next checkpoint.
            log.warning(
                "No checkpoint of %s was written at version %s: %s", self.root.name, self.version, error
            )

    def _overtaken(self) -> Overtaken:
        return Overtaken(
            f"{self.root.name} changed since version {self.version} was read.",
            hint="read it again and decide again.",
        )

    def _lost(self) -> FenceLost:
        newer = Synced(self.root, *log_wholeness.open_whole_table(self.root)).require_ours().txn(TOKEN)
        return FenceLost(
            f"{self.root.name}: token {newer} has replaced ours, {self.token}.",
            hint="a newer writer is running; this one exits and commits nothing more.",
        )


def build_commit_properties(
    txns: Mapping[str, int], metadata: Mapping[str, str] | None = None
) -> CommitProperties:
    """Build what goes with a commit of deltalake's; it has an id, as ours have."""
    return CommitProperties(
        custom_metadata={**(metadata or {}), ID: str(uuid.uuid4()), BY: ENGINE},
        app_transactions=[Transaction(app, version) for app, version in txns.items()] or None,
    )
