"""The class of the example merged_sessions, as a user of the platform would write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any


class Visits:
    """Puts what a visitor has seen on the web and in the app into visits: ten minutes without anything end one."""

    emits = "kind STRING, views INT, moves INT, seconds INT"
    gap = timedelta(minutes=10)

    def group(
        self,
        key: Mapping[str, Any],
        lefts: Sequence[Mapping[str, Any]],
        rights: Sequence[Mapping[str, Any]],
        out: Any,
    ) -> None:
        """Emit each visit of an hour: where it was, how often it moved to the other place, how long it took."""
        seen = [(row["at"], "web") for row in lefts] + [(row["seen_at"], "app") for row in rights]
        for visit in self.cut(sorted(seen)):
            places = [place for _, place in visit]
            kind = "both" if len(set(places)) == 2 else places[0]
            moves = sum(one != other for one, other in pairwise(places))
            out.emit(kind, len(visit), moves, (visit[-1][0] - visit[0][0]) // timedelta(seconds=1))

    def cut(self, seen: Sequence[tuple[datetime, str]]) -> Iterator[Sequence[tuple[datetime, str]]]:
        """Cut what was seen where nothing was for a while."""
        begun = 0
        for number, (one, other) in enumerate(pairwise(seen), 1):
            if other[0] - one[0] > self.gap:
                yield seen[begun:number]
                begun = number
        yield seen[begun:]
