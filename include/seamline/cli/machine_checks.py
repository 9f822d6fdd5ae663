"""What `seamline doctor` finds out about this machine: Java, jars, folders, and the bucket of a warehouse."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seamline.model.errors import SeamlineError, SetupError
from seamline.model.protocol.warehouse_names import OWN, own_variable

if TYPE_CHECKING:
    from seamline.lake.store.locations import Location


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    """What was looked at."""
    good: bool
    """Whether it is in order."""
    found: str
    """What was found, in words."""
    hint: str = ""
    """What to do where it is not in order; empty otherwise."""
    note: bool = False
    """Whether it works as it is, and a person should know all the same."""

    def __str__(self) -> str:
        if self.note:
            return f"note  {self.name}: {self.found.rstrip('.')}. Hint: {self.hint}"
        if self.good:
            return f"ok    {self.name}: {self.found}"
        return f"LACKS {self.name}: {self.found.rstrip('.')}. Hint: {self.hint or 'see docs/airflow.md.'}"


def run_check(name: str, look: Callable[[], str]) -> Finding:
    """Turn an error of ours into a finding."""
    try:
        return Finding(name, True, look())
    except SeamlineError as error:
        return Finding(name, False, error.message, error.hint)


def check_java() -> Iterator[Finding]:
    """Look for Java, Spark's jars and the Spark jobs."""
    from seamline.lake.storage.layout import warehouse_settings
    from seamline.runtime.java import is_in_bucket, java_home, spark_jars, store_jars
    from seamline.supervisor.job_files import find_job_file

    def jars() -> str:
        folder = os.environ.get("SEAMLINE_JARS")
        return f"{len(spark_jars())} jars{f' in {folder}' if folder else ''}"

    yield run_check("Java", lambda: str(java_home()))
    yield run_check("Spark's jars", jars)
    if variables := [name for name, text in warehouse_settings(os.environ).items() if is_in_bucket(text)]:
        what = f"Spark's jars for the bucket of {' and '.join(variables)}"
        yield run_check(what, lambda: f"{len(store_jars())} jars")
    yield run_check("Spark jobs", lambda: str(find_job_file("build").parent))
    if named := os.environ.get("SEAMLINE_JOBS"):
        yield Finding("SEAMLINE_JOBS", False, named, "unset it: the package has the jobs of its own release.")


def check_folders() -> Iterator[Finding]:
    """Try to write where tables and state are kept."""
    from seamline.lake.storage.layout import home_folder, name_warehouse, parse_setting, warehouse_settings

    places: dict[Location, None] = {}
    for variable in warehouse_settings(os.environ):
        try:
            places[parse_setting(variable)] = None
        except SeamlineError as error:
            yield Finding(variable, False, error.message, error.hint)
    for place in places:
        yield from check_place(str(name_warehouse(place)), place)
    yield from check_place("SEAMLINE_HOME", home_folder())
    for place in places:
        with suppress(SeamlineError):
            yield from check_moved(place)


def check_place(name: str, place: Location) -> Iterator[Finding]:
    """Try to write in a folder, or in a bucket."""
    from seamline.lake.store.promises import is_on_disk

    if is_on_disk(place):
        yield check_writable(name, place)
    else:
        yield from check_bucket(name, place)


def check_moved(warehouse: Location) -> Iterator[Finding]:
    """Tell whether a warehouse that is set was moved to another place."""
    from seamline.lake.storage.layout import name_warehouse
    from seamline.lake.store.moved_warehouses import read_moved

    with suppress(OSError, SetupError):
        if (moved := read_moved(warehouse)) is not None:
            told = moved.refusal("The warehouse", name_warehouse(warehouse))
            yield Finding(title_of(warehouse), False, told.message, told.hint)


def title_of(warehouse: Location) -> str:
    """Title what is found out about a warehouse."""
    from seamline.lake.storage.layout import name_warehouse

    owner = name_warehouse(warehouse).pipeline
    return f"the warehouse of {owner}" if owner else "the warehouse"


def check_bucket(name: str, place: Location) -> Iterator[Finding]:
    """Try whether of several writers of one object exactly one is told that it has created it; look at its rules."""
    from seamline.lake.store.bucket_rules import list_concerns
    from seamline.lake.store.store_probe import probe_creation

    problem, hint = probe_creation(place)
    yield Finding(name, not problem, problem or str(place), hint)
    for each in () if problem else list_concerns(place):
        yield Finding("the bucket", not each.loses, each.fact, each.hint, note=not each.loses)


def check_variables(pipelines: Iterable[str]) -> Iterator[Finding]:
    """Tell of variables that name the warehouse of no pipeline that is defined."""
    known = sorted(map(own_variable, pipelines))
    for variable in sorted(os.environ):
        if variable.startswith(OWN) and os.environ[variable] and variable not in known:
            said = "names the warehouse of a pipeline that is not defined here"
            hint = f"those that are defined have {', '.join(known)}."
            if variable.upper() in known:
                said, hint = (
                    "is not read: the name of the pipeline is in lower case",
                    f"write {variable.upper()}.",
                )
            yield Finding(variable, True, said, hint, note=True)


def check_neighbours(pipelines: Iterable[str]) -> Iterator[Finding]:
    """Look in each warehouse whether others have tables where ours are, or would be."""
    from seamline.lake.storage.layout import find_warehouse, list_warehouses, shared_warehouse

    names = frozenset(pipelines)
    try:
        places = {name: find_warehouse(name) for name in names}
        warehouses = list_warehouses()
    except SeamlineError as error:
        yield Finding("the warehouse", False, error.message, error.hint)
        return
    for warehouse in warehouses:
        ours = frozenset(name for name, place in places.items() if place == warehouse)
        if ours or warehouse == shared_warehouse():
            yield from check_neighbours_in(warehouse, ours, names - ours)


def check_neighbours_in(
    warehouse: Location, ours: frozenset[str], elsewhere: frozenset[str]
) -> Iterator[Finding]:
    """Look who else has tables in the warehouse of some pipelines; others of ours are ``elsewhere`` by setting."""
    from seamline.lake.storage.layout import Layout, variable_of
    from seamline.lake.tables.occupied_places import list_others, require_free_place

    title = title_of(warehouse)
    try:
        for name in sorted(ours):
            require_free_place(Layout(warehouse, name))
        known, others = list_others(warehouse, ours)
    except SeamlineError as error:
        yield Finding(title, False, error.message, error.hint)
        return
    for name in sorted(elsewhere.intersection(known)):
        said = f"has tables of {name}, which are not read: {variable_of(name)} says where its tables are"
        hint = "correct that variable; or delete what is left here, once nobody needs it."
        yield Finding(title, True, said, hint, note=True)
    if foreign := [name for name in known if name not in elsewhere]:
        said = f"has tables of pipelines that are not defined here: {', '.join(foreign)}"
        hint = (
            "a pipeline of the same name in two projects would be one: give each project a place of its own."
        )
        yield Finding(title, True, said, hint, note=True)
    if others:
        hint = "Seamline leaves it alone; see that it leaves Seamline's tables alone."
        yield Finding(
            title, True, f"has things that are not Seamline's: {', '.join(others)}", hint, note=True
        )


def check_writable(name: str, place: Path) -> Finding:
    """Try a file in a folder, or where it would be made."""
    there = next(each for each in (place, *place.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            return Finding(name, True, str(place))
    except OSError as error:
        hint = f"let this user write there, or set {name}."
        return Finding(name, False, f"{place} cannot be written: {error.strerror}.", hint)
