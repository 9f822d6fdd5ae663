"""The automaton of steps: positions that wait for a row, and what may come after each, in order of preference.

What is preferred is what SQL prefers (ISO/IEC 19075-5, 7.2): alternatives as they are written, more rows before fewer,
behind ``?`` the other way. A repetition that has matched no row, at or behind the least number of them, is the last.
"""

from __future__ import annotations

from dataclasses import dataclass

from seamline.model.errors import DefinitionError
from seamline.model.patterns.steps import Steps
from seamline.model.patterns.tree import Choice, Repeat, Sequence, Step, Tree

ACCEPT = -1
"""In place of a position: the match is whole."""
MOST_POSITIONS = 2_000
"""Positions that an automaton has at most, once counts are written out."""
MOST_ARROWS = 50_000
"""Ways from one position to the next that it has at most."""


@dataclass(frozen=True)
class Automaton:
    """Positions of steps; what follows is in order of preference, and nothing behind ACCEPT."""

    steps: tuple[int, ...]
    """The number of each position's step."""
    first: tuple[int, ...]
    """The positions at which a match may begin."""
    follow: tuple[tuple[int, ...], ...]
    """What may come after each position."""


def build_automaton(steps: Steps) -> Automaton:
    """Build the automaton of steps; DefinitionError where it is too large."""
    positions = count_positions(steps.tree)
    if positions > MOST_POSITIONS:
        raise DefinitionError(
            f"Steps {steps.text!r} have {positions:,} places for rows once counts are written out, more than "
            f"{MOST_POSITIONS:,}.",
            hint="use smaller counts: {,600} or + instead of {,6000}.",
        )
    graph = Graph()
    begin = graph.add_tree(steps.tree, graph.add(Accept()))
    first, arrows = graph.find_next(begin), 0
    follow = []
    for row in graph.rows:
        follow.append(graph.find_next(row.next))
        arrows += len(follow[-1])
        if arrows > MOST_ARROWS:
            raise DefinitionError(
                f"Steps {steps.text!r} have more than {MOST_ARROWS:,} ways from one row to the next.",
                hint="repeat fewer parts that may be left out.",
            )
    return Automaton(tuple(row.step for row in graph.rows), tuple(first), tuple(map(tuple, follow)))


def count_positions(tree: Tree) -> int:
    """Count the positions of a tree."""
    match tree:
        case Sequence(parts) | Choice(parts):
            return sum(map(count_positions, parts))
        case Repeat(part, least, most):
            return count_positions(part) * (max(least, 1) if most is None else most)
    return 1


@dataclass
class Row:
    """A node that takes a row."""

    step: int
    """The number of the step whose condition the row has to meet."""
    next: int
    """The node behind it."""
    position: int
    """Its number among the nodes that take a row."""


@dataclass
class Split:
    """A node that goes on at any of several, the preferred one first."""

    ways: tuple[int, ...]
    """The nodes behind it."""


@dataclass
class Enter:
    """A node at which a repetition begins."""

    next: int
    """The node behind it."""


@dataclass
class Leave:
    """A node at which a repetition ends."""

    enter: int
    """The node at which it began."""
    again: int
    """Where to go on if it took a row."""
    out: int
    """Where to go on if it took none."""


@dataclass
class Accept:
    """The node at the end."""


Node = Row | Split | Enter | Leave | Accept


class Graph:
    """Nodes by number, built from the end to the beginning."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.rows: list[Row] = []

    def add(self, node: Node) -> int:
        """Add a node, and return its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def add_tree(self, tree: Tree, next: int) -> int:
        """Add a tree before a node, and return where it begins."""
        match tree:
            case Step(number):
                self.rows.append(Row(number, next, len(self.rows)))
                return self.add(self.rows[-1])
            case Sequence(parts):
                for part in reversed(parts):
                    next = self.add_tree(part, next)
                return next
            case Choice(parts):
                return self.add(Split(tuple(self.add_tree(part, next) for part in parts)))
        return self.add_repeat(tree, next)

    def add_repeat(self, tree: Repeat, next: int) -> int:
        """Add a part that is repeated: as often as it must be, and then as often as it may be."""
        least, begin = tree.least, next
        if tree.most is None:
            enter, leave = self.add_once(tree.part, next, next)
            begin = leave.again = self.add_split(tree, enter, next)
            if least:
                begin = enter
        else:
            for _ in range(tree.most - least):
                begin = self.add_split(tree, self.add_once(tree.part, begin, next)[0], next)
            if least:
                begin = self.add_once(tree.part, begin, next)[0]
        for _ in range(least - 1):
            begin = self.add_tree(tree.part, begin)
        return begin

    def add_split(self, tree: Repeat, more: int, next: int) -> int:
        """Add the choice between one more and no more."""
        return self.add(Split((next, more) if tree.reluctant else (more, next)))

    def add_once(self, part: Tree, again: int, out: int) -> tuple[int, Leave]:
        """Add a repetition; return where it begins, and its end."""
        enter = Enter(0)
        number = self.add(enter)
        leave = Leave(number, again, out)
        enter.next = self.add_tree(part, self.add(leave))
        return number, leave

    def find_next(self, begin: int) -> list[int]:
        """List the positions that can be reached without a row, in order of preference, up to ACCEPT."""
        found: dict[int, None] = {}
        seen: set[tuple[int, frozenset[int]]] = set()
        waiting = [(begin, frozenset[int]())]
        while waiting:
            if (at := waiting.pop()) in seen:
                continue
            seen.add(at)
            number, entered = at
            node = self.nodes[number]
            match node:
                case Accept():
                    return [*found, ACCEPT]
                case Row():
                    found[node.position] = None
                case Split(ways):
                    waiting += [(way, entered) for way in reversed(ways)]
                case Enter(next):
                    waiting.append((next, entered | {number}))
                case Leave(enter, again, out):
                    waiting.append((out if enter in entered else again, entered - {enter}))
        return [*found]
