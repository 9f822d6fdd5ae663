"""The end of a job's process."""

import signal
import subprocess
import sys

import pytest

JOB = """
import atexit, os, signal, sys
from seamline.spark.ending import end
atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
print("the last word")
print("the reason", file=sys.stderr)
{call}
"""


@pytest.mark.parametrize(("call", "code"), [("end(12)", 12), ("sys.exit(12)", -signal.SIGSEGV)])
def test_a_job_ends_before_a_teardown_that_crashes(call: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", JOB.format(call=call)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "the last word\n", "the reason\n")
