"""Alert notification, by the definition's function and a webhook: each is sent once, whoever looks."""

from __future__ import annotations

import json
import math
import os
import time
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module

from seamline.kafka.topic_ends import AskEnds, ends_of
from seamline.lake.storage.layout import Layout
from seamline.model.compile.compiled_pipeline import CompiledPipeline
from seamline.model.errors import DefinitionError
from seamline.model.protocol.alert import AlertStatement, Standing
from seamline.plan.stream.alert_routing import list_channels, name_channel
from seamline.plan.stream.alerts import Findings, decide_alerts, find_stream_problems
from seamline.runtime.side_calls import SideCalls
from seamline.runtime.user_answers import await_answer
from seamline.supervisor.board import Board, Notification, change_board
from seamline.supervisor.observe import observe

WEBHOOK = "SEAMLINE_ALERT_WEBHOOK"
ANSWERS_WITHIN = 5.0
TELLS_WITHIN = timedelta(minutes=1)
"""A sender that has not reported success by then has died, or hangs: another may send."""
KEPT = 200
SENDING = SideCalls()


Channels = Mapping[str, Callable[[AlertStatement], object]]
Notify = Callable[[str, str, AlertStatement], object]
"""Sends by a notifier of Airflow: its name, the pipeline's, and what is sent."""


def notify_alerts(
    compiled: CompiledPipeline,
    layout: Layout,
    *,
    broker: bool = True,
    env: Mapping[str, str] = os.environ,
    now: datetime | None = None,
    say: Callable[[str], object] = print,
    last: bool = False,
    ask: AskEnds = ends_of,
    notify: Notify | None = None,
) -> tuple[Standing, ...]:
    """Observe a stream, send the alerts that are new or could not be sent before, and return those raised.

    Several may look at once. Each alert is sent by one of them; what fails is retried at the next look. Notifiers are
    called by ``notify``; who has none, as the supervisor, leaves them to Airflow's next look.
    """
    found = observe(compiled.name, layout, compiled, broker=broker, now=now, env=env, ask=ask)
    now = now or datetime.now(UTC)
    every, own = channels_of(compiled, env, notify), tuple(channels_of(compiled, env))
    # One that hangs has no second call beside it.
    channels = {name: send for name, send in every.items() if not SENDING.is_running((layout, name))}
    turn = Turn(Board({}))

    def list_ways(statement: AlertStatement) -> tuple[str, ...]:
        return (*own, *list_channels(compiled.definition.alerts, statement))

    def is_wanted(each: Notification) -> bool:
        # A webhook is a setting of each process; routes are known by who reads definitions anew at each look.
        return not notify or each.channel == "webhook" or each.channel in list_ways(each.statement)

    def take_turn(before: Board) -> Board:
        nonlocal turn
        problems = find_stream_problems(found)
        left = replace(before, telling=tuple(filter(is_wanted, before.telling)))
        turn = plan_turn(problems, left, list_ways, tuple(channels), now=now, last=last)
        return turn.board

    change_board(layout, take_turn)
    for each in turn.statements:
        say(str(each))
    send_side_by_side(layout, turn.ours, channels, say)
    return turn.board.raised


def send_side_by_side(
    layout: Layout, ours: tuple[Notification, ...], channels: Channels, say: Callable[[str], object]
) -> None:
    """Send notifications by each channel in a thread of its own, and wait a minute at most.

    A channel that hangs holds up no other. It is left to its thread, and notes itself what it has sent after all.
    """
    until = time.monotonic() + TELLS_WITHIN.total_seconds()
    sending: dict[str, Future[None]] = {}
    for name in channels:
        if mine := tuple(each for each in ours if each.channel == name):
            send = partial(send_and_note, layout, mine, channels, say, until)
            sending[name] = SENDING.start((layout, name), send)
    ended, _ = wait(sending.values(), until - time.monotonic())
    for name, each in sending.items():
        if each in ended:
            each.result()
        else:
            say(f"not sent by {name}: it has not returned within {TELLS_WITHIN.total_seconds():g} s")


def send_and_note(
    layout: Layout,
    mine: tuple[Notification, ...],
    channels: Channels,
    say: Callable[[str], object],
    until: float,
) -> None:
    """Send notifications in order, and note on the board which were sent, and which were not."""
    done = deliver_alerts(mine, channels, say, until)
    change_board(
        layout, lambda latest: replace(latest, telling=remove_delivered_alerts(latest.telling, done))
    )


@dataclass(frozen=True)
class Turn:
    """What one look decides."""

    board: Board
    """What is known from then on, with what this look has to send."""
    statements: tuple[AlertStatement, ...] = ()
    """What is new."""
    ours: tuple[Notification, ...] = ()
    """What this look has to send, and nobody else for a minute."""


def plan_turn(
    problems: Findings,
    before: Board,
    list_ways: Callable[[AlertStatement], tuple[str, ...]],
    channels: tuple[str, ...],
    *,
    now: datetime,
    last: bool,
) -> Turn:
    """Decide from what was known what is new, by which channels it is sent, and what this look sends by its own."""
    standing, statements = decide_alerts(problems, before.standing, now=now, last=last)
    new = [Notification(each, name) for each in statements for name in list_ways(each)]
    telling = (*before.telling, *new)[-KEPT:]
    ours = tuple(
        each for each in telling if each.channel in channels and (not each.until or each.until < now)
    )
    claimed = tuple(replace(each, until=now + TELLS_WITHIN) if each in ours else each for each in telling)
    return Turn(Board(standing, claimed), tuple(statements), ours)


def deliver_alerts(
    ours: tuple[Notification, ...],
    channels: Channels,
    say: Callable[[str], object],
    until: float = math.inf,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> dict[Notification, bool]:
    """Deliver notifications in order, by each channel until it fails; return which were sent and which were not.

    From ``until`` on the rest is left: others may send it then, and what was sent has to be noted.
    """
    done: dict[Notification, bool] = {}
    failed: set[str] = set()
    for each in ours:
        if clock() >= until:
            failed.add(each.channel)
        if each.channel not in failed:
            try:
                channels[each.channel](each.statement)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's function, or any server's answer
                failed.add(each.channel)
                say(f"not sent by {each.channel}, to be retried: {type(error).__name__}: {error}")
        done[each] = each.channel not in failed
    return done


def remove_delivered_alerts(
    telling: tuple[Notification, ...], done: Mapping[Notification, bool]
) -> tuple[Notification, ...]:
    """Remove what was sent, and leave the rest to whoever looks next."""
    outcome = {(each.statement, each.channel): told for each, told in done.items()}
    return tuple(
        replace(each, until=None) if (each.statement, each.channel) in outcome else each
        for each in telling
        if not outcome.get((each.statement, each.channel))
    )


def channels_of(compiled: CompiledPipeline, env: Mapping[str, str], notify: Notify | None = None) -> Channels:
    """Return the channels that the definition and the settings name; those of notifiers where they can be called."""
    found: dict[str, Callable[[AlertStatement], object]] = {}
    if path := compiled.definition.on_alert:
        found["on_alert"] = lambda statement: call_alert_hook(path, compiled.name, statement)
    if url := env.get(WEBHOOK):
        found["webhook"] = lambda statement: post_webhook(url, compiled.name, statement)
    if notify:
        for each in compiled.definition.alerts:
            found[name_channel(each)] = partial(notify, each.notifier, compiled.name)
    return found


def call_alert_hook(path: str, pipeline: str, statement: AlertStatement) -> None:
    """Call the user's function; DefinitionError if it cannot be imported."""
    module, _, name = path.rpartition(".")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DefinitionError(
            f"{path!r} cannot be imported: {error}.",
            hint='write "module.function" of a module that the supervisor and the tasks of Airflow can import.',
            field="on_alert",
        ) from error
    await_answer(
        function(pipeline=pipeline, alert=statement.alert, state=statement.state, message=statement.message)
    )


def post_webhook(url: str, pipeline: str, statement: AlertStatement) -> None:
    """Send a statement as JSON; an OSError if the server does not take it within a few seconds."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{WEBHOOK} is not an http or https address")
    said = {"alert": statement.kind.value, **statement.describe(pipeline)}
    request = urllib.request.Request(
        url, json.dumps(said).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    # The status is all that counts: a body may have no end.
    urllib.request.urlopen(request, timeout=ANSWERS_WITHIN).close()
