"""The end of a job's process."""

import signal
import subprocess
import sys

JOB = """
import atexit, os, signal, sys
from seamline.spark.ending import end
atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
print("the last word")
print("the reason", file=sys.stderr)
{call}
"""


def ended(call):
    """Run a job that crashes while Python takes itself down."""
    return subprocess.run(
        [sys.executable, "-c", JOB.format(call=call)], capture_output=True, text=True, check=False
    )


def test_a_job_ends_before_a_teardown_that_crashes():
    """With its own code, and with all that it has said."""
    done = ended("end(12)")
    assert (done.returncode, done.stdout, done.stderr) == (12, "the last word\n", "the reason\n")


def test_the_teardown_does_crash():
    """Else the test above would show nothing."""
    assert ended("sys.exit(12)").returncode == -signal.SIGSEGV
