"""The first process of a container: ``python init.py COMMAND...`` starts it, passes signals on, and reaps the dead.

What ends with it, however it ends, is all that runs there: Linux sees to that for the first process of a namespace.
"""

import os
import signal
import sys


def main(command: list[str]) -> int:
    """Run until the command has ended; give its exit code, as a shell does."""
    child = os.fork()
    if not child:
        os.execvp(command[0], command)
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda number, _: os.kill(child, number))
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
