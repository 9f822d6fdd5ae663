"""docker-compose.yaml and the image's Dockerfile as they say what runs: read here, and nowhere written again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
OURS = "seamline:"
"""What the name of the image begins with that the Dockerfile makes."""
ENDS_WELL, IS_WELL = "service_completed_successfully", "service_healthy"
VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>[A-Z][A-Z0-9_]*)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\})")
DURATION = re.compile(r"(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")


@dataclass(frozen=True)
class Service:
    """One service, with all values filled in."""

    name: str
    image: str
    command: tuple[str, ...]
    """Empty for the image's own."""
    environment: Mapping[str, str]
    depends_on: Mapping[str, str]
    """The condition of each service that has to be there before."""
    check: tuple[str, ...]
    """The command that says whether it is well; empty if there is none."""
    volumes: Mapping[str, str]
    """Where each volume is mounted, by the volume's name."""
    replicas: int
    profiles: tuple[str, ...]
    restart: str = ""
    """Compose's word for when a container that has ended is started again; empty for never."""
    grace: float = 10.0
    """The seconds that it has to end when it is asked to."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names of its containers: the service's own, with a number where it has several."""
        if self.replicas == 1:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.replicas + 1))

    def is_started_again(self, code: int) -> bool:
        """Return whether a container that nobody has stopped is started again after it has ended with a code."""
        return self.restart in ("always", "unless-stopped") or (self.restart == "on-failure" and code != 0)

    @property
    def ends(self) -> bool:
        """Whether it has work that ends, as an ``init`` has."""
        return self.name.endswith("-init")


def read_composition(values: Mapping[str, str], *, profiles: Sequence[str] = ()) -> list[Service]:
    """Read the services of docker-compose.yaml for some profiles, each behind those that it depends on.

    ``values`` are what a user has in ``.env``; ValueError names one that the file asks for and ``values`` lack.
    """
    text = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    found = {name: read_service(name, fill_in(given, values)) for name, given in text["services"].items()}
    meant = {
        name: each for name, each in found.items() if not each.profiles or {*each.profiles} & {*profiles}
    }
    return [meant[name] for name in order_services(meant.values())]


def read_service(name: str, given: Mapping[str, Any]) -> Service:
    """Read one service as YAML gives it."""
    environment = {key: str(value) for key, value in given.get("environment", {}).items()}
    volumes = dict(str(each).split(":", 1) for each in given.get("volumes", ()))
    depends = {key: str(how["condition"]) for key, how in given.get("depends_on", {}).items()}
    check = tuple(given.get("healthcheck", {}).get("test", ()))
    return Service(
        name=name,
        image=given["image"],
        command=tuple(map(str, given.get("command", ()))),
        environment=environment,
        depends_on=depends,
        check=("sh", "-c", *check[1:]) if check[:1] == ("CMD-SHELL",) else check[1:],
        volumes=volumes,
        replicas=int(given.get("deploy", {}).get("replicas", 1)),
        profiles=tuple(given.get("profiles", ())),
        restart=given.get("restart", ""),
        grace=read_duration(given.get("stop_grace_period", "10s")),
    )


def read_duration(text: str) -> float:
    """Return the seconds of what Compose writes as ``1m30s``; ValueError for anything else."""
    if not (found := DURATION.fullmatch(text)) or not text:
        raise ValueError(f"docker-compose.yaml: {text!r} is no duration like 1m30s")
    return 60.0 * int(found["minutes"] or 0) + int(found["seconds"] or 0)


def fill_in(given: Any, values: Mapping[str, str]) -> Any:
    """Fill in the variables of all texts, as Compose does: ``${A}``, ``${A:-default}``, ``${A:?why}``, ``$$``."""
    if isinstance(given, Mapping):
        return {key: fill_in(value, values) for key, value in given.items()}
    if isinstance(given, list):
        return [fill_in(value, values) for value in given]
    return VARIABLE.sub(lambda match: fill_in_one(match, values), given) if isinstance(given, str) else given


def fill_in_one(match: re.Match[str], values: Mapping[str, str]) -> str:
    """Give what stands for one variable."""
    if (name := match["name"]) is None:
        return "$"
    if found := values.get(name):
        return found
    if match["kind"] == "-":
        return match["rest"]
    raise ValueError(f"docker-compose.yaml asks for {name}: {match['rest'] or 'it has no default'}")


def order_services(services: Iterable[Service]) -> Iterator[str]:
    """Go through names so that each comes behind those that it depends on; ValueError where that is a circle."""
    left = {each.name: set(each.depends_on) for each in services}
    while left:
        ready = [name for name, before in left.items() if not before & left.keys()]
        if not ready:
            raise ValueError(f"docker-compose.yaml: these services wait for each other: {', '.join(left)}")
        yield from ready
        for name in ready:
            del left[name]


def list_stops(services: Iterable[Service]) -> Iterator[list[Service]]:
    """Go through services as they are stopped: at once all those that none of the others needs any more."""
    left = {each.name: each for each in services}
    while left:
        needed = {name for each in left.values() for name in each.depends_on}
        ends = [each for name, each in left.items() if name not in needed]
        yield ends
        for each in ends:
            del left[each.name]


def read_image_environment() -> dict[str, str]:
    """Return what the Dockerfile's last ENV sets, PATH among it."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    [line] = re.findall(r"^ENV (.+)$", text, re.MULTILINE)
    return dict(word.split("=", 1) for word in line.split())
