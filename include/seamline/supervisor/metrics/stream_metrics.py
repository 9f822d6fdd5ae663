"""Streams in numbers: what is observed of each."""

from __future__ import annotations

from seamline.plan.stream.observation import Observation
from seamline.plan.stream.stream_state import Actual
from seamline.supervisor.metrics.metric_families import (
    Family,
    make_unlabelled_sample,
    to_unix_seconds,
)

FAMILIES: tuple[Family[Observation], ...] = (
    Family(
        "seamline_stream_up",
        "1 if the stream runs, 0 if not, or if it is unknown.",
        make_unlabelled_sample(lambda found: float(found.actual is Actual.RUNNING)),
    ),
    Family(
        "seamline_stream_wanted",
        "1 if the stream is wanted to run.",
        make_unlabelled_sample(lambda found: float(found.desired == "running")),
    ),
    Family(
        "seamline_stream_state",
        "1 for what the stream is doing, 0 for every other state.",
        lambda found: (((state.value,), float(state is found.actual)) for state in Actual),
        ("state",),
    ),
    Family(
        "seamline_epoch",
        "E, the last epoch in the master.",
        make_unlabelled_sample(lambda found: found.epoch),
    ),
    Family(
        "seamline_epoch_timestamp_seconds",
        "When the last epoch was committed, since 1970.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.committed_at)),
    ),
    Family(
        "seamline_epoch_phase_seconds",
        "How long the phases of the last epoch took, as the driver says.",
        lambda found: (((phase,), seconds) for phase, seconds in sorted(found.seconds.items())),
        ("phase",),
    ),
    Family(
        "seamline_trigger_phase_seconds",
        "How long the parts of the trigger before the last epoch took, by Spark's names.",
        lambda found: (
            ((part,), seconds) for part, seconds in sorted(found.trigger.items()) if part != "rows_per_second"
        ),
        ("phase",),
    ),
    Family(
        "seamline_lag_records",
        "Offsets that Kafka has and the master has not.",
        lambda found: (((topic, str(part)), count) for (topic, part), count in sorted(found.lag.lanes.items())),
        ("topic", "partition"),
    ),
    Family(
        "seamline_lag_seconds",
        "The age of the oldest record that is not read, by its Kafka timestamp.",
        make_unlabelled_sample(lambda found: found.lag.seconds),
    ),
    Family(
        "seamline_lag_timestamp_seconds",
        "When the lag was so, since 1970: now, or the driver's last heartbeat where Kafka does not answer.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.lag.at)),
    ),
    Family(
        "seamline_catch_up_seconds",
        "Until all is read at the rates of the last minute; +Inf where the lag does not shrink.",
        make_unlabelled_sample(lambda found: found.lag.catch_up),
    ),
    Family(
        "seamline_arriving_records_per_second",
        "Offsets that were added to the topics in a second of the last minute.",
        make_unlabelled_sample(lambda found: found.lag.arriving),
    ),
    Family(
        "seamline_read_records_per_second",
        "Offsets that were read in a second of the last minute.",
        make_unlabelled_sample(lambda found: found.lag.drained),
    ),
    Family(
        "seamline_accepted_rows_per_second",
        "Rows that epochs of the last minute accepted in a second.",
        make_unlabelled_sample(lambda found: found.rows_per_second),
    ),
    Family(
        "seamline_watermark_timestamp_seconds",
        "The watermark, since 1970.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.watermark)),
    ),
    Family(
        "seamline_view_behind_epochs",
        "Epochs from a view version's frontier to E; 0 for a view that is not behind.",
        lambda found: (((view,), (found.epoch or 0) - at) for view, at in sorted(found.frontiers.items())),
        ("view",),
    ),
    Family(
        "seamline_hot_key_ratio",
        "A view's rows of one key by the records of the last epoch of 1,000 or more, where that is 0.1 or more.",
        lambda found: (((view,), each.share) for view, each in sorted(found.hot.items())),
        ("view",),
    ),
    Family(
        "seamline_join_indexed_rows",
        "Rows that the driver's index of a join keeps.",
        lambda found: (((join,), rows) for join, rows in sorted(found.indexed.items())),
        ("join",),
    ),
    Family(
        "seamline_lookup_rules",
        "Rules of a look-up that its topic makes, by state: in_force, or waiting for room.",
        lambda found: (
            ((name, state), count)
            for name, each in sorted((found.rules or {}).items())
            for state, count in sorted(vars(each).items())
        ),
        ("lookup", "state"),
    ),
    Family(
        "seamline_ask_rows_total",
        "Rows of which the topic has an answer, or an error, since the process that asks was started.",
        lambda found: (
            ((ask, outcome), count)
            for ask, each in sorted((found.asks or {}).items())
            for outcome, count in (("answered", each.answered), ("error", each.errors))
        ),
        ("ask", "outcome"),
    ),
    Family(
        "seamline_ask_waiting_rows",
        "Rows in hand that wait for an answer.",
        lambda found: (((ask,), each.waiting) for ask, each in sorted((found.asks or {}).items())),
        ("ask",),
    ),
    Family(
        "seamline_ask_calls_total",
        "Calls of another system since the process that asks was started.",
        lambda found: (((ask,), each.calls) for ask, each in sorted((found.asks or {}).items())),
        ("ask",),
    ),
    Family(
        "seamline_ask_failures_total",
        "Calls that have failed.",
        lambda found: (((ask,), each.failures) for ask, each in sorted((found.asks or {}).items())),
        ("ask",),
    ),
    Family(
        "seamline_ask_call_seconds",
        "How long the last thousand calls took, by quantile.",
        lambda found: (
            ((ask, quantile), seconds)
            for ask, each in sorted((found.asks or {}).items())
            for quantile, seconds in (("0.5", each.p50), ("0.99", each.p99))
        ),
        ("ask", "quantile"),
    ),
    Family(
        "seamline_ask_away_seconds",
        "Seconds since another system has stopped answering; 0 while it answers.",
        lambda found: (((ask,), each.away) for ask, each in sorted((found.asks or {}).items())),
        ("ask",),
    ),
    Family(
        "seamline_driver_restarts_total",
        "Starts of the driver but the first, under its present supervisor.",
        make_unlabelled_sample(lambda found: found.restarts),
    ),
    Family(
        "seamline_driver_strikes",
        "Failures of the driver in a row.",
        make_unlabelled_sample(lambda found: found.strikes),
    ),
    Family(
        "seamline_holes_undecided",
        "Gaps between the log and the topics that await a decision.",
        make_unlabelled_sample(lambda found: None if found.holes is None else len(found.holes)),
    ),
    Family(
        "seamline_reconcile_timestamp_seconds",
        "When Airflow has last compared what the stream should do with what it does, since 1970.",
        make_unlabelled_sample(lambda found: to_unix_seconds(found.reconciled)),
    ),
    Family(
        "seamline_warehouse_free_ratio",
        "The share of the warehouse's disk that is free.",
        make_unlabelled_sample(lambda found: found.disk_free),
    ),
    Family(
        "seamline_observation_errors",
        "Things about the stream that could not be read at this look.",
        make_unlabelled_sample(lambda found: len(found.unread)),
    ),
    Family(
        "seamline_alert",
        "1 for each alert that is raised; its subject is a view, a partition, a look-up, a question, or empty.",
        lambda found: (((each.kind.value, each.subject), 1.0) for each in found.alerts),
        ("alert", "subject"),
    ),
)  # fmt: skip
