"""A connection of type ``seamline``: where the tables and definitions are, for DAGs that read them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from seamline.model.errors import BadRange, ConnectionMissing, SeamlineError, SetupError
from seamline.model.protocol.read_request import ReadOptions
from seamline.model.time.intervals import Interval
from seamline.orchestration.store_connection import SETTING, store_settings
from seamline.plan.publish.awaited_intervals import Until

if TYPE_CHECKING:
    import pyarrow as pa

    from seamline.lake.publish.interval_watch import Watch
    from seamline.lake.read.streamed_answer import StreamedAnswer
    from seamline.lake.storage.layout import Layout
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.plan.batch.batch_plan import BatchPlan


@dataclass(frozen=True)
class Places:
    """What a connection says; what is empty is as the settings of the process say."""

    warehouse: str = ""
    """The warehouse: a folder, or a bucket's URL."""
    pipelines: str = ""
    """The folder of definitions."""
    store: str = ""
    """The connection that has the keys of the bucket."""


class SeamlineHook(BaseHook):
    """Reads views, plans builds and watches intervals, where a connection of Airflow's says.

    Without one the settings of Airflow's processes apply (``SEAMLINE_WAREHOUSE``, ``SEAMLINE_PIPELINES``,
    ``SEAMLINE_STORE_CONNECTION``). The connection must be there if its name is not the default.
    """

    conn_name_attr = "seamline_conn_id"
    default_conn_name = "seamline_default"
    conn_type = "seamline"
    hook_name = "Seamline"

    def __init__(self, seamline_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.seamline_conn_id = seamline_conn_id
        self._places: Places | None = None
        self._opened: dict[str, tuple[CompiledPipeline, Layout]] = {}

    @property
    def places(self) -> Places:
        """What the connection says; ConnectionMissing if there is none of that name."""
        if self._places is None:
            self._places = self.read_places()
        return self._places

    def read_places(self) -> Places:
        """Read the connection."""
        try:
            found = self.get_connection(self.seamline_conn_id)
        except AirflowNotFoundException:
            if self.seamline_conn_id == self.default_conn_name:
                return Places()
            raise ConnectionMissing(
                f"Airflow has no connection {self.seamline_conn_id}.",
                hint=f"airflow connections add {self.seamline_conn_id} --conn-type {self.conn_type}, with warehouse "
                "in its extra.",
            ) from None
        if found.conn_type != self.conn_type:
            raise SetupError(
                f"The connection {self.seamline_conn_id!r} is of type {found.conn_type!r}.",
                hint=f"make one of type {self.conn_type}.",
            )
        given = {name: str(found.extra_dejson.get(name) or "") for name in ("warehouse", "pipelines")}
        return Places(**given, store=str(found.extra_dejson.get("store_conn_id") or ""))

    @property
    def store(self) -> str:
        """The connection that has the bucket's keys; empty for what the environment says."""
        return self.places.store or os.environ.get(SETTING, "")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Find the bucket's keys while the block runs."""
        with store_settings(self.store):
            yield

    @property
    def definitions(self) -> Path:
        """The folder of definitions."""
        from seamline.lake.storage.layout import definitions_folder

        return Path(self.places.pipelines).resolve() if self.places.pipelines else definitions_folder()

    def open_pipeline(self, name: str) -> tuple[CompiledPipeline, Layout]:
        """Find a pipeline and its tables, within ``reading``; NotFound if there is no such pipeline."""
        from seamline.lake.storage.layout import locate_tables
        from seamline.lake.tables.table_format import require_format
        from seamline.model.compile.catalog import load_pipeline

        if name not in self._opened:
            layout = locate_tables(name, self.places.warehouse or None)
            self._opened[name] = (load_pipeline(self.definitions, name), require_format(layout))
        return self._opened[name]

    def read(self, view: str, where: str | None = None, **options: Unpack[ReadOptions]) -> pa.Table:
        """Answer for ``PIPELINE.VIEW`` as ``seamline.read`` does, with its options."""
        from seamline.serve.read import read

        with self.reading():
            return read(
                view,
                where,
                warehouse=self.places.warehouse or None,
                definitions=self.definitions,
                **options,
            )

    def stream(self, view: str, where: str | None = None, **options: Unpack[ReadOptions]) -> StreamedAnswer:
        """Answer in parts that fit into bounded memory; within ``reading``."""
        from seamline.serve.streamed import stream_answer

        return stream_answer(
            view, where, warehouse=self.places.warehouse or None, definitions=self.definitions, **options
        )

    def watch(self, view: str, span: Interval, until: str = Until.CERTIFIED) -> Watch:
        """Prepare to wait for intervals of ``PIPELINE.VIEW``, within ``reading``; ``look`` says how far they are."""
        from seamline.lake.publish.interval_watch import Watch

        name, view_name = split_view(view)
        if until not in [*Until]:
            raise BadRange(f"until: {until!r} is not a state.", hint=f"available: {', '.join(Until)}.")
        return Watch.of(*self.open_pipeline(name), view_name, span, Until(until))

    def plan(self, pipeline: str, span: Interval) -> BatchPlan:
        """Say what a build of a span would do: which intervals, why, and what is left out."""
        from seamline.lake.publish.planning import plan_run

        with self.reading():
            return plan_run(*self.open_pipeline(pipeline), asked=span, dirty=False, waits=False)

    def test_connection(self) -> tuple[bool, str]:
        """Say which pipelines there are, for the button Test of the connection's form."""
        from seamline.model.compile.catalog import load_catalog

        try:
            with self.reading():
                names = sorted(load_catalog(self.definitions).pipelines)
                for name in names:
                    self.open_pipeline(name)
        except SeamlineError as error:
            return False, str(error)
        return True, f"{len(names)} pipelines: {', '.join(names)}" if names else "no pipelines there"


def split_view(view: Any) -> tuple[str, str]:
    """Split ``PIPELINE.VIEW``; BadRange for what is none."""
    pipeline, dot, name = str(view).partition(".")
    if not (pipeline and dot and name):
        raise BadRange(f"view: {view!r} is no view.", hint='write "PIPELINE.VIEW", such as "orders.by_hour".')
    return pipeline, name
