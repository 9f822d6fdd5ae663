"""The files of a new project: which there are, what they say, and what is in their way."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seamline.model.compile.problems import NAME
from seamline.model.errors import DefinitionError, SetupError

TEMPLATES = Path(__file__).with_name("template")
SUFFIX, HIDDEN = ".in", "dot-"
"""What the name of a template ends with, and what stands for the dot that a build would leave out, of a folder too."""
BLANK = re.compile(r"@([a-z]+)@")


@dataclass(frozen=True)
class ProjectFile:
    """One file that is to be written."""

    path: Path
    """Below the project's folder."""
    text: str
    """All that it says."""


def plan_project(folder: Path, pipeline: str, release: str) -> list[ProjectFile]:
    """List the files of a project in ``folder`` with one example; DefinitionError for a name no pipeline can bear."""
    require_pipeline_name(pipeline)
    words = {"pipeline": pipeline, "project": name_project(folder), "release": release}
    return [fill_template(file, words) for file in sorted(TEMPLATES.rglob(f"*{SUFFIX}"))]


def require_pipeline_name(name: str) -> None:
    """Raise DefinitionError unless a pipeline, and the Python module that declares it, can be called so."""
    if NAME.fullmatch(name) and "__" not in name and not keyword.iskeyword(name):
        return
    why = "is a word of Python's own" if keyword.iskeyword(name) else "is not a valid name of a pipeline"
    near = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
    offer = f"{near}_pipeline" if keyword.iskeyword(near) else near
    raise DefinitionError(
        f"{name!r} {why}.",
        hint="use lower-case letters, digits and single underscores"
        + (f", as in {offer}." if offer and NAME.fullmatch(offer) else "."),
        field="--pipeline",
    )


def name_project(folder: Path) -> str:
    """Return the name that a project's containers bear, which is its folder's, as Compose takes it."""
    return re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-") or "pipelines"


def fill_template(file: Path, words: Mapping[str, str]) -> ProjectFile:
    """Fill the blanks of one template, in its name and in its text."""

    def fill(text: str) -> str:
        return BLANK.sub(lambda blank: words[blank[1]], text)

    place = file.relative_to(TEMPLATES)
    parts = (re.sub(f"^{HIDDEN}", ".", part) for part in place.parts)
    return ProjectFile(Path(fill(str(Path(*parts)).removesuffix(SUFFIX))), fill(file.read_text()))


def read_dag_file() -> str:
    """Read the file that makes the DAGs of the definitions beside its folder, or of SEAMLINE_PIPELINES."""
    return (TEMPLATES / "dags" / f"pipelines.py{SUFFIX}").read_text()


def list_obstacles(folder: Path, files: Iterable[ProjectFile]) -> list[Path]:
    """List what stands where a file is to be written, or where one of its folders is to be made."""
    found = set[Path]()
    for file in files:
        path = folder / file.path
        above = [folder / each for each in file.path.parents]
        found |= {each for each in above if not each.is_dir() and (each.exists() or each.is_symlink())}
        found |= {path} if path.exists() or path.is_symlink() else set()
    return sorted(found)


def write_project(folder: Path, files: Sequence[ProjectFile]) -> None:
    """Write the files; SetupError that names what is in the way of any, before the first is written."""
    if obstacles := list_obstacles(folder, files):
        raise SetupError(
            f"{folder} has in the way of the project's files: {', '.join(map(str, obstacles))}.",
            hint="name a folder that is new, or move them away; nothing was written.",
        )
    for file in files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as output:
            output.write(file.text)
