"""The services of docker-compose.yaml as processes of one machine: started in order, killed one by one, stopped."""

from __future__ import annotations

import json
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from cryptography.fernet import Fernet
from tests.cluster.composition import ENDS_WELL, IS_WELL, Service, list_stops, read_composition
from tests.cluster.hosts import Host, Network
from tests.cluster.images import translate, translate_check
from tests.services.server import ServiceBroken, tail

PATIENCE = 240.0
EVERY = 0.5
RESTARTED_AFTER = 1.0


def make_values(executor: str) -> dict[str, str]:
    """Make what a user puts into ``.env``."""
    passwords = ("POSTGRES_PASSWORD", "STORE_SECRET_KEY", "VALKEY_PASSWORD")
    keys = ("AIRFLOW_SECRET_KEY", "AIRFLOW_JWT_SECRET")
    return {
        "AIRFLOW_EXECUTOR": executor,
        "AIRFLOW_FERNET_KEY": Fernet.generate_key().decode(),
        "KAFKA_CLUSTER_ID": urlsafe_b64encode(secrets.token_bytes(16)).decode()[:22],
        **{name: secrets.token_hex(16) for name in (*passwords, *keys)},
    }


@dataclass
class ProcessStack:
    """All services of a composition; ``more`` is added to the environment of each of ours."""

    folder: Path
    profile: str = ""
    """A profile of the composition beside its services without one: ``celery``."""
    s3: str = "versitygw"
    more: dict[str, str] = field(default_factory=dict)
    seen_well: set[str] = field(init=False, default_factory=set)
    services: dict[str, Service] = field(init=False)
    hosts: dict[str, Host] = field(init=False)
    stopped: set[str] = field(init=False, default_factory=set)
    """The hosts that are to stay down."""

    def __post_init__(self) -> None:
        values = make_values("CeleryExecutor" if self.profile == "celery" else "LocalExecutor")
        found = read_composition(values, profiles=[self.profile])
        self.services = {each.name: each for each in found}
        names = [name for each in found for name in each.hosts]
        self.network = Network(self.folder, names)
        volumes = {name for each in found for name in each.volumes}
        self.volumes = {name: self.network.folder / "volumes" / name for name in volumes}
        self.hosts = {
            name: Host(self.network, name, [self.volumes[volume] for volume in each.volumes])
            for each in found
            for name in each.hosts
        }
        self.over = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)

    def keep(self) -> None:
        """Start again what has ended and nobody has stopped, as an engine of containers does."""
        while not self.over.wait(RESTARTED_AFTER):
            for name, host in self.hosts.items():
                code = host.code
                if (
                    code is not None
                    and name not in self.stopped
                    and self.service_of(name).is_started_again(code)
                ):
                    self.start_host(name)

    def service_of(self, host: str) -> Service:
        """Return the service that a host is of."""
        return next(each for each in self.services.values() if host in each.hosts)

    def start(self) -> None:
        """Start all that is not up, each when what it depends on is there; ServiceBroken if one cannot."""
        self.keeper.start()
        for service in self.services.values():
            for name, condition in service.depends_on.items():
                for host in self.services[name].hosts:
                    self.await_condition(host, condition)
            for host in service.hosts:
                if not self.hosts[host].runs:
                    self.start_host(host)
        for service in self.services.values():
            for host in service.hosts:
                self.await_condition(host, ENDS_WELL if service.ends else IS_WELL)
        if self.s3 == "moto":
            make_lake(self.services["s3"])

    def start_host(self, name: str) -> None:
        """Start the container of one host, with the files that it had."""
        service, host = self.service_of(name), self.hosts[name]
        command, environment = translate(service, host.folder, self.volumes, s3=self.s3)
        host.start(command, {**environment, **self.more})

    def await_condition(self, name: str, condition: str) -> None:
        """Wait until a host is as another service asks for."""
        host = self.hosts[name]
        if condition == ENDS_WELL:
            self.wait(f"{name} to end", lambda: host.code == 0, hosts=[name])
        elif name not in self.seen_well:
            self.await_well(name)
            self.seen_well.add(name)

    def await_well(self, name: str) -> float:
        """Wait until a host runs, and its health check is content; return the seconds it took."""
        return self.wait(f"{name} to be well", lambda: self.is_well(name), hosts=[name])

    def is_well(self, name: str) -> bool:
        """Return what the health check of a host says."""
        host, check = self.hosts[name], translate_check(self.service_of(name))
        try:
            return host.runs and (not check or host.run(*check).returncode == 0)
        except (psutil.NoSuchProcess, IndexError):
            return False

    def wait(
        self, what: str, done: Callable[[], bool], *, hosts: Sequence[str] = (), seconds: float = PATIENCE
    ) -> float:
        """Wait for a condition; return the seconds it took. ServiceBroken, with the logs of ``hosts``, if it fails."""
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > seconds:
                logs = "\n".join(tail(self.hosts[name].log, 40) for name in hosts)
                raise ServiceBroken(f"Waited {time.monotonic() - began:.0f} s for {what}.\n{logs}")
            time.sleep(EVERY)
        return time.monotonic() - began

    def kill(self, name: str) -> None:
        """End a host at once, with all that runs there; it is started again as its service says."""
        self.hosts[name].kill()

    def take_away(self, name: str) -> None:
        """End a host at once, for good."""
        self.stopped.add(name)
        self.hosts[name].kill()

    def bring_back(self, name: str) -> None:
        """Start a host that was taken away."""
        self.stopped.discard(name)

    def stop(self) -> None:
        """Stop all, those that others need last."""
        self.over.set()
        if self.keeper.ident:
            self.keeper.join()
        with ThreadPoolExecutor() as at_once:
            for services in list_stops(self.services.values()):
                ends = [
                    at_once.submit(self.hosts[name].stop, each.grace)
                    for each in services
                    for name in each.hosts
                ]
                for each in ends:
                    each.result()

    def find_password(self) -> str:
        """Return the password that Airflow's API server has made up for the user admin."""
        [server] = self.services["airflow-api-server"].hosts
        made = self.hosts[server].folder / "srv" / "airflow" / "simple_auth_manager_passwords.json.generated"
        found: str = json.loads(made.read_text())["admin"]
        return found

    def run(self, host: str, *command: str, timeout: float = 300) -> str:
        """Run a command on a host, as ``docker compose exec`` does; ServiceBroken if it fails."""
        done = self.hosts[host].run(*command, timeout=timeout)
        if done.returncode:
            raise ServiceBroken(
                f"{' '.join(command)} on {host} ended with {done.returncode}.\n{done.stderr[-3000:]}"
            )
        return done.stdout

    def logs(self, names: Iterable[str]) -> str:
        """Return the last lines of some hosts' logs."""
        return "\n".join(tail(self.hosts[name].log) for name in names)


def make_lake(server: Service) -> None:
    """Make the bucket of the composition on a server that has no folder for one."""
    import boto3

    keys = {name: server.environment[f"ROOT_{name}_KEY"] for name in ("ACCESS", "SECRET")}
    boto3.client(
        "s3",
        endpoint_url="http://s3:7070",
        region_name="us-east-1",
        aws_access_key_id=keys["ACCESS"],
        aws_secret_access_key=keys["SECRET"],
    ).create_bucket(Bucket="lake")
