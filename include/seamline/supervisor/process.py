"""The parent of a Spark driver: takes the lease, keeps the driver up, and stops it when asked to.

It owns the driver of a pipeline's stream, or the resident driver that builds share.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from seamline.lake.status.marks import REFUSED, leave_mark
from seamline.lake.status.stream_words import Publisher
from seamline.lake.storage.layout import Layout, home_folder
from seamline.lake.tables.control_poll import ControlPoll
from seamline.lake.tables.control_table import Control, ControlTable, Desired, Lease
from seamline.lake.tables.torn_logs import repair_torn_logs
from seamline.model.definition.restarts import ExponentialDelay, RestartPolicy
from seamline.model.errors import FenceLost, GaveUp, LeaseHeld, SetupError
from seamline.runtime.places import host_name
from seamline.runtime.processes import boot_clock_seconds, own_process_name
from seamline.runtime.stop_signals import set_when_asked
from seamline.runtime.storage_failures import explain_storage_failure, translate_store_errors
from seamline.supervisor.belief import Belief, Watchdog
from seamline.supervisor.driver_process import Driver, read_log_tail, rotate_in_use
from seamline.supervisor.driver_watch import Watch, make_policy_reader
from seamline.supervisor.job_files import make_stream_command
from seamline.supervisor.outside import end_leftover
from seamline.supervisor.restart_pace import Pace, Restarts
from seamline.supervisor.stream_logs import print_with_time
from seamline.supervisor.supervisor_heartbeat import (
    GAVE_UP,
    LOST,
    STOPPED,
    Heartbeat,
    Identity,
    ensure_stream_folder,
)
from seamline.supervisor.watcher import Watcher

Commanding = Callable[[int], Sequence[str]]
"""Returns a driver's command under a fencing token."""
Watching = Callable[[int], Watch | None]
"""Begins the watch over the driver that has just been started under a token."""


def supervise(
    pipeline: str,
    layout: Layout,
    *,
    command: Commanding | None = None,
    pace: Pace | None = None,
    stop: threading.Event | None = None,
    watching: Watching | None = None,
    policy: Callable[[], RestartPolicy] | None = None,
    clock: Callable[[], float] = boot_clock_seconds,
) -> int:
    """Run the stream, or ``command``, until it is asked to stop (0), fenced off (20) or out of its lease (21).

    With ``watching`` a driver that makes no progress is restarted. ``policy`` is asked after each failure, and may give
    up (23); by default it is that of the definition.
    Raises LeaseHeld, before anything is started, while another supervisor lives.
    """
    halt = stop or threading.Event()
    if threading.current_thread() is threading.main_thread():
        set_when_asked(halt)
    repair_torn_logs(layout, now=datetime.now(UTC))
    control = ControlTable.ensure(layout)
    holder = f"{host_name()}:{os.getpid()}:{int(time.time())}"
    try:
        lease = control.take(holder, process=own_process_name(), now=datetime.now(UTC))
    except LeaseHeld as held:
        leave_mark(layout, REFUSED, now=datetime.now(UTC), why=held.message)
        raise
    end_leftover(pipeline)
    run, pace = command or functools.partial(make_stream_command, pipeline), pace or Pace()
    policy = policy or (ExponentialDelay if command else make_policy_reader(pipeline))
    watcher = None if command else Watcher(layout, every=pace.look, say=print_with_time)
    publisher = Publisher(layout, every=pace.renew, say=print_with_time)
    try:
        supervisor = Supervisor(pipeline, control, lease, run, pace, halt, watching, policy, clock)
        if (code := supervisor.run()) == LeaseHeld.exit_code:
            leave_mark(layout, REFUSED, now=datetime.now(UTC), why=supervisor.beat.last_error)
        return code
    finally:
        publisher.close()
        if watcher:
            watcher.close()


class Supervisor:
    """One supervisor with its lease and, most of the time, a driver."""

    def __init__(
        self,
        pipeline: str,
        control: ControlTable,
        lease: Lease,
        command: Commanding,
        pace: Pace,
        halt: threading.Event,
        watching: Watching | None = None,
        policy: Callable[[], RestartPolicy] = ExponentialDelay,
        clock: Callable[[], float] = boot_clock_seconds,
    ) -> None:
        self.pipeline, self.control, self.lease, self.pace, self.halt = pipeline, control, lease, pace, halt
        self.command, self.watching, self.poll = command, watching, ControlPoll(control)
        self.restarts = Restarts(policy)
        self.driver: Driver | None = None
        self.lapsed, self.wanted = False, control.see()
        self.clock, self.belief, self.renewed = clock, Belief(clock), float("-inf")
        now = datetime.now(UTC)
        self.beat = Heartbeat(pipeline, Identity.of(os.getpid()), lease.token, "starting", now)

    def run(self) -> int:
        """Keep the driver up until there is a reason not to."""
        watchdog = Watchdog(self.belief, self.end_driver, every=self.pace.tick)
        try:
            self.renew()
            while (code := self.run_driver()) is None:
                continue
            self.publish_state(GAVE_UP if code == GaveUp.exit_code else STOPPED)
            return code
        except LeaseHeld as lost:
            self.beat = replace(self.beat, last_error=lost.message)
            self.publish_state(LOST)
            return lost.exit_code
        finally:
            watchdog.close()
            if self.driver:
                self.driver.kill()
            # Where it cannot be written it runs out.
            with suppress(SetupError):
                self.write_if_possible(lambda: self.control.release(self.lease))

    def run_driver(self) -> int | None:
        """Start a driver and see it through; return our exit code when there shall be no other."""
        if self.should_stop():
            return 0
        self.lapsed = False
        self.driver = Driver(self.command(self.lease.token), self.log, os.environ)
        starts = self.beat.starts + 1
        self.beat = replace(self.beat, token=self.lease.token, driver=self.driver.identity, starts=starts)
        self.publish_state("running")
        driver, asked = self.driver, self.read_control().restarts
        watch = self.watching(self.lease.token) if self.watching else None
        self.keep_until(
            lambda: (
                driver.exit_code is not None
                or self.should_stop()
                or self.read_control().restarts != asked
                or (watch is not None and watch.is_stuck(time.monotonic()))
            )
        )
        if watch is not None:
            watch.close()
        forgiven = driver.age > self.pace.settled or (watch is not None and watch.held)
        if watch is not None and watch.why:
            print_with_time(f"{self.pipeline}: {watch.why}")
            return self.back_off(driver.kill(), watch.why, forgiven=forgiven)
        if self.should_stop():
            self.publish_state("stopping")
            self.stop_driver(driver)
            return 0
        if self.lapsed:
            print_with_time(f"{self.pipeline}: the lease was not renewed in time, and the driver ended")
            self.take_a_new_token()
            return None
        if driver.exit_code is None:
            self.publish_state("restarting")
            self.stop_driver(driver)
            self.restarts.forgive()
            self.beat = replace(self.beat, strikes=0, last_error="")
            self.take_a_new_token()
            return None
        code = driver.kill()
        if code == FenceLost.exit_code:
            return code
        return self.back_off(code, f"exit code {code}", forgiven=forgiven)

    def take_a_new_token(self) -> None:
        """Take the lease again, as soon as it can be written: the next driver fences the last one off.

        Raises LeaseHeld if another has it: we are the one who lost.
        """

        def take() -> None:
            current, sent = self.control.read().lease, self.clock()
            holder, process = self.lease.holder, own_process_name()
            # A newer token of ours was taken without our hearing of it.
            if current and current.token != self.lease.token and not current.is_of(holder, process):
                raise current.refusal()
            self.lease = self.control.take(holder, process=process, now=datetime.now(UTC))
            self.belief.confirm(sent)

        while not self.write_if_possible(take) and not self.should_stop():
            self.halt.wait(self.pace.renew)

    def back_off(self, code: int, why: str, *, forgiven: bool) -> int | None:
        """Wait as long as the restart policy says before the next start, or give up.

        Earlier failures are ``forgiven`` to a driver that made progress.
        """
        strikes = 1 if forgiven else self.beat.strikes + 1
        said = f"{why}\n{read_log_tail(self.log)}"
        asked = self.read_control().restarts
        self.beat = replace(self.beat, driver=None, strikes=strikes, last_error=said, restarts=asked)
        if (pause := self.restarts.find_pause(code, strikes, self.clock())) is None:
            return GaveUp.exit_code
        self.publish_state(f"waiting {pause:g} s after {why}")
        until = time.monotonic() + pause
        self.keep_until(
            lambda: time.monotonic() >= until or self.should_stop() or self.read_control().restarts != asked
        )
        self.take_a_new_token()
        return None

    def stop_driver(self, driver: Driver) -> None:
        """Let the driver finish its epoch, with the lease kept meanwhile."""
        done = threading.Thread(target=driver.stop, args=(self.pace.grace,), daemon=True)
        done.start()
        while done.is_alive():
            self.renew()
            done.join(self.pace.tick)
        self.beat = replace(self.beat, driver=None)

    def end_driver(self) -> None:
        """End a driver whose lease may have run out."""
        if self.driver and self.driver.exit_code is None:
            self.lapsed = True
            self.driver.kill()

    def keep_until(self, over: Callable[[], bool]) -> None:
        """Renew the lease and beat until ``over``; LeaseHeld when another has the lease."""
        while not over():
            self.renew()
            self.halt.wait(self.pace.tick)

    def renew(self) -> None:
        """Renew the lease and write a heartbeat when it is time to."""

        def write() -> None:
            sent = self.clock()
            self.lease = self.control.renew(self.lease, now=datetime.now(UTC))
            self.belief.confirm(sent)
            self.beat = self.beat.write(home_folder(), now=datetime.now(UTC))
            rotate_in_use(self.log)

        if self.belief.over:
            self.end_driver()
        if self.clock() - self.renewed >= self.pace.renew:
            self.renewed = self.clock()
            self.write_if_possible(write)

    def write_if_possible(self, act: Callable[[], object]) -> bool:
        """Write something, and return whether it is written: a full disk or a store that is away is no reason to end.

        A lease that has run out meanwhile is still ours until someone takes it; its driver has ended by then.
        """
        try:
            with translate_store_errors():
                act()
        except Exception as error:
            if (failure := explain_storage_failure(error)) is None:
                raise
            if failure.message != self.beat.last_error:
                print_with_time(f"{self.pipeline}: {failure.message}")
                self.beat = replace(self.beat, last_error=failure.message)
            return False
        return True

    def read_control(self) -> Control:
        """Read what people want; as it was when it could be read last."""

        def read() -> None:
            self.wanted = self.poll.look()

        self.write_if_possible(read)
        return self.wanted

    def should_stop(self) -> bool:
        """Return whether the stream shall stop, by signal or by the control table."""
        return self.halt.is_set() or self.read_control().desired is Desired.STOPPED

    @property
    def log(self) -> Path:
        """The driver's output."""
        return ensure_stream_folder(home_folder(), self.pipeline) / "driver.log"

    def publish_state(self, state: str) -> None:
        """Put a change of state into the heartbeat and the log."""
        print_with_time(f"{self.pipeline}: {state} (token {self.lease.token})")
        self.beat = replace(self.beat, state=state)
        self.write_if_possible(lambda: self.beat.write(home_folder(), now=datetime.now(UTC)))
