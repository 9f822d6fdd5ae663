"""Exit codes: what a script goes by, one for each error, and all of them in one list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seamline import client
from seamline.model import errors
from seamline.model.errors import SeamlineError


def kinds(above: type[SeamlineError] = SeamlineError) -> Iterator[type[SeamlineError]]:
    """List a class of errors and all below it."""
    yield above
    for below in above.__subclasses__():
        yield from kinds(below)


def test_an_exit_code_means_one_thing() -> None:
    """A class has a code of its own or that of the one above it; the list on top of the module is that of the code."""
    ours = [kind for kind in kinds() if kind.__module__.startswith("seamline.")]
    own = [kind for kind in ours if "exit_code" in vars(kind)]
    codes = {kind.exit_code: kind.__name__ for kind in own}
    assert client.Refused in own and len(codes) == len(own)
    listed = re.findall(r"^ *[*+-] (\w+) +(\d+)", errors.__doc__ or "", re.MULTILINE)
    named = {kind.__name__: kind.exit_code for kind in ours}
    assert {name: named[name] for name, _ in listed} == {name: int(code) for name, code in listed}
    assert {kind.__name__ for kind in own} <= {name for name, _ in listed}
