"""Commands about sinks: list them, run them without a stream, write one anew, and let go of one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from seamline.cli.context import open_pipeline
from seamline.cli.sinks.declared_sinks import find_sink, parse_starts, require_sinks
from seamline.cli.sinks.sink_audits import audit_sinks
from seamline.model.errors import BadRange, NotFound
from seamline.model.time.intervals import format_utc_instant

if TYPE_CHECKING:
    from seamline.model.protocol.sinks.ranges_again import RangeAgain


@click.group()
def sinks() -> None:
    """List, run, resend or drop what sends a view's answer to other systems."""


@sinks.command("list")
@click.argument("pipeline")
def show_sinks(pipeline: str) -> None:
    """Show each sink: where it writes to, which version of the serving table is there, and how far behind that is."""
    from seamline.sinks.sink_list import format_sinks

    click.echo("\n".join(format_sinks(*open_pipeline(pipeline))))


@sinks.command()
@click.argument("pipeline")
@click.option("--once", is_flag=True, help="End as soon as each target shows what is served now.")
def run(pipeline: str, once: bool) -> None:
    """Send what is served until stopped, where no stream runs whose supervisor does so.

    It holds the lease of the stream meanwhile. With --once the error of a sink that has failed is this command's.
    """
    import threading

    from seamline.runtime.stop_signals import set_when_asked
    from seamline.sinks.sinks_process import own_lease, run_sinks

    compiled, layout = open_pipeline(pipeline)
    require_sinks(compiled)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("seamline.sinks").setLevel(logging.INFO)
    stop = threading.Event()
    set_when_asked(stop)
    with own_lease(layout) as holds:
        code = run_sinks(compiled, layout, stop, holds, once=once)
    if code:
        raise SystemExit(code)


@sinks.command()
@click.argument("pipeline")
@click.argument("sink")
@click.option(
    "--from", "start", help="Send again the rows of windows that start from here on, UTC; clear nothing."
)
@click.option("--to", "end", help="End of their starts, UTC (exclusive). [default: the newest]")
def resend(pipeline: str, sink: str, start: str | None, end: str | None) -> None:
    """Delete all that a sink's target holds; whoever runs the sink then writes everything anew.

    For a topic that means a tombstone for each record that is there. With --from nothing is cleared: rows of windows of
    that range are sent again as they are served, and what the target has in it and is not served is deleted. Of files
    the folders in which these windows start are written anew, whatever is there. A process that runs goes on by itself.
    """
    from seamline.sinks.sink_list import ask_for_range, clear_target

    compiled, layout = open_pipeline(pipeline)
    found, asked = find_sink(compiled, sink), parse_again(start, end)
    runs = f"the stream's supervisor, or by `seamline sinks run {pipeline}`"
    if asked is None:
        clear_target(compiled, layout, found)
        click.echo(f"{sink}: cleared; it is written anew by {runs}")
        return
    position = ask_for_range(compiled, layout, found, asked)
    if position is None:
        click.echo(f"{sink}: nothing has been sent yet; everything is, by {runs}")
    else:
        click.echo(f"{sink}: {position.again} is sent again by {runs}")


@sinks.command()
@click.argument("pipeline")
@click.argument("sink")
def drop(pipeline: str, sink: str) -> None:
    """Let go of a sink that is no longer in the definition: upkeep need not keep anything for it.

    What its target holds stays there.
    """
    from seamline.lake.tables.sinks.recorded_audits import forget_verdicts
    from seamline.lake.tables.sinks.recorded_positions import forget_copy, list_copied_sinks

    compiled, layout = open_pipeline(pipeline)
    if any(each.id == sink for each in compiled.definition.sinks):
        raise BadRange(
            f"Sink {sink!r} is in the definition of {pipeline}.",
            hint="take it out of sinks=[...] first; the stream's supervisor sees that.",
        )
    if sink not in list_copied_sinks(layout):
        known = ", ".join(list_copied_sinks(layout)) or "none"
        raise NotFound(f"{pipeline} knows of no sink {sink!r}.", hint=f"there are {known}.")
    forget_copy(layout, sink)
    forget_verdicts(layout, sink)
    click.echo(f"{sink}: dropped")


def parse_again(start: str | None, end: str | None) -> RangeAgain | None:
    """Read a range that is to be sent again; None for everything."""
    from seamline.model.protocol.sinks.ranges_again import RangeAgain

    if start is None:
        if end is not None:
            raise BadRange("A range needs its beginning.", hint="pass --from; without --to it has no end.")
        return None
    first, last = parse_starts(start, end)
    assert first is not None
    return RangeAgain(format_utc_instant(first), format_utc_instant(last) if last else "")


@sinks.command("replay")
@click.argument("pipeline")
@click.argument("sink")
@click.option(
    "--reason", "reasons", multiple=True, help="Records of this reason alone; may be given several times."
)
@click.option("--to", default="", help="Another topic, which takes all of them.")
@click.option("--again", is_flag=True, help="From the first one that is there, those of earlier replays too.")
def produce_again(pipeline: str, sink: str, reasons: tuple[str, ...], to: str, again: bool) -> None:
    """Produce dead letters again, each once, as they were: key, value, headers, time and partition.

    Each goes to the topic that it was read from, or to the one of --to. A second replay goes on where the first one
    has ended, also if that was killed.
    """
    from seamline.model.definition.sinks.dead_letter_sink import DeadLetterSink
    from seamline.sinks.letters.replaying import replay_letters

    compiled, _ = open_pipeline(pipeline)
    found = find_sink(compiled, sink)
    if not isinstance(found, DeadLetterSink):
        raise BadRange(f"{sink} keeps what a view serves.", hint="only dead letters can be produced again.")
    counts = replay_letters(compiled.definition, found, reasons=reasons, to=to, again=again)
    told = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    click.echo(f"{sink}: {told or 'nothing new'}")


sinks.add_command(audit_sinks)
COMMANDS = (sinks,)
