"""Building here and now, without Airflow: reprocess what must be, plan, build, certify, publish."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from seamline.cli.context import current_actor
from seamline.model.errors import CertificateFailed, NotApproved
from seamline.plan.batch.batch_plan import needs_approval
from seamline.plan.spelling import format_quantity
from seamline.plan.wording.plan_text import format_plan

if TYPE_CHECKING:
    from seamline.lake.publish.publishing import Publication
    from seamline.lake.storage.layout import Layout
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.model.protocol.job_arguments import BuildJob
    from seamline.model.time.intervals import Interval
    from seamline.plan.batch.batch_plan import BatchPlan


def plan_and_build(
    compiled: CompiledPipeline,
    layout: Layout,
    *,
    asked: Interval | None,
    dirty: bool,
    reason: str,
    approve: bool = False,
    bounded: bool = True,
) -> None:
    """Plan a range, the dirty intervals (all of them if not ``bounded``), or both, and carry it out.

    See ``execute_plan`` for what is raised.
    """
    from seamline.lake.publish.planning import plan_run

    reprocess_old_records(compiled, layout)
    made = plan_run(compiled, layout, asked=asked, dirty=dirty, bounded=bounded)
    click.echo("\n".join(format_plan(made)))
    if made.builds:
        execute_plan(compiled, layout, made, reason, approve=approve)


def reprocess_old_records(compiled: CompiledPipeline, layout: Layout, *, err: bool = False) -> None:
    """Reprocess what another record version validated, before planning: an interval may get its first rows."""
    from seamline.lake.log.epoch_log import each_epoch
    from seamline.lake.tables.readiness import require_repaired
    from seamline.lake.tables.reprocessed import Reprocessed
    from seamline.plan.batch.reprocessing_plan import list_outdated_epochs

    require_repaired(layout)
    version = compiled.record_version
    todo = list_outdated_epochs(each_epoch(layout), version, Reprocessed(compiled, layout).verdicts())
    if not todo:
        return
    from seamline.spark.build.reprocessing import reprocess_epochs
    from seamline.spark.session.session import open_spark_session
    from seamline.spark.tasks.job_failures import stop_spark, translate_spark_errors
    from seamline.supervisor.resident import bring_token

    bring_token()
    spark = open_spark_session(f"seamline run {compiled.name}", warehouse=str(layout.warehouse))
    try:
        with translate_spark_errors("reprocessing"):
            records = reprocess_epochs(spark, compiled, layout, until=todo[-1].number)
    finally:
        stop_spark(spark)
    click.echo(f"Reprocessed {records} records of {len(todo)} epochs with {version}.", err=err)


def execute_plan(
    compiled: CompiledPipeline,
    layout: Layout,
    made: BatchPlan,
    reason: str,
    *,
    approve: bool = False,
    err: bool = False,
) -> None:
    """Build what is planned, certify and publish it, and say so (on stderr if ``err``).

    Raises NotApproved where the plan needs approval, or what it changes does, CertificateFailed where any of it is held
    back.
    """
    from seamline.lake.publish.planning import job_of
    from seamline.lake.tables.claims_table import claim_intervals

    bound = compiled.definition.batch.approve_above
    if needs_approval(made, bound) and not approve:
        raise NotApproved(
            f"The plan has more than {bound} intervals of {compiled.name} (approve_above).",
            hint="review the plan above, then run again with --approve.",
        )
    name = f"cli-{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
    job = job_of(compiled, made, run=name, reason=reason, actor=current_actor())
    with claim_intervals(layout, name, current_actor(), job.spans):
        build_and_publish(compiled, layout, job, err=err)


def build_and_publish(
    compiled: CompiledPipeline, layout: Layout, job: BuildJob, *, err: bool = False
) -> None:
    """Build with a Spark of this process, certify and publish what is green.

    Raises CertificateFailed for what is not, NotApproved for what changes answers by more than the definition lets it.
    """
    from seamline.lake.publish.planning import is_small_build
    from seamline.quality.certify import certify_run
    from seamline.quality.run_comparing import compare_and_report
    from seamline.quality.suites import import_in_background
    from seamline.spark.build.build import build_intervals
    from seamline.spark.session.session import open_spark_session
    from seamline.spark.tasks.job_failures import stop_spark
    from seamline.supervisor.counts.taking import describe_taking
    from seamline.supervisor.resident import bring_token
    from seamline.tracing.traced_publication import publish_traced

    import_in_background(compiled)
    bring_token()
    spark = open_spark_session(
        f"seamline run {compiled.name}", brief=is_small_build(layout, job), warehouse=str(layout.warehouse)
    )
    try:
        rows = build_intervals(spark, compiled, layout, job)
    finally:
        stop_spark(spark)
    click.echo(f"Built {len(rows)} generations, run {job.run}.", err=err)
    for line in describe_taking(compiled, layout):
        click.echo(line, err=err)
    certificates = certify_run(compiled, layout, job.run, actor=job.actor)
    click.echo(f"Report: {layout.report(job.run) / 'index.html'}", err=err)
    failed = [each for each in certificates if not each.good]
    for certificate in failed:
        checks = "; ".join(f"{each.name}: {each.found}" for each in certificate.checks if not each.passed)
        click.echo(f"  {certificate.view} {certificate.interval.id}: {checks}", err=True)
    click.echo("\n".join(compare_and_report(compiled, layout, job.run)), err=err)
    done = publish_traced(compiled, layout, job.run)
    click.echo(f"Certified {len(certificates) - len(failed)}, published {len(done.statements)}.", err=err)
    for interval, why in done.held_back.items():
        click.echo(f"held back {interval}: {why}", err=err)
    if failed:
        raise CertificateFailed(
            f"{len(failed)} of {len(certificates)} generations of run {job.run} are not certified; held back: "
            f"{', '.join(done.held_back)}.",
            hint="fix what the failed checks report, then run again.",
        )
    require_approved_changes(layout, job.run, done)


def require_approved_changes(layout: Layout, run: str, done: Publication) -> None:
    """Raise NotApproved where intervals of a run wait for a person's approval of how much they change.

    Whoever reads it is asked, which is noted.
    """
    if done.waiting:
        from seamline.lake.publish.asked_approvals import note_asked

        note_asked(layout, run)
        raise NotApproved(
            f"{format_quantity(len(done.waiting), 'interval')} of run {run} held back, for more change than "
            f"approve_change= lets through: {', '.join(done.waiting)}.",
            hint=f"look at them (seamline comparisons {layout.pipeline}.VIEW), then: seamline publish "
            f"{layout.pipeline} --run {run} "
            "--approve --reason ...",
        )
