"""Hosts on one machine: what they share, and what ends with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cluster.composition import ROOT
from tests.cluster.hosts import Network, NoNamespaces, why_no_hosts

TRIAL = """
import json, os, sys, time
from pathlib import Path
from tests.cluster.hosts import INSIDE, Host, Network, enter_own_machine

if os.environ.get(INSIDE) != "1":
    sys.exit(enter_own_machine([sys.executable, *sys.argv]).wait())
network = Network(Path(sys.argv[1]), ["a", "b"])
shared = network.folder / "volume"
hosts = {name: Host(network, name, [shared]) for name in network.addresses}
detached = "import os, time; os.fork() or (os.setsid(), time.sleep(600))"
for name, host in hosts.items():
    (host.folder / "own").touch()
    command = ["sh", "-c", f'python -c "{detached}"; echo $TOLD; exec sleep 600']
    host.start(command, {"TOLD": name, "PATH": os.environ["PATH"]})
while not all(len(host.processes()) == 2 for host in hosts.values()):
    time.sleep(0.05)
told = {"seen": hosts["a"].run("ls", str(network.folder)).stdout.split()}
told["name"] = hosts["a"].run("hostname").stdout.strip()
listen = "import socket; s = socket.create_server(('', 7)); print(s.accept()[0].recv(9))"
call = "import socket; socket.create_connection(('b', 7), 3).sendall(b'x')"
python = sys.executable
hosts["b"].run("sh", "-c", f'{python} -c "{listen}" > {hosts["b"].folder}/heard 2>&1 &')
while hosts["a"].run(python, "-c", call).returncode:
    time.sleep(0.05)
told["heard"] = (hosts["b"].folder / "heard").read_text().strip()
network.cut("b")
told["cut"] = hosts["a"].run(python, "-c", call).stderr.splitlines()[-1]
of_a = hosts["a"].processes()
hosts["a"].kill()
told["left"] = [each.pid for each in of_a if each.is_running() and each.status() != "zombie"]
told["others"] = len(hosts["b"].processes())
hosts["b"].stop(5)
told["logs"] = hosts["b"].log.read_text()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if why := why_no_hosts():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("hosts")
    script = folder / "trial.py"
    script.write_text(TRIAL)
    done = subprocess.run(
        [sys.executable, str(script), str(folder / "files")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_host_sees_its_own_files_and_what_it_was_given(told: dict[str, Any]) -> None:
    assert told["seen"] == ["a", "volume"]
    assert told["name"] == "a"


def test_hosts_find_each_other_by_name_until_one_is_cut_off(told: dict[str, Any]) -> None:
    assert told["heard"] == "b'x'"
    assert "timed out" in told["cut"] or "No route to host" in told["cut"]


def test_all_that_runs_on_a_host_ends_with_it(told: dict[str, Any]) -> None:
    """What a command has left behind, in a session of its own, too; nothing of another host."""
    assert told["left"] == []
    assert told["others"] == 2
    assert told["logs"] == "b\n"


def test_nothing_is_left_on_this_machine(told: dict[str, Any]) -> None:
    assert not [name for name in psutil.net_if_addrs() if name in {"hosts", "h0", "h1"}]


def test_hosts_are_made_nowhere_else(tmp_path: Path) -> None:
    """They would be this machine's own network and mounts."""
    with pytest.raises(NoNamespaces, match="enter_own_machine"):
        Network(tmp_path, ["a"])
