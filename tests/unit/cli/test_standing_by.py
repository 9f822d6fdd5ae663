"""A supervisor in a container that would only start it again: it waits where its stream shall not run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.shop import DEFINITION

from seamline.cli import seamline
from seamline.cli.standing_by import Pulse, find_pulse_file, stand_by
from seamline.lake.storage.layout import Layout, home_folder, locate_tables
from seamline.lake.tables.control_table import ControlTable, Desired
from seamline.model.errors import DefinitionError, GaveUp, LeaseHeld, StoreUnavailable
from seamline.runtime.stop_signals import ASKED, set_when_asked
from seamline.supervisor.supervisor_heartbeat import GAVE_UP, Heartbeat, Identity

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Whoever stands by in a main thread takes its signals, and this one is pytest's."""
    before = {sign: signal.getsignal(sign) for sign in ASKED}
    yield
    for sign, handler in before.items():
        signal.signal(sign, handler)


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("SEAMLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SEAMLINE_WAREHOUSE", str(tmp_path / "warehouse"))
    return locate_tables("shop")


class Story:
    """What happens at each wait, and what a supervisor ends with at each run."""

    def __init__(self, layout: Layout, *ends: int | Exception | Callable[[], int]) -> None:
        self.layout, self.ends = layout, list(ends)
        self.said: list[str] = []
        self.waits: list[float] = []
        self.meanwhile: dict[int, Callable[[], object]] = {}
        self.halt = Pulse(find_pulse_file("shop"), wait=self.pass_by)

    def pass_by(self, seconds: float) -> bool:
        """Let time pass; the process is asked to end when nothing more is to happen."""
        self.waits.append(seconds)
        self.meanwhile.pop(len(self.waits), self.halt.set if not self.meanwhile else lambda: None)()
        return self.halt.is_set()

    def run(self, halt: threading.Event) -> int:
        """Be a supervisor that ends."""
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end() if callable(end) else end

    def give_up(self, *, restarts: int) -> int:
        """Give up as a supervisor does, which has read that so many restarts are asked for."""
        beat = Heartbeat("shop", Identity("here", 1), 1, GAVE_UP, NOW, restarts=restarts)
        beat.write(home_folder(), now=NOW)
        return GaveUp.exit_code

    def tell(self) -> int:
        """Stand by until asked to end."""
        return stand_by(self.layout, self.run, halt=self.halt, say=self.said.append)

    def want(self, state: Desired) -> None:
        """Ask for a state."""
        ControlTable.ensure(self.layout).want(state, actor="ada", reason="so", now=NOW)

    def restart(self) -> None:
        """Ask for a restart."""
        ControlTable.ensure(self.layout).restart(actor="ada", reason="mended", now=NOW)


def test_a_stream_that_nobody_has_started_is_waited_for(layout: Layout) -> None:
    """A pod that ended would be started again and again; nothing is made in the warehouse meanwhile."""
    story = Story(layout)
    assert story.tell() == 0
    assert story.said == ["shop: waits, as nobody has started the stream"]
    assert not layout.table("control").exists()


def test_a_stopped_stream_is_waited_for_and_started_when_it_is_wanted(layout: Layout) -> None:
    """A stop ends the supervisor with 0, and must not end the container: it would be started again at once."""
    story = Story(layout, lambda: story.want(Desired.STOPPED) or 0, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    story.meanwhile = {3: lambda: story.want(Desired.RUNNING)}
    assert story.tell() == 0
    assert story.said == ["shop: waits, as the stream is stopped by ada (so)"]
    assert len(story.waits) == 3 and story.ends == []


def test_one_that_has_given_up_waits_for_a_person(layout: Layout) -> None:
    """The same failures would be counted anew at each start of the container."""
    story = Story(layout, GaveUp.exit_code, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    story.meanwhile = {4: story.restart}
    assert story.tell() == 0
    assert "has given up" in story.said[0] and "seamline stream start shop" in story.said[0]
    assert len(story.waits) == 4 and story.ends == []


def test_a_restart_long_before_it_gave_up_is_not_one_after_it(layout: Layout) -> None:
    """The supervisor had taken that restart up itself, and was started once more for it when it had given up."""

    def give_up() -> int:
        story.restart()
        return story.give_up(restarts=1)

    story = Story(layout, give_up, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    assert story.tell() == 0
    assert "has given up" in story.said[0] and len(story.ends) == 1


def test_a_restart_while_it_gives_up_is_carried_out(layout: Layout) -> None:
    """What counts is what the supervisor had read when it gave up."""

    def give_up() -> int:
        code = story.give_up(restarts=0)
        story.restart()
        return code

    story = Story(layout, give_up, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    assert story.tell() == 0
    assert story.said == story.ends == []


def test_waiting_for_another_leaves_no_threads_behind(layout: Layout) -> None:
    """A second supervisor is refused every half a minute for as long as the first one lives."""

    def refused() -> int:
        set_when_asked(story.halt)
        return LeaseHeld.exit_code

    story = Story(layout, refused, refused, refused, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    story.meanwhile = {99: lambda: None}
    before = threading.active_count()
    assert story.tell() == 0
    assert story.ends == [] and threading.active_count() == before + 1


@pytest.mark.parametrize(
    "end", [LeaseHeld("there:1 holds it."), LeaseHeld.exit_code, StoreUnavailable("The store is away.")]
)
def test_what_passes_is_tried_again(layout: Layout, end: int | Exception) -> None:
    """Another supervisor lives still, or the store is away: both end by themselves, and a back-off takes minutes."""
    story = Story(layout, end, end, lambda: story.halt.set() or 0)
    story.want(Desired.RUNNING)
    story.meanwhile = {99: lambda: None}
    assert story.tell() == 0
    assert story.ends == [] and len(story.said) == 1


def test_a_store_that_is_away_at_the_look_is_waited_for(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look is at the control table."""
    looks = iter([StoreUnavailable("The store is away."), Desired.STOPPED])

    def read(_: Layout) -> object:
        found = next(looks, Desired.STOPPED)
        if isinstance(found, Exception):
            raise found
        raise AssertionError("ends here")

    monkeypatch.setattr("seamline.cli.standing_by.read_control", read)
    story = Story(layout)
    story.meanwhile = {99: lambda: None}
    with pytest.raises(AssertionError, match="ends here"):
        story.tell()
    assert story.said == ["shop: waits: The store is away."]


def test_what_only_a_person_can_mend_ends_it(layout: Layout) -> None:
    """Whoever rolls out a definition that is wrong sees the container fail."""
    story = Story(layout, DefinitionError("no such column."))
    story.want(Desired.RUNNING)
    with pytest.raises(DefinitionError):
        story.tell()


def test_whoever_waits_again_and_again_has_a_pulse(tmp_path: Path) -> None:
    """A probe looks at the file's age; an old file of an earlier process is none of ours."""
    file = tmp_path / "streams" / "shop" / "pulse"
    pulse = Pulse(file, every=0.0)
    assert not file.exists()
    assert not pulse.wait(0.01)
    first = file.stat().st_mtime_ns
    time.sleep(0.01)
    pulse.set()
    assert pulse.wait(60)
    assert file.stat().st_mtime_ns > first


def test_a_full_disk_ends_no_wait(tmp_path: Path) -> None:
    """The probe then ends the container; the supervisor itself goes on."""
    (tmp_path / "streams").write_text("a file where a folder should be")
    assert not Pulse(tmp_path / "streams" / "shop" / "pulse").wait(0.01)


def test_the_command_waits_when_told_to(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --wait it ends as units of systemd expect."""
    (tmp_path / "shop.py").write_text(DEFINITION)
    monkeypatch.setenv("SEAMLINE_PIPELINES", str(tmp_path))
    ran: list[str] = []

    def supervise(name: str, *_: object, stop: threading.Event, **__: object) -> int:
        ran.append(f"{name} {type(stop).__name__}")
        stop.set()
        return 0

    monkeypatch.setattr("seamline.supervisor.process.supervise", supervise)
    ControlTable.ensure(layout).want(Desired.RUNNING, actor="ada", reason="so", now=NOW)
    done = CliRunner().invoke(seamline, ["supervise", "shop", "--wait"], standalone_mode=False)
    assert (done.exception, done.return_value, ran) == (None, 0, ["shop Pulse"])
