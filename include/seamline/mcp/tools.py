"""The tools: each asks what a command or the HTTP API asks, and changes nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from seamline.lake.publish.planning import plan_run
from seamline.lake.storage.arrow_types import decoration_fields
from seamline.lake.tables.view_versions import find_served_version, find_view
from seamline.mcp.bounded_answer import encode_bounded
from seamline.mcp.callers import Caller, split_view_name
from seamline.mcp.trust import describe_newest_epoch, describe_pipeline_trust, describe_view_trust
from seamline.model.compile.compiled_pipeline import GROUPING, CompiledPipeline, CompiledView
from seamline.model.compile.contracts.json_schema import list_row_fields
from seamline.model.errors import BadRange, SeamlineError, TooSlow
from seamline.model.time.intervals import Interval, parse_moment
from seamline.plan.wording.plan_text import serialize_plan
from seamline.plan.wording.view_text import describe_measure, serialize_view
from seamline.serve.answer_request import MOST_ROWS
from seamline.serve.completeness import list_asked_cells, list_completeness
from seamline.serve.explain import explain
from seamline.serve.sql.asked import sql as answer_sql
from seamline.serve.sql.statement import parse_statement
from seamline.serve.trust.published_answers import read_trust

PipelineName = Annotated[str, Field(max_length=200, description="The pipeline's name.")]
ViewName = Annotated[str, Field(max_length=400, description="PIPELINE.VIEW, as list_views names it.")]
Start = Annotated[str, Field(max_length=200, description="An instant, UTC, inclusive; empty for no bound.")]
End = Annotated[str, Field(max_length=200, description="An instant, UTC, exclusive; empty for no bound.")]


@dataclass(frozen=True)
class Tools:
    """What one caller may ask."""

    caller: Caller
    """Who asks."""

    def list_views(self) -> str:
        """List the views that you may read, by pipeline: what each is counted by and what it counts, with types, and
        what has been read so far.

        `watermark`: event times up to it are thought to be complete. Ask describe_view for how far a view is certified.
        """

        def made() -> dict[str, Any]:
            return {"pipelines": [self.tell_pipeline(each) for each in readable]}

        readable = self.caller.list_pipelines()
        return encode_bounded(self.caller.work_out(made), "pipelines", "describe_view tells of one view.")

    def tell_pipeline(self, pipeline: CompiledPipeline) -> dict[str, Any]:
        """Tell of one pipeline; what is wrong with its tables keeps nobody from the others."""
        views = [serialize_view(view) for view in pipeline.views]
        told = {"pipeline": pipeline.name, "description": pipeline.definition.description}
        try:
            return {
                **told,
                **describe_newest_epoch(*self.caller.open_pipeline(pipeline.name)),
                "views": views,
            }
        except TooSlow:
            raise
        except SeamlineError as error:
            return {**told, "problem": f"{error.message} {error.hint}", "views": views}

    def describe_view(self, view: ViewName) -> str:
        """Describe a view: its columns, what each measure means, and how far what it answers is right.

        `certified_through`: all intervals up to it were counted again from all records, checked and published.
        `intervals` counts them by state; `late_rows` came after an interval was certified and count in answers; an
        interval is owed (`owed_since`) if it is dirty or has closed and was never built.
        """
        name, own = split_view_name(view)
        pipeline, layout = self.caller.open_pipeline(name)

        def made() -> dict[str, Any]:
            newest = describe_newest_epoch(pipeline, layout)
            _, served = find_served_version(pipeline, layout, find_view(pipeline, layout, own))
            trust = {each.view: describe_view_trust(each) for each in read_trust(pipeline, layout).views}
            return {
                **serialize_view(served),
                "description": pipeline.definition.description,
                "where": served.where.text if served.where else "",
                "columns": [
                    {"name": each.name, "type": each.type.spark, "nullable": each.nullable}
                    for each in list_row_fields(served)
                ],
                "beside": {
                    **dict.fromkeys(list_shown_columns(served), "of a look-up, or the grouping set"),
                    **BESIDE,
                },
                "meaning": {each.name: describe_measure(each.measure) for each in served.measures},
                # A view that the definition no longer has is served, and nobody builds it.
                "right": {**newest, **trust.get(own, {})},
            }

        return encode_bounded(self.caller.work_out(made), "columns", "")

    def query(
        self,
        sql: Annotated[
            str, Field(min_length=1, max_length=8000, description="SELECT ... FROM PIPELINE.VIEW")
        ],
        start: Start = "",
        end: End = "",
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="Rows at most.")] = 200,
    ) -> str:
        """Answer one SELECT in DuckDB's SQL over views, each named PIPELINE.VIEW, with joins between them; all times
        are UTC.

        Bound the windows: by `window_start` in the WHERE, or by `start` and `end` for all views. `views` tells of each
        view how far the rows are right: the last epoch that all of them count (`complete_to`), whether they can still
        change (`final` is false), how many intervals are certified (`summary`), the watermark. Say so with a number.
        `more`: the statement gives more rows than these.
        """
        newest = {}
        for each in sorted({named.pipeline for named in parse_statement(sql).views}):
            newest[each] = describe_newest_epoch(*self.caller.open_pipeline(each))
        found = self.caller.work_out(
            lambda: answer_sql(
                sql,
                start=start or None,
                end=end or None,
                limit=limit,
                memory=self.caller.memory,
                may_read=newest.__contains__,
            )
        ).serialize()
        for told in found["views"]:
            told["watermark"] = newest[split_view_name(told["view"])[0]]["watermark"]
        return encode_bounded(
            {"views": found.pop("views"), **found},
            "rows",
            "ask for fewer columns or windows, aggregate, or page with ORDER BY and OFFSET.",
        )

    def explain(
        self,
        view: ViewName,
        key: Annotated[
            dict[str, str | None],
            Field(max_length=20, description="A value for each key column, as text; null for NULL."),
        ],
        window: Annotated[
            str,
            Field(
                max_length=200, description="The window's start, UTC; START/END where several start there."
            ),
        ] = "",
        rows: Annotated[int, Field(ge=0, le=1000, description="Records to show at most.")] = 10,
        page: Annotated[int, Field(ge=0, le=10**6, description="Page of these records.")] = 0,
    ) -> str:
        """Take one number apart: the published generation and the slices that it is made of, the records that were
        counted, the certificates, and the proofs that all of them add up (`proven`).

        `row.epoch` is the last epoch up to which the number is right, `row.certified` whether it was certified.
        """
        name, own = split_view_name(view)
        pipeline, layout = self.caller.open_pipeline(name)
        find_view(pipeline, layout, own)
        newest = describe_newest_epoch(pipeline, layout)
        found = self.caller.work_out(lambda: explain(view, key, window, page=page, size=rows))
        return encode_bounded(
            {"right": {**newest, "proven": found.proven}, **found.serialize()},
            "rows",
            "ask for fewer rows, and the next page.",
        )

    def completeness(
        self,
        pipeline: PipelineName,
        start: Start = "",
        end: End = "",
        limit: Annotated[int, Field(ge=1, le=1000, description="Intervals of views at most.")] = 100,
        offset: Annotated[int, Field(ge=0, le=10**9, description="Intervals before them.")] = 0,
    ) -> str:
        """Say which intervals of a pipeline's views are certified, open, dirty or were never built, the newest first,
        and how far each view is certified.

        `since`: records that came after the cut of what is published. `holes`: ranges that Kafka lost before they were
        read. `failed`: the newest certificate is red.
        """
        opened = self.caller.open_pipeline(pipeline)

        def made() -> dict[str, Any]:
            newest = describe_newest_epoch(*opened)
            cells = list_completeness(*opened)
            asked = list_asked_cells(cells, start or None, end or None)
            after = offset + limit
            return {
                "right": {**newest, **describe_pipeline_trust(read_trust(*opened, cells))},
                "total": len(asked),
                "next_offset": after if after < len(asked) else None,
                "cells": [asdict(each) for each in asked[offset:after]],
            }

        return encode_bounded(self.caller.work_out(made), "cells", "pass start and end, or page with offset.")

    def plan(self, pipeline: PipelineName, start: Start = "", end: End = "") -> str:
        """Say what a batch run would build now, why, and what it would cost; nothing is built.

        With `start` and `end` of that range, else of the intervals that are dirty or were never built. `cut` is the
        last epoch that it would count, `watermark` how far event time has come there.
        """
        opened = self.caller.open_pipeline(pipeline)
        asked = parse_bounds(start, end)
        if asked is not None:
            opened[0].grid.within_life(asked, now=datetime.now(UTC))
        found = self.caller.work_out(lambda: plan_run(*opened, asked=asked, dirty=asked is None, waits=False))
        told = serialize_plan(found)
        left = told["left_out"]
        told |= {"left_out": left[:LEFT_OUT], "left_out_total": len(left) + found.unnamed}
        return encode_bounded(told, "builds", "pass start and end of a shorter range.")


LEFT_OUT = 20
"""Intervals that a plan leaves out, of which an answer tells."""
BESIDE = {
    "epoch": "the last epoch up to which the row is right",
    "certified": "whether its number was certified",
    "complete": "whether the watermark is past the window's end",
    "phase": "early (before the window closes), complete, or late (corrected since)",
    "batch_part": "records counted by a build",
    "speed_part": "records counted by the stream since",
}
"""The columns that each row has beside its own."""


def list_shown_columns(view: CompiledView) -> list[str]:
    """List the columns of look-ups that are shown beside the keys, and what names a row's grouping set."""
    shown = [each.name for each in decoration_fields(view)]
    return [*([GROUPING] if view.grouped else []), *shown]


def parse_bounds(start: str, end: str) -> Interval | None:
    """Read a range; None for no bounds, BadRange for one of them alone."""
    if not start and not end:
        return None
    if not start or not end:
        raise BadRange("A range needs both bounds.", hint="pass both start and end; end is exclusive.")
    return Interval(parse_moment(start), parse_moment(end))
