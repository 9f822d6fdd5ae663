"""Exit codes: what a script goes by, one for each error, and all of them on one page.

`python -m tests.unit.project.test_exit_codes` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

import seamline
from seamline.cli.planning.plan_command import BUILDS, DIFFERS
from seamline.lake.storage.durability import FAILED
from seamline.model.errors import SeamlineError

PAGE = Path(__file__).parents[3] / "docs" / "exit-codes.md"
HEAD = f"""# Exit codes

What `seamline` and the jobs end with. Each error has the same name in Python (`seamline.model.errors`; `Refused` is of
`seamline.client`, `TargetUnavailable` of `seamline.sinks.target_errors`). An indented error is a kind of the error
above it; without a number of its own, it ends with that error's. The message states what is wrong, and the hint what
to do.
Written by `python -m tests.unit.project.test_exit_codes`.

| code | error | meaning |
| --- | --- | --- |
| 0 | | Done. |
| 2 | | The command line cannot be parsed. |
| 1 | | A check is not green (`certificate`, `comparisons`, `counts`, `explain`), or an exception not of Seamline's. |
| {FAILED} | | The disk refused a write or a sync. The process ends without a retry; start it again to continue. |
| 130 | | Interrupted from the keyboard. |
| {BUILDS} | | `plan --exit-code`: something is to be built, and no published number is known to change. |
| {DIFFERS} | | `plan --preview --exit-code`: published numbers would change. |
"""


def kinds(
    above: type[SeamlineError] = SeamlineError, depth: int = 0
) -> Iterator[tuple[int, type[SeamlineError]]]:
    """List a class of errors and all of ours below it, each with its depth, by exit code."""
    yield depth, above
    below = [each for each in above.__subclasses__() if each.__module__.startswith("seamline.")]
    for each in sorted(below, key=lambda kind: (kind.exit_code, kind.__name__)):
        yield from kinds(each, depth + 1)


def made() -> str:
    """Write the page."""
    import_all()
    lines = []
    for depth, kind in kinds():
        code = str(kind.exit_code) if "exit_code" in vars(kind) else ""
        name = f"{'&emsp;' * max(depth - 1, 0)}`{kind.__name__}`"
        lines.append(
            f"| {code} | {name} | {' '.join(cleandoc(kind.__doc__ or '').partition(chr(10) * 2)[0].split())} |"
        )
    return HEAD + "\n".join(lines) + "\n"


def import_all() -> None:
    """Import what declares errors."""
    package = Path(seamline.__path__[0])
    for path in package.rglob("*.py"):
        if re.search(r"^class \w+\(\w*Error\):|^    exit_code = ", path.read_text(), re.MULTILINE):
            import_module(".".join(["seamline", *path.relative_to(package).with_suffix("").parts]))


def test_an_exit_code_means_one_thing() -> None:
    """A class has a code of its own, or that of the one above it."""
    import_all()
    own = [kind for _, kind in kinds() if "exit_code" in vars(kind)]
    codes = {kind.exit_code: kind.__name__ for kind in own}
    assert len(codes) == len(own) > 30
    assert not codes.keys() & {0, 2, FAILED, 130, BUILDS, DIFFERS}


def test_the_page_is_the_code() -> None:
    """Someone who reads a number in a log looks here first."""
    assert PAGE.read_text() == made(), "python -m tests.unit.project.test_exit_codes writes it"


if __name__ == "__main__":
    PAGE.write_text(made())
