"""What a pattern matches, by trying: a pattern is a tree of tuples, and its matches come out in order of preference."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

Tree = tuple[Any, ...]
"""("step", name), ("then", trees), ("or", trees) or ("times", tree, least, most, reluctant)."""
TimedRow = tuple[int, frozenset[str]]
"""When a row is, and which steps' conditions hold for it."""
Found = tuple[int, str]
"""The number of a match's first row, and the names of the steps of its rows."""


def find_matches(
    tree: Tree, rows: Sequence[TimedRow], within: int | None, *, to_next_row: bool
) -> list[Found]:
    """List the matches in rows: from each row on, the first that is found."""
    found, start = [], 0
    while start < len(rows):
        near = [row for row in rows[start:] if within is None or row[0] - rows[start][0] <= within]
        names = next(follow(tree, [holds for _, holds in near], 0), "")
        if names:
            found.append((start, names))
        start += 1 if to_next_row or not names else len(names)
    return found


def follow(tree: Tree, rows: Sequence[frozenset[str]], at: int) -> Iterator[str]:
    """Try all ways through a tree from a row on, the preferred one first."""
    if tree[0] == "step":
        if at < len(rows) and tree[1] in rows[at]:
            yield tree[1]
    elif tree[0] == "or":
        for part in tree[1]:
            yield from follow(part, rows, at)
    elif tree[0] == "then":
        yield from follow_all(tree[1], rows, at)
    else:
        yield from repeat(tree, rows, at, 0)


def follow_all(trees: Sequence[Tree], rows: Sequence[frozenset[str]], at: int) -> Iterator[str]:
    """Try all ways through trees, one after the other."""
    if not trees:
        yield ""
        return
    for first in follow(trees[0], rows, at):
        for rest in follow_all(trees[1:], rows, at + len(first)):
            yield first + rest


def repeat(tree: Tree, rows: Sequence[frozenset[str]], at: int, done: int) -> Iterator[str]:
    """Try all ways to repeat a tree that has been repeated so often; one of no rows is the last once it may be."""
    _, part, least, most, reluctant = tree
    if reluctant and done >= least:
        yield ""
    if most is None or done < most:
        for once in follow(part, rows, at):
            if not once and done + 1 >= least:
                yield ""
                continue
            for rest in repeat(tree, rows, at + len(once), done + 1):
                yield once + rest
    if not reluctant and done >= least:
        yield ""


def write(tree: Tree) -> str:
    """Write a tree as steps."""
    if tree[0] == "step":
        return str(tree[1])
    if tree[0] != "times":
        return f"({(' | ' if tree[0] == 'or' else ' ').join(map(write, tree[1]))})"
    _, part, least, most, reluctant = tree
    count = f"{{{least},{'' if most is None else most}}}"
    signs = {(0, 1): "?", (0, None): "*", (1, None): "+", (least, least): f"{{{least}}}"}
    inner = write(part) if part[0] != "times" else f"({write(part)})"
    return inner + signs.get((least, most), count) + "?" * reluctant


def is_empty(tree: Tree) -> bool:
    """Return whether a tree matches no rows, too."""
    return "" in follow(tree, [], 0)


def grow(dice: random.Random, depth: int) -> Tree:
    """Make a tree up."""
    kind = dice.choice(["step", "then", "or", "times", "times"]) if depth else "step"
    if kind == "step":
        return ("step", dice.choice("abc"))
    if kind != "times":
        return (kind, [grow(dice, depth - 1) for _ in range(dice.randrange(2, 4))])
    least = dice.randrange(3)
    most = dice.choice([None, max(least, 1), least + 1, least + 2])
    return ("times", grow(dice, depth - 1), least, most, dice.random() < 0.4)


def make_rows(dice: random.Random, most: int) -> list[TimedRow]:
    """Make rows up, some at the same time."""
    at, rows = 0, []
    for _ in range(dice.randrange(most + 1)):
        at += dice.choice([0, 1, 1, 2, 5])
        rows.append((at, frozenset(step for step in "abc" if dice.random() < 0.55)))
    return rows
