"""The generations of an interval as the tables record them, and the commits that choose another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow.compute as pc

from seamline.lake.joins.restatements import read_restated
from seamline.lake.log.epoch_log import read_condensed_log
from seamline.lake.read import serving_table
from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.tables.builds_table import BuildRow, Builds
from seamline.lake.tables.certificates_table import Certificates
from seamline.lake.tables.manifest_table import ManifestTable
from seamline.lake.tables.readiness import require_committed, require_known_decisions, require_repaired
from seamline.lake.tables.view_versions import find_view
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.protocol.certificate_checks import Certificate
from seamline.model.protocol.manifest import Generation, Manifest, Statement
from seamline.model.time.intervals import Interval
from seamline.plan.publish.generation_fates import PastGeneration, fate_of, plan_release, roll_back
from seamline.plan.publish.publication import Decision


def list_past_generations(
    layout: Layout, manifest: Manifest, view_name: str, interval: Interval
) -> list[PastGeneration]:
    """List every generation of an interval, of all versions of a view, in the order they were built."""
    builds = Builds.ensure(layout).about(interval.id) if Table.exists(layout.table("builds")) else []
    certificates = (
        Certificates.ensure(layout).of(interval=interval.id)
        if Table.exists(layout.table("certificates"))
        else []
    )
    built = {(row.view, row.generation): row for row in builds if row.view.partition("/")[0] == view_name}
    judged = {(f"{each.view}/{each.fingerprint}", each.generation): each for each in certificates}
    named = [
        each
        for (view, id), some in manifest.history.items()
        if id == interval.id and view.partition("/")[0] == view_name
        for each in some
    ]
    told = {(each.view, each.generation): each for each in reversed(named)}
    held = {id: count_stored_rows(layout, id, interval) for id in {view for view, _ in [*built, *told]}}
    found = []
    for place in [*built, *(each for each in told if each not in built)]:
        row, stated = built.get(place), told.get(place)
        assert row or stated
        generation = generation_of_build(row, interval) if row else generation_of(told[place], interval)
        certificate = judged.get(place)
        found.append(
            PastGeneration(
                generation,
                fate_of(manifest, generation, certificate),
                row.at if row else None,
                row.seconds if row else 0.0,
                certificate,
                tuple(each for each in named if (each.view, each.generation) == place),
                held[generation.view][generation.id],
            )
        )
    return sorted(found, key=lambda each: first_stated_at(each, interval))


def first_stated_at(one: PastGeneration, interval: Interval) -> datetime:
    """Return the instant by which a generation stands in its history."""
    return one.built or min((each.at for each in one.published if each.at), default=interval.end)


def generation_of_build(row: BuildRow, interval: Interval) -> Generation:
    """Return the generation that a build made."""
    return Generation(
        row.generation, row.view, interval, row.cut, row.rows, row.run, row.reason, row.restated
    )


def generation_of(stated: Statement, interval: Interval) -> Generation:
    """Return a generation as the manifest states it."""
    return Generation(
        stated.generation,
        stated.view,
        interval,
        stated.epoch,
        stated.rows,
        stated.run,
        stated.reason,
        stated.restated,
    )


def count_stored_rows(layout: Layout, view: str, interval: Interval) -> Counter[str]:
    """Count the rows that are there of each generation of a view version's interval."""
    root = layout.generations_of(view)
    if not Table.exists(root):
        return Counter()
    held = Table.open(root).handle.to_pyarrow_dataset()
    rows = held.to_table(columns=["generation"], filter=pc.field("interval") == interval.id)
    return Counter(rows["generation"].to_pylist())


def certificates_of(layout: Layout, view: str) -> list[Certificate]:
    """List the certificates of a view version, oldest first."""
    if not Table.exists(layout.table("certificates")):
        return []
    return Certificates.ensure(layout).of(view=view)


def roll_back_interval(
    pipeline: CompiledPipeline,
    layout: Layout,
    view_name: str,
    interval: Interval,
    *,
    to: str = "",
    decision: Decision,
) -> Statement:
    """Serve another generation of an interval in one commit, and bring the serving table up to date.

    It is held from then on: see ``plan.batch.batch_plan``. Raises NotFound, BadRange, PublishRefused.
    """

    def decide(manifest: Manifest, id: str) -> Statement:
        known = [
            each
            for each in list_past_generations(layout, manifest, view_name, interval)
            if each.generation.view == id
        ]
        chosen = roll_back(
            manifest,
            (id, interval.id),
            known,
            to=to,
            decision=decision,
            now=datetime.now(UTC),
            restated=read_restated(pipeline, layout, read_condensed_log(layout)),
        )
        require_committed(layout, chosen.epoch, chosen.generation)
        require_known_decisions(layout, chosen.restated, chosen.generation)
        return chosen

    require_repaired(layout)
    return commit_decision(pipeline, layout, view_name, interval, decide)


def release_interval(
    pipeline: CompiledPipeline,
    layout: Layout,
    view_name: str,
    interval: Interval,
    *,
    actor: str,
    reason: str,
) -> Statement:
    """Let dirty runs build an interval again that was rolled back."""

    def decide(manifest: Manifest, id: str) -> Statement:
        return plan_release(manifest, (id, interval.id), actor=actor, reason=reason, now=datetime.now(UTC))

    return commit_decision(pipeline, layout, view_name, interval, decide)


def commit_decision(
    pipeline: CompiledPipeline,
    layout: Layout,
    view_name: str,
    interval: Interval,
    decide: Callable[[Manifest, str], Statement],
) -> Statement:
    """Commit what is decided on the served version; decide again whenever another commit came first."""
    view = find_view(pipeline, layout, view_name)
    [statement] = ManifestTable.ensure(layout).decide(
        lambda manifest: [decide(manifest, manifest.serving.get(view_name, view.id))]
    )
    serving_table.refresh_serving_table(pipeline, layout, view, [interval.id])
    return statement
