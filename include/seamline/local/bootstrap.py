"""Sets a checkout up: ``python3 include/seamline/local/bootstrap.py``, by a Python that has nothing but itself.

Every module it imports is stdlib only. What is there already is left alone, so that a second run takes no time;
what was interrupted is done again.
"""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    # The package needs a newer Python than the one that may have to be refused: it is imported after the check.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
else:
    from seamline.local.environment import checkout_environment, write_env

__all__ = ["checkout_environment", "main", "write_env"]

OLDEST, NEWEST = (3, 11), (3, 12)


def python_problem(version: tuple[int, int]) -> str:
    """Say in a sentence why this Python will not do, with the way out; an empty string if it will."""
    if OLDEST <= version <= NEWEST:
        return ""
    return (
        f"Seamline needs Python 3.11 or 3.12; this is {version[0]}.{version[1]} ({sys.executable}).\n\n"
        "Hint: name another one: make demo PYTHON=python3.12"
    )


def set_up(root: Path) -> None:
    """Do what is missing in the checkout at ``root``, after every check; a second set-up waits for the first."""
    from seamline.local import install
    from seamline.local.checkout import Checkout, plan_setup

    checkout = Checkout(root)
    if not plan_setup(checkout):
        return
    _check(root)
    with set_up_alone(checkout.state / "setup.lock"):
        todo = plan_setup(checkout)
        if todo.python:
            _say(f"Installing the pinned requirements into {checkout.venv} ...")
            install.install_requirements(checkout, todo.own_java)
        if todo.java:
            install.settle_java(checkout, todo.own_java)
        for group in todo.parts:
            _say(f"Fetching the Java parts for {group} ...")
            install.fetch_parts(checkout, group)
        if todo.classes:
            _say("Archiving Spark's classes, so that every start of it is shorter ...")
            if not install.archive_classes(checkout, todo.own_java):
                _say(f"This Java makes no such archive, see {checkout.log}; Spark starts without.")


def main() -> int:
    """Set up the checkout this file is in; return the exit code."""
    problem = python_problem(sys.version_info[:2])
    if problem:
        print(problem, file=sys.stderr)
        return 6
    from seamline.model.errors import SetupError

    try:
        set_up(Path(__file__).resolve().parents[3])
    except SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Stopped; the next run goes on from here.", file=sys.stderr)
        return 130
    return 0


def _check(root: Path) -> None:
    from seamline.local import preflight

    preflight.require_platform()
    preflight.require_virtualenv()
    preflight.require_disk(root, 6)
    preflight.require_memory(6)


@contextmanager
def set_up_alone(file: Path) -> Iterator[None]:
    """Take the lock in ``file``, once the set-up that has it now is done."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("Another set-up of this checkout is running; waiting for it ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
