"""Where each table of a pipeline is; the only place that spells a path."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from seamline.lake.store.locations import Location, list_places, parse_location, path_below
from seamline.model.compile.compiled_pipeline import CompiledView


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

    def records(self, hash: str) -> Location:
        """Return the folder of what was validated again by a record version, named by its hash."""
        return self.warehouse / self.pipeline / "records" / hash

    def lookup(self, name: str, version: str) -> Location:
        """Return the file of one version of a look-up, as epochs name it."""
        return self.warehouse / self.pipeline / "lookups" / name / f"{version}.parquet"

    def serving(self, view: CompiledView) -> Location:
        """Return the folder of a view's serving table."""
        return self.warehouse / self.pipeline / "views" / view.name / "serving"

    def every_serving(self) -> list[Location]:
        """List the folders of the serving tables that there are."""
        return list_places(self.warehouse / self.pipeline / "views", "*/serving")


def warehouse_folder() -> Location:
    """Return the place of the warehouse by setting: a folder, or a URL such as ``s3://bucket/prefix``."""
    return parse_location(os.environ.get("SEAMLINE_WAREHOUSE", ".seamline/warehouse"))


def locate_warehouse(given: str | Location | None) -> Location:
    """Return the place of a warehouse that is given as text or as it is; by setting where none is."""
    return parse_location(given) if isinstance(given, str) else given or warehouse_folder()


def home_folder() -> Path:
    """Return the folder of everything but tables: driver logs, checkpoints, heartbeats."""
    return Path(os.environ.get("SEAMLINE_HOME", ".seamline")).resolve()


def definitions_folder() -> Path:
    """Return the folder of definitions: SEAMLINE_PIPELINES, else a checkout's or a project's, if we are in one."""
    in_project = Path("pipelines").is_dir() and not Path("include/pipelines").is_dir()
    default = "pipelines" if in_project else "include/pipelines"
    return Path(os.environ.get("SEAMLINE_PIPELINES", default)).resolve()
