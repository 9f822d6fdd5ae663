"""Every error that Seamline raises on purpose, each with its exit code of the CLI (docs/exit-codes.md)."""

from __future__ import annotations


class SeamlineError(Exception):
    """An error without a code of its own; the message states facts, the hint what to do."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message, self.hint = message, hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\n\nHint: {self.hint}" if self.hint else self.message


class DefinitionError(SeamlineError):
    """A pipeline definition that is wrong; names file, line and field where known, and of SQL the column."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", field: str = "", file: str = "", line: int = 0):
        self.field, self.file, self.line, self.column = field, file, line, 0
        super().__init__(message, hint=hint)

    def at(self, *, field: str = "", file: str = "", line: int = 0) -> DefinitionError:
        """Return the same error with the place filled in where it was not yet known."""
        self.field = f"{field}.{self.field}".strip(".") if field else self.field
        self.file, self.line = self.file or file, self.line or line
        return self

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{f'{self.column}:' if self.column else ''} " if self.file else ""
        return f"{place}{f'{self.field}: ' if self.field else ''}{super().__str__()}"


class ExpressionError(DefinitionError):
    """A SQL expression that is wrong, or whose meaning differs between engines."""


class NotFound(SeamlineError):
    """Nothing of that name exists."""

    exit_code = 4


class BadRange(SeamlineError):
    """An argument, bound or file that is invalid."""

    exit_code = 5


class OutsideLife(BadRange):
    """A span that reaches before the pipeline's start or beyond now."""

    exit_code = 8


class SetupError(SeamlineError):
    """The machine lacks something that is needed."""

    exit_code = 6


class StoreRefused(SetupError, OSError):
    """A store refuses what it is asked for, and will until somebody changes a setting, a permission or the bucket."""


class StoreUnavailable(SeamlineError, OSError):
    """A store does not answer, or does not do what it is asked for, for a reason that may pass; nothing is lost."""

    exit_code = 49


class ConnectionMissing(SeamlineError):
    """No connection of that name is configured."""

    exit_code = 7


class NotApproved(SeamlineError):
    """A plan is larger, or a rebuild changes more, than its definition lets through without approval."""

    exit_code = 9


class KafkaUnavailable(SeamlineError):
    """No broker answers."""

    exit_code = 10


class RegistryUnavailable(SeamlineError):
    """A schema registry does not answer, or does not answer as one; the records that need it wait."""

    exit_code = 51


class RegistryRefused(SeamlineError):
    """A schema registry does not let this user read schemas."""

    exit_code = 52


class TopicMissing(SeamlineError):
    """The topic does not exist."""

    exit_code = 11


class TopicRecreated(SeamlineError):
    """A topic of the same name has another topic id than the one read so far."""

    exit_code = 12


class RecordsReplaced(TopicRecreated):
    """Kafka has lost records that were read, and gives their offsets to others, as after an unclean election."""


class OffsetGap(SeamlineError):
    """Offsets between the master's end and what Kafka still has are gone and no hole is registered."""

    exit_code = 13


class KafkaRefused(SeamlineError):
    """Kafka does not let this user do what was asked."""

    exit_code = 15


class LookupBroken(SeamlineError):
    """The table of a look-up cannot be read, lacks a column, or has a key twice."""

    exit_code = 14


class FenceLost(SeamlineError):
    """A newer fencing token has been committed to a table; this writer must exit."""

    exit_code = 20


class Fenced(FenceLost):
    """Another process has taken over the target of a sink; this one has written nothing since."""


class LeaseHeld(SeamlineError):
    """Another supervisor holds the lease of this stream."""

    exit_code = 21


class IntervalRunning(SeamlineError):
    """Another run is building one of the intervals."""

    exit_code = 22


class GaveUp(SeamlineError):
    """A supervisor has given up after failures of its driver, as the restart policy says."""

    exit_code = 23


class ProtocolError(SeamlineError):
    """A rule of the protocol was about to be broken."""

    exit_code = 30


class StraddlesCut(ProtocolError):
    """A slice reaches over the cut of its interval: counting it would count events twice."""

    exit_code = 31


class PublishRefused(ProtocolError):
    """The manifest does not accept this generation."""

    exit_code = 32


class Conflict(ProtocolError):
    """Somebody else committed first; the decision must be made again on what they wrote."""

    exit_code = 33


class Overtaken(Conflict):
    """Another commit came between reading a table and committing to it: nothing was written, and it may be retried."""


class NotRestatable(ProtocolError):
    """A record that counts would be refused, or move into another interval, with a corrected look-up."""


class NotWhole(ProtocolError):
    """A commit or checkpoint (``file``) below a table's folder (``table``) is not whole: the log ends before it."""

    exit_code = 43

    def __init__(self, table: str, file: str, version: int, why: str) -> None:
        self.table, self.file, self.version, self.why = table, file, version, why
        super().__init__(
            f"{file} is not intact: {why}.",
            hint=f"{table} cannot be read from version {version} on. Start the stream: it sets aside what a power loss "
            "has left, and reads from Kafka again. If the start fails with this error too, restore the table.",
        )


class OutOfStep(ProtocolError):
    """Tables contradict each other: part of one was lost, or one was restored without the others."""

    exit_code = 44


class ChangedByOthers(ProtocolError):
    """Another writer has put rows into a table of ours, taken some out, or made it one that we cannot read."""

    exit_code = 45


class CertificateFailed(SeamlineError):
    """A generation did not pass its certificate; it is kept and not served."""

    exit_code = 34


class ReadUnstable(SeamlineError):
    """The tables changed under a read more often than it was ready to start again."""

    exit_code = 35


class TooSlow(SeamlineError):
    """An answer took longer than its caller may wait for."""

    exit_code = 46


class MeasureFailed(SeamlineError):
    """A user's own measure raised, or returned what its declared types cannot hold."""

    exit_code = 36


class SparkFailed(SeamlineError):
    """Spark's JVM has gone, or a task has failed or lost its Python worker; what is published is as it was."""

    exit_code = 48


class DiskFull(SeamlineError):
    """No space is left where something was written; what is published is as it was."""

    exit_code = 37


class OtherFormat(SeamlineError):
    """The tables are of a format that this release does not write: migrate, or use a newer release."""

    exit_code = 38


class MovedAway(SeamlineError):
    """The warehouse was moved, or is being moved, to another place: nothing is written in the old one."""

    exit_code = 50


class AuditFailed(SeamlineError):
    """Kafka, ledger, log and views do not agree with each other, or a sink's target not with what is served."""

    exit_code = 39


class AirflowUnavailable(SeamlineError):
    """Airflow's API does not answer, or refuses the login."""

    exit_code = 40


class AirflowFailed(AirflowUnavailable):
    """Airflow failed at a request itself (HTTP 5xx): how much of it is done is not known."""


class BackfillRefused(SeamlineError):
    """Airflow did not accept the backfill."""

    exit_code = 41


class BackfillFailed(SeamlineError):
    """A backfill has ended, and runs of it failed; what they would have replaced is served on."""

    exit_code = 42
