"""The end of a job's process."""

import signal
import subprocess
import sys

import pytest

JOB = """
import atexit, os, signal, sys
from seamline.runtime.process_exit import exit_process
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
    done = ended("exit_process(12)")
    assert (done.returncode, done.stdout, done.stderr) == (12, "the last word\n", "the reason\n")


def test_the_teardown_does_crash():
    """Else the test above would show nothing."""
    assert ended("sys.exit(12)").returncode == -signal.SIGSEGV


MODULES = {
    "the command line": """
import runpy
sys.argv[1:] = ["--version"]
runpy.run_module("seamline.cli", run_name="__main__")
""",
    "a supervisor": """
import runpy
from seamline.supervisor import process
process.supervise = lambda *_, **__: 0
sys.argv[1:] = ["shop"]
runpy.run_module("seamline.supervisor", run_name="__main__")
""",
}


@pytest.mark.parametrize("name", MODULES)
def test_whoever_uses_tables_ends_so(name, tmp_path, monkeypatch):
    """A supervisor that had ended well was told to have died of a signal."""
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path))
    done = ended(MODULES[name])
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_gone_is_no_error():
    """`seamline ... | head` ends as it would."""
    assert ended("sys.stdout.close(); exit_process(3)").returncode == 3
