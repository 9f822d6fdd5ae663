"""A failover asked for where no Spark is: a process of its own carries it out, and says what came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

from seamline.model.errors import SeamlineError, SetupError
from seamline.supervisor.clusters.failover_orders import FailoverOrder

HINT = "\n\nHint: "


def run_failover(
    pipeline: str, order: FailoverOrder, env: Mapping[str, str], say: Callable[[str], object]
) -> None:
    """Carry out an order and say in lines what was done; what it is refused with is raised. ``env`` has the logins."""
    argv = [f"--pipeline={pipeline}", f"--order={order.to_json()}"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "seamline.jobs.failover", *argv],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )
    for line in done.stdout.splitlines():
        say(line)
    if done.returncode:
        raise find_error(done.returncode, done.stderr.strip())


def find_error(code: int, said: str) -> SeamlineError:
    """Return the error that a process has ended with, by its exit code and its words."""
    message, _, hint = said.partition(HINT)
    for each in list_errors(SeamlineError):
        if each.exit_code == code and each.__init__ is SeamlineError.__init__:
            return each(message, hint=hint)
    return SetupError(
        f"The process that fails over ended with exit code {code}: {message[-2000:]}", hint=hint
    )


def list_errors(kind: type[SeamlineError]) -> Iterator[type[SeamlineError]]:
    """List the kinds of errors below one, those that are more general first."""
    for each in kind.__subclasses__():
        yield each
    for each in kind.__subclasses__():
        yield from list_errors(each)
