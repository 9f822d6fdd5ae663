"""Hosts on one machine: each has a name, an address, processes, and files that no other sees, by Linux's namespaces.

A process that uses them runs in namespaces of its own, which ``enter_own_machine`` makes: nothing here touches the
network or the mounts of the machine, and all hosts end with that process.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from tests.services.server import tie

INIT = Path(__file__).with_name("init.py")
INSIDE = "SEAMLINE_INSIDE_CLUSTER"
NETWORK = "10.89.0"
"""The first three numbers of all addresses; the network is this process's alone."""
MOST = 250
MADE_WITHIN = 10.0
OUR_OWN = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
APART = ["unshare", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]


class NoNamespaces(Exception):
    """This machine lets nobody make hosts; the message says what is missing."""


def why_no_hosts() -> str:
    """Return what this machine lacks for hosts; empty if it has all."""
    if sys.platform != "linux":
        return "Hosts on one machine need Linux's namespaces."
    for name in ("unshare", "nsenter", "ip"):
        if shutil.which(name) is None:
            return f"{name} is not on PATH.\n\nHint: install util-linux and iproute2."
    done = subprocess.run([*as_root(), *OUR_OWN, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"No namespaces can be made here: {done.stderr.strip()}\n\nHint: run it as root."
    return ""


def as_root() -> list[str]:
    """Return what makes an ordinary user root of namespaces."""
    return [] if os.getuid() == 0 else ["unshare", "--user", "--map-root-user"]


def enter_own_machine(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command in namespaces of its own, where it can make hosts; NoNamespaces if that cannot be done."""
    if why := why_no_hosts():
        raise NoNamespaces(why)
    words = [*tie(), str(shutil.which("unshare")), *[*as_root(), *OUR_OWN, *command][1:]]
    return subprocess.Popen(words, env={**os.environ, INSIDE: "1"})


class Network:
    """The hosts of this process by name, and the folder of their files, of which each sees its own."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """Make a network and the names in it; the process must be in namespaces of its own."""
        if os.environ.get(INSIDE) != "1":
            raise NoNamespaces("Hosts are made by a process that enter_own_machine has started.")
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        addresses = [f"{NETWORK}.{number}" for number in range(2, MOST)]
        self.addresses = dict(zip(names, addresses, strict=False))
        known = self.folder / "hosts"
        lines = [f"{NETWORK}.1 here", *(f"{address} {name}" for name, address in self.addresses.items())]
        known.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        run(f"""
            mount -t tmpfs none /run && mkdir /run/netns
            mount --bind {shlex.quote(str(known))} /etc/hosts
            ip link set lo up
            ip link add hosts type bridge && ip addr add {NETWORK}.1/24 dev hosts && ip link set hosts up
        """)
        for number, (name, address) in enumerate(self.addresses.items()):
            run(f"""
                ip netns add {name}
                ip link add h{number} type veth peer name eth0 netns {name}
                ip link set h{number} master hosts up
                ip -n {name} link set lo up
                ip -n {name} addr add {address}/24 dev eth0 && ip -n {name} link set eth0 up
            """)

    def cut(self, name: str) -> None:
        """Cut a host off from all others."""
        run(f"ip -n {name} link set eth0 down")

    def join(self, name: str) -> None:
        """Let a host that was cut off speak with the others again."""
        run(f"ip -n {name} link set eth0 up")


class Host:
    """One host of a network, for one command at a time."""

    def __init__(self, network: Network, name: str, shared: Iterable[Path] = ()) -> None:
        """``shared`` are folders of the network's that it sees beside its own."""
        self.network, self.name = network, name
        self.folder = network.folder / name
        self.seen = [self.folder, *shared]
        for each in (*self.seen, self.folder / "tmp"):
            each.mkdir(parents=True, exist_ok=True)
        self.environment: dict[str, str] = {}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What its command has printed."""
        return self.folder / "log"

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a command with this environment and no more, as the child of a first process that reaps."""
        self.environment = {**environment, "TMPDIR": str(self.folder / "tmp")}
        stash = f"/run/{self.name}"
        mine = [
            f"mkdir -p {stash}/{number} && mount --bind {shlex.quote(str(each))} {stash}/{number}"
            for number, each in enumerate(self.seen)
        ]
        back = [
            f"mkdir -p {shlex.quote(str(each))} && mount --bind {stash}/{number} {shlex.quote(str(each))}"
            for number, each in enumerate(self.seen)
        ]
        hide = f"mount -t tmpfs none {shlex.quote(str(self.network.folder))}"
        go = shlex.join([sys.executable, "-I", "-S", str(INIT), *command])
        cwd = shlex.quote(str(self.folder))
        script = "\n".join(
            ["set -eu", f"hostname {self.name}", *mine, hide, *back, f"cd {cwd}", f"exec {go}"]
        )
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                ["ip", "netns", "exec", self.name, *APART, "sh", "-c", script],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def code(self) -> int | None:
        """The exit code of its command; None while it runs, or before it was started."""
        return self._child.poll() if self._child else None

    @property
    def runs(self) -> bool:
        """Whether its command runs."""
        return self._child is not None and self._child.poll() is None

    def run(self, *command: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run another command there, in the environment of the first one."""
        enter = ["nsenter", "--target", str(self.first().pid), "--mount", "--uts", "--net", "--pid"]
        return subprocess.run(
            [*enter, "--", *command],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def first(self) -> psutil.Process:
        """Return its first process, with which all others end."""
        assert self._child
        until = time.monotonic() + MADE_WITHIN
        while not (found := psutil.Process(self._child.pid).children()) and time.monotonic() < until:
            time.sleep(0.01)
        return found[0]

    def processes(self) -> list[psutil.Process]:
        """List all that runs there but the first process."""
        space = Path(f"/proc/{self.first().pid}/ns/pid").readlink()
        found = []
        for each in psutil.process_iter():
            try:
                inside = Path(f"/proc/{each.pid}/ns/pid").readlink() == space
            except OSError:
                continue
            if inside and each.pid != self.first().pid:
                found.append(each)
        return found

    def kill(self) -> None:
        """End it at once, as a machine does that loses its power."""
        if (child := self._child) and child.poll() is None:
            family = []
            with suppress(psutil.NoSuchProcess, IndexError):
                family = [self.first(), *self.processes()]
            os.killpg(child.pid, signal.SIGKILL)
            child.wait(30)
            psutil.wait_procs(family, 30)

    def stop(self, grace: float) -> None:
        """Ask its command to end, and kill it after some seconds."""
        if not self.runs:
            return
        with suppress(psutil.NoSuchProcess, IndexError):
            self.first().send_signal(signal.SIGTERM)
        until = time.monotonic() + grace
        while self.runs and time.monotonic() < until:
            time.sleep(0.1)
        self.kill()


def run(script: str) -> None:
    """Run commands, each of which must succeed."""
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"A host could not be made: {done.stderr.strip()}")
