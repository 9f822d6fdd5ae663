"""Where a sink stands: which version of the serving table its target shows, and how far it is on the way to another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from seamline.model.errors import SetupError
from seamline.model.protocol.sinks.ranges_again import RangeAgain


@dataclass(frozen=True)
class SinkPosition:
    """What a target holds: the serving table as of one version, or a part of the way from that version to another.

    It is kept in the target, and changed in the transactions that change its rows.
    """

    fingerprint: str
    """What is shown there, as ``marks`` says it: the version of the view, what of it is sent, and which commit of the
    serving table it is; of a target that is underway both ends. To a target it is a text."""
    version: int
    """The version of the serving table; -1 on the way from nothing to the first."""
    toward: int | None = None
    """The version on the way to which the target is; None where it is at ``version``."""
    rows: int = 0
    """How many changes of the difference between the two have been written, in their order."""
    again: RangeAgain | None = None
    """A range that is to be sent again once the target is at a version; None for none."""

    def __post_init__(self) -> None:
        underway = self.toward is not None and self.toward > self.version >= -1 and self.rows >= 0
        standing = self.toward is None and self.version >= 0 and self.rows == 0
        if not underway and not standing:
            raise ValueError(f"no sink stands at {asdict(self)}")

    @property
    def needed(self) -> int:
        """The oldest version of the serving table whose rows are still to be compared with others, or sent."""
        return self.version if self.toward is None or self.version >= 0 else self.toward

    @property
    def settled(self) -> bool:
        """Whether the target is at a version, and has no range still to be given again."""
        return self.toward is None and self.again is None

    def ask_again(self, asked: RangeAgain) -> SinkPosition:
        """Return the position of a target that shows the same, and is to be given a range again."""
        return replace(self, again=asked.join(self.again))

    def send_again(self, rows: int, *, whole: bool) -> SinkPosition:
        """Return the position after so many more rows of the range."""
        assert self.again is not None
        return replace(self, again=None if whole else replace(self.again, done=self.again.done + rows))

    def to_json(self) -> str:
        """Write it as JSON; the inverse of ``from_json``."""
        told = asdict(self)
        if self.again is None:
            # So that an earlier release can read it.
            del told["again"]
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> SinkPosition:
        """Read what ``to_json`` wrote; SetupError for anything else."""
        try:
            found: dict[str, Any] = json.loads(text)
            if found.get("again") is not None:
                found["again"] = RangeAgain(**found["again"])
            position = cls(**found)
            whole = [position.version, position.rows, 0 if position.toward is None else position.toward]
            if not isinstance(position.fingerprint, str) or any(type(each) is not int for each in whole):
                raise TypeError("a field is of another type")
        except (ValueError, TypeError, AttributeError) as error:
            raise SetupError(
                f"The position of a sink cannot be read: {error}.",
                hint="nobody else may write it. `seamline sinks resend PIPELINE SINK` writes everything anew.",
            ) from error
        return position
