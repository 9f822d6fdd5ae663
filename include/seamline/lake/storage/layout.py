"""Where each table of a pipeline is; the only place that spells a path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seamline.lake.store.locations import Location, list_places, parse_location, path_below
from seamline.model.compile.compiled_pipeline import CompiledView
from seamline.model.compile.problems import NAME
from seamline.model.errors import SetupError
from seamline.model.protocol.warehouse_names import OWN, SHARED, WarehouseName, own_variable

UNSET = ".seamline/warehouse"
"""Where the shared warehouse is if no variable says it."""


@dataclass(frozen=True)
class Layout:
    """The folders of one pipeline's tables."""

    warehouse: Location
    """The folder of all pipelines."""
    pipeline: str
    """Its name, which is the name of its folder."""

    def table(self, name: str) -> Location:
        """Return the folder of a table of the pipeline: master, quarantine, ledger, manifest, ..."""
        return self.warehouse / self.pipeline / name

    def slices(self, view: CompiledView) -> Location:
        """Return the folder of a view version's slices."""
        return self.slices_of(view.id)

    def slices_of(self, id: str) -> Location:
        """Return the folder of the slices of the view version ``name/fingerprint``."""
        return self.warehouse / self.pipeline / "views" / id / "slices"

    def every_slices(self) -> dict[str, Location]:
        """List the folders of the slices of all view versions that have any, by ``name/fingerprint``."""
        folder = self.warehouse / self.pipeline / "views"
        return {path_below(each.parent, folder): each for each in list_places(folder, "*/*/slices")}

    def generations(self, view: CompiledView) -> Location:
        """Return the folder of a view version's generations."""
        return self.generations_of(view.id)

    def generations_of(self, id: str) -> Location:
        """Return the folder of the generations of the view version ``name/fingerprint``."""
        return self.warehouse / self.pipeline / "views" / id / "generations"

    def status(self, name: str) -> Location:
        """Return the place of what machines tell each other of the pipeline, beside its tables and in none of them."""
        return self.table("_status") / f"{name}.json"

    def report(self, run: str) -> Location:
        """Return the folder of what is reported of a run."""
        clean = "".join(c if c.isalnum() or c in "-_." else "_" for c in run)
        return self.table("reports") / f"{clean}-{hashlib.sha256(run.encode()).hexdigest()[:8]}"

    def failure(self, run: str) -> Location:
        """Return the file in which the driver of a run's build says what it ended with."""
        return self.report(run) / "failure.json"

    def approval(self, run: str) -> Location:
        """Return the file that says of which attempt of a run a person was asked to approve the change."""
        return self.report(run) / "asked.json"

    def records(self, hash: str) -> Location:
        """Return the folder of what was validated again by a record version, named by its hash."""
        return self.warehouse / self.pipeline / "records" / hash

    def lookup(self, name: str, version: str) -> Location:
        """Return the file of one version of a look-up, as epochs name it."""
        return self.warehouse / self.pipeline / "lookups" / name / f"{version}.parquet"

    @property
    def schemas(self) -> Location:
        """Return the folder of the writers' schemas that are kept, a folder for each registry."""
        return self.warehouse / self.pipeline / "schemas"

    def asked(self, id: str) -> Location:
        """Return the file that says how far a question to another system has been asked."""
        return self.warehouse / self.pipeline / "asks" / f"{id}.json"

    def snapshots(self, id: str) -> Location:
        """Return the folder of the snapshots of a fold's tails, by the id of its process."""
        return self.warehouse / self.pipeline / "snapshots" / id.replace("/", "-")

    def serving(self, view: CompiledView) -> Location:
        """Return the folder of a view's serving table."""
        return self.warehouse / self.pipeline / "views" / view.name / "serving"

    def every_serving(self) -> list[Location]:
        """List the folders of the serving tables that there are."""
        return list_places(self.warehouse / self.pipeline / "views", "*/serving")


def locate_tables(pipeline: str, warehouse: str | Location | None = None) -> Layout:
    """Return the places of a pipeline's tables: in a warehouse that is given as text or as it is, else by setting."""
    given = parse_location(warehouse) if isinstance(warehouse, str) else warehouse
    return Layout(given or find_warehouse(pipeline), pipeline)


def find_warehouse(pipeline: str) -> Location:
    """Return the place of a pipeline's warehouse by setting: a folder, or a URL such as ``s3://bucket/prefix``."""
    return parse_setting(variable_of(pipeline))


def shared_warehouse() -> Location:
    """Return the place of the warehouse of all pipelines that have none of their own."""
    return parse_setting(SHARED)


def variable_of(pipeline: str) -> str:
    """Return the variable that says where a pipeline's warehouse is: its own if that is set."""
    own = own_variable(pipeline)
    return own if owner_of(own) and os.environ.get(own) else SHARED


def parse_setting(variable: str) -> Location:
    """Return the place that a variable names; SetupError if it is none."""
    try:
        return parse_location(os.environ.get(variable) or UNSET)
    except SetupError as error:
        raise SetupError(error.message, hint=f"correct {variable}: {error.hint}") from error


def warehouse_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what names warehouses in an environment: the text by the variable, that of all pipelines first.

    An empty one is as if it were not set.
    """
    own = {name: text for name, text in environ.items() if owner_of(name) and text}
    return {SHARED: environ.get(SHARED) or UNSET, **dict(sorted(own.items()))}


def owner_of(variable: str) -> str:
    """Return the pipeline whose own warehouse a variable names, defined or not; empty for any other variable."""
    name = variable.removeprefix(OWN).lower()
    return name if NAME.fullmatch(name) and variable == own_variable(name) else ""


def list_warehouses() -> list[Location]:
    """List the places of all warehouses that are named by setting, each once, the shared one first."""
    return [*dict.fromkeys(map(parse_setting, warehouse_settings(os.environ)))]


def list_pipelines_apart() -> list[str]:
    """List the pipelines that have a warehouse of their own by setting, defined or not."""
    return [*filter(None, map(owner_of, warehouse_settings(os.environ)))]


def name_warehouse(place: Location) -> WarehouseName:
    """Return the words that mean the warehouse at a place; those for the shared one where nothing names it."""
    named = []
    for variable in warehouse_settings(os.environ):
        with suppress(SetupError):
            if parse_setting(variable) == place:
                named.append(variable)
    variables = tuple(named) or (SHARED,)
    return WarehouseName(variables, owner_of(variables[0]))


def home_folder() -> Path:
    """Return the folder of everything but tables: driver logs, checkpoints, heartbeats."""
    return Path(os.environ.get("SEAMLINE_HOME", ".seamline")).resolve()


def definitions_folder() -> Path:
    """Return the folder of definitions: SEAMLINE_PIPELINES, else a checkout's or a project's, if we are in one."""
    in_project = Path("pipelines").is_dir() and not Path("include/pipelines").is_dir()
    default = "pipelines" if in_project else "include/pipelines"
    return Path(os.environ.get("SEAMLINE_PIPELINES", default)).resolve()
