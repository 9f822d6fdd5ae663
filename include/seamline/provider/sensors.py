"""A sensor that waits until a view's intervals are complete, or certified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, Context, PokeReturnValue
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from seamline.model.errors import SeamlineError
from seamline.model.time.intervals import Interval
from seamline.orchestration.failures import first_line, log_failure_reason
from seamline.orchestration.intervals.links import (
    CERTIFICATES,
    DRIVER_LOG,
    INTERVAL,
    CertificateLink,
    DriverLogLink,
    IntervalLink,
    driver_log_page,
    interval_page,
    report_page,
    show_pages,
)
from seamline.plan.publish.awaited_intervals import Until
from seamline.provider.hooks import SeamlineHook, split_view
from seamline.provider.spans import span_of
from seamline.provider.triggers import PASSING, SeamlineCompleteTrigger, describe_readiness, read_event

if TYPE_CHECKING:
    from seamline.lake.publish.interval_watch import Watch
    from seamline.plan.publish.awaited_intervals import Readiness


class SeamlineCompleteSensor(BaseSensorOperator):
    """Wait until the intervals of a view are ``complete``, or ``certified``.

    They are those from ``start`` to ``end``; without them the run's partition, or else its data interval. ``timeout``,
    ``soft_fail``, ``never_fail`` and ``poke_interval`` are those of every sensor. With ``deferrable`` the triggerer
    waits, and no slot is occupied. The XCom says which publications answer: ``cut``, ``rows``, ``intervals``, ``run``.
    """

    template_fields: Sequence[str] = ("view", "start", "end", "until", "seamline_conn_id")
    operator_extra_links = (IntervalLink(), CertificateLink(), DriverLogLink())
    ui_color = "#dcebf7"

    def __init__(
        self,
        *,
        view: str,
        start: str | datetime = "",
        end: str | datetime = "",
        until: str = Until.CERTIFIED.value,
        seamline_conn_id: str = SeamlineHook.default_conn_name,
        deferrable: bool = True,
        poke_interval: timedelta | float = 30,
        **given: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **given)
        self.view, self.start, self.end, self.until = view, start, end, until
        self.seamline_conn_id, self.deferrable = seamline_conn_id, deferrable

    @log_failure_reason
    def execute(self, context: Context) -> Any:
        """Look once, and leave the rest to the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        store, waiting = "", {}
        try:
            store, watch, found = self.look(context)
        except PASSING as problem:
            self.log.info("waiting: %s", first_line(problem))
        else:
            if not found.lacking:
                return self.report(watch.awaited.span, describe_readiness(found))
            self.show(watch.awaited.span)
            waiting = watch.to_json()
        self.defer(
            trigger=SeamlineCompleteTrigger(waiting, store, self.poke_interval),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once, of a sensor that does not leave it to the triggerer."""
        try:
            _, watch, found = self.look(context)
        except PASSING as problem:
            self.log.info("waiting: %s", first_line(problem))
            return PokeReturnValue(False)
        if found.lacking:
            return PokeReturnValue(False)
        return PokeReturnValue(True, self.report(watch.awaited.span, describe_readiness(found)))

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Hand on what the triggerer has found, or look again where it asks for that."""
        if event.get("again"):
            return self.execute(context)
        try:
            span, found = read_event(event)
        except SeamlineError as error:
            raise self.failure(error) from error
        return self.report(span, found)

    def look(self, context: Context) -> tuple[str, Watch, Readiness]:
        """Look once: by which connection of a store, for what, and how far that has come."""
        hook = SeamlineHook(self.seamline_conn_id)
        try:
            with hook.reading():
                grid = hook.open_pipeline(split_view(self.view)[0])[0].grid
                span = span_of(context, self.start, self.end, grid)
                watch = hook.watch(self.view, span, self.until)
                found = watch.look()
        except PASSING:
            raise
        except SeamlineError as error:
            raise self.failure(error) from error
        if found.lacking:
            self.log.info("waiting for %s of %s: %s", span, self.view, found.lacking)
        return hook.store, watch, found

    def report(self, span: Interval, found: dict[str, Any]) -> dict[str, Any]:
        """Name the pages of what was waited for, and return the XCom."""
        self.show(span, found["run"])
        return {"view": self.view, "span": str(span), "until": self.until, **found}

    def show(self, span: Interval, run: str = "") -> None:
        """Name the pages of an interval, and of the run that has built it."""
        pipeline, view_name = split_view(self.view)
        pages = {INTERVAL: interval_page(pipeline, view_name, span.id), DRIVER_LOG: driver_log_page(pipeline)}
        show_pages(self, pages | ({CERTIFICATES: report_page(pipeline, run)} if run else {}))

    def failure(self, error: SeamlineError) -> AirflowException:
        """Return how a sensor fails for good: with ``soft_fail`` it is skipped, and no retry follows."""
        said = f"{type(error).__name__}: {error}"
        return AirflowSkipException(said) if self.soft_fail or self.never_fail else AirflowFailException(said)
