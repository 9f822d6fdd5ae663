"""Becomes another program, which the system ends with its parent: ``tied.py PARENT SIGNAL USER GROUP COMMAND...``.

It is a program of its own, as a change of the user takes the tie away again, and as it runs before anything that the
other program does. Where the system is not Linux, it is just the other program.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def become(parent: int, sign: int, user: int, group: int, command: list[str]) -> None:
    """Turn into ``command``, which gets ``sign`` when ``parent`` ends; as another user where this one is root."""
    if user != os.getuid():
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sign)
    if os.getppid() != parent:
        sys.exit("The parent has ended before its child had begun.")
    os.execv(command[0], command)


if __name__ == "__main__":
    become(*map(int, sys.argv[1:5]), sys.argv[5:])
