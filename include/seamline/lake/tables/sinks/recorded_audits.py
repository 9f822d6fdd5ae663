"""What audits of sinks have found, a bounded number of each: one small file says it all (decision 0047)."""

from __future__ import annotations

from contextlib import suppress

from seamline.lake.storage.layout import Layout
from seamline.lake.store.locations import Location, create_file, delete_files, list_names
from seamline.lake.tables.sinks.recorded_positions import SUFFIX, copies_folder
from seamline.model.errors import StoreUnavailable
from seamline.plan.stream.sink_verdicts import SinkVerdict, add_verdict, parse_verdicts, serialize_verdicts

ATTEMPTS = 20


def locate_verdicts(layout: Layout, sink: str) -> Location:
    """Return the folder of a sink's audits."""
    return copies_folder(layout) / "audits" / sink


def record_verdict(layout: Layout, sink: str, made: SinkVerdict) -> None:
    """Write down what an audit has found, beside those before it.

    The next file is created where there is none, so that none of two that end at once is lost. Where others have gone
    on since it was numbered, and its number has been deleted, nobody would read it: it is written once more.
    """
    folder = locate_verdicts(layout, sink)
    for _ in range(ATTEMPTS):
        numbers = list_numbers(folder)
        newest = numbers[-1] if numbers else 0
        text = serialize_verdicts(add_verdict(read_number(folder, newest), made))
        if create_file(folder / name_verdicts(newest + 1), text.encode()):
            # Whoever has listed may be about to read the one before.
            delete_files(folder / name_verdicts(each) for each in numbers[:-1])
            if made in read_verdicts(layout, sink):
                return
    raise StoreUnavailable(f"What an audit of {sink} has found could not be written to {folder}.")


def read_verdicts(layout: Layout, sink: str) -> tuple[SinkVerdict, ...]:
    """Read the last audits of a sink, the newest first."""
    folder = locate_verdicts(layout, sink)
    for _ in range(ATTEMPTS):
        numbers = list_numbers(folder)
        if not numbers:
            break
        if found := read_number(folder, numbers[-1]):
            return found
    return ()


def forget_verdicts(layout: Layout, sink: str) -> None:
    """Delete what is known of the audits of a sink."""
    folder = locate_verdicts(layout, sink)
    delete_files(folder / name_verdicts(each) for each in list_numbers(folder))


def list_numbers(folder: Location) -> list[int]:
    """List the numbers of the files that are there."""
    try:
        names = list_names(folder)
    except FileNotFoundError:
        return []
    return sorted(int(each.removesuffix(SUFFIX)) for each in names if each.removesuffix(SUFFIX).isdigit())


def read_number(folder: Location, number: int) -> tuple[SinkVerdict, ...]:
    """Read one file; nothing where it is gone."""
    with suppress(FileNotFoundError):
        return parse_verdicts((folder / name_verdicts(number)).read_bytes())
    return ()


def name_verdicts(number: int) -> str:
    """Name a file."""
    return f"{number:010d}{SUFFIX}"
