"""Files that are read back against what is served: what somebody has changed is named, and nothing else is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.e2e.sinks.served_rows import ServedRows, make_view
from tests.unit.shop import DAY, START, Sale, Shop
from tests.unit.sinks.files.file_rows import Clock, make_target
from tests.unit.sinks.sending_shop import refresh

from seamline import FileSink
from seamline.lake.read.sinks.shown_rows import StartRange
from seamline.lake.store.file_copies import list_found_files
from seamline.lake.store.locations import Location, delete_files
from seamline.model.errors import ReadUnstable, SetupError
from seamline.sinks.audit.audit_words import format_sink_audit, serialize_sink_audit
from seamline.sinks.audit.sink_audit import SinkAudit, audit_sink
from seamline.sinks.files.file_reading import FileReading
from seamline.sinks.files.reading import list_current_files
from seamline.sinks.files.target import FileTarget
from seamline.sinks.sink_runner import SinkRunner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_steps")]
FORMATS = ("parquet", "json")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
NOTHING = {"missing": 0, "extra": 0, "different": 0, "damaged": 0}


@pytest.fixture(params=FORMATS)
def sink(request: pytest.FixtureRequest, warehouse: Location) -> FileSink:
    """A sink of the shop's sales into files of each format."""
    return FileSink("sales", path=str(warehouse / "out"), format=request.param)


@pytest.fixture
def clock() -> Clock:
    """The clock of who writes the files."""
    return Clock()


def send(shop: Shop, sink: FileSink, clock: Clock) -> None:
    """Send what is new, in commits of two changes."""
    SinkRunner(
        shop.compiled,
        shop.layout,
        sink,
        threading.Event(),
        once=True,
        opening=lambda *_: FileTarget(sink, shop.view, clock),
    ).run()


def merge(shop: Shop, sink: FileSink, clock: Clock) -> None:
    """Merge files, which were not written to for long."""
    clock.now += 7200
    with closing(FileTarget(sink, shop.view, clock)) as target:
        target.take_over()
        target.tidy(lambda: False)


def audit(shop: Shop, sink: FileSink, span: StartRange = StartRange()) -> SinkAudit:  # noqa: B008 - never changes
    """Audit the files."""
    return audit_sink(shop.compiled, shop.layout, sink, clock=lambda: NOW, span=span)


def find_place(sink: FileSink, warehouse: Location, customer: str) -> Location:
    """Find a file that counts and has a row of a customer."""
    for text in list_current_files(sink.path):
        place = warehouse / text.removeprefix(f"{warehouse}/")
        if customer in str(read(place, sink)["customer"].to_pylist()):
            return place
    raise LookupError(customer)


def read(place: Location, sink: FileSink) -> pa.Table:
    """Read a file."""
    if sink.format == "json":
        return pa.Table.from_pylist([json.loads(each) for each in place.read_bytes().splitlines()])
    return pq.read_table(pa.BufferReader(place.read_bytes()))


def change(place: Location, sink: FileSink, **values: Any) -> None:
    """Write a file anew with another first row."""
    if sink.format == "json":
        first, *rest = place.read_bytes().splitlines()
        lines = [json.dumps({**json.loads(first), **values}).encode(), *rest]
        place.write_bytes(b"".join(each + b"\n" for each in lines))
        return
    rows = read(place, sink)
    made = [{**rows.slice(0, 1).to_pylist()[0], **values}, *rows.slice(1).to_pylist()]
    into = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(made, schema=rows.schema), into)
    place.write_bytes(bytes(into.getvalue()))


@pytest.mark.everywhere
def test_files_that_are_as_served_pass(shop: Shop, sink: FileSink, clock: Clock) -> None:
    """New rows, late ones, a correction and its rollback, rows that vanish, merges: none of them is a finding."""
    assert audit(shop, sink).position is None
    for step in (
        lambda: shop.epoch([Sale(1), Sale(71, "b", 9), Sale(3, "c")], watermark=START + DAY),
        lambda: shop.build(0, 0, "g"),
        lambda: shop.build(0, 1, "h"),
        lambda: shop.publish(shop.build(0, 0, "i", publish=False), 0, "g", 3),
    ):
        send(shop, sink, clock)
        found = audit(shop, sink)
        assert found.found == NOTHING, [*format_sink_audit(found)]
        assert found.held == found.wanted > 3
        step()
        refresh(shop)
        assert audit(shop, sink).passed, "what was not sent yet is not wanted yet"
    send(shop, sink, clock)
    merge(shop, sink, clock)
    found = audit(shop, sink)
    assert (found.found, found.held) == (NOTHING, found.wanted)
    later = audit(shop, sink, StartRange(START + timedelta(days=1)))
    assert later.passed and 0 < later.held == later.wanted < found.held


def test_what_somebody_has_changed_is_named(
    shop: Shop, sink: FileSink, clock: Clock, warehouse: Location
) -> None:
    """Another value of a row, a row of somebody who never bought, a row that is not there: each by name."""
    send(shop, sink, clock)
    change(find_place(sink, warehouse, "'b'"), sink, total=-7)
    [different] = [each for each in audit(shop, sink).examples if each.kind == "different"]
    assert different.columns["total"] == (-7, 1)
    assert '"b"' in different.place
    change(find_place(sink, warehouse, "'b'"), sink, customer="zoe", total=1)
    found = audit(shop, sink)
    assert found.found == {"missing": 1, "extra": 1, "different": 0, "damaged": 1}
    assert {each.kind for each in found.examples if '"zoe"' in each.place} == {"extra"}
    assert {each.kind for each in found.examples if '"b"' in each.place} == {"missing"}
    said = "\n".join(format_sink_audit(found))
    assert "WRONG 1 file is not as it was written" in said
    assert said.endswith(
        "`seamline sinks resend shop sales_files --from TIME` sends windows from then on again"
    )
    assert "bytes, and was written with" in str(serialize_sink_audit(found)["examples"])


def test_files_that_are_gone_or_torn_are_named(
    shop: Shop, sink: FileSink, clock: Clock, warehouse: Location
) -> None:
    """Their rows are missing, those of all other files are compared; sent anew, all is well."""
    send(shop, sink, clock)
    gone, torn = find_place(sink, warehouse, "'b'"), find_place(sink, warehouse, "None")
    torn.write_bytes(torn.read_bytes()[:-20])
    delete_files([gone])
    found = audit(shop, sink)
    named = {each.place: each.note for each in found.examples if each.kind == "damaged"}
    assert {each.rpartition("/")[2] for each in named} == {gone.name, torn.name}
    assert "it was deleted" in named.values()
    # The beginning of a line is enough to know whose it is.
    assert found.found["missing"] + found.found["different"] > 1
    assert found.held > 0
    with closing(FileTarget(sink, shop.view, clock)) as target:
        target.clear()
    send(shop, sink, clock)
    assert audit(shop, sink).found == NOTHING


@pytest.mark.parametrize("cast", [pa.string(), pa.list_(pa.string())], ids=str)
def test_a_file_with_another_type_of_a_column_harms_no_other(
    shop: Shop, clock: Clock, warehouse: Location, cast: pa.DataType
) -> None:
    """One file that somebody has written by another tool must neither end the audit nor change rows of others."""
    sink = FileSink("sales", path=str(warehouse / "out"))
    send(shop, sink, clock)
    place = find_place(sink, warehouse, "'b'")
    rows = read(place, sink)
    at = rows.column_names.index("total")
    value = "much" if cast == pa.string() else ["much"]
    into = pa.BufferOutputStream()
    pq.write_table(rows.set_column(at, "total", pa.array([value] * rows.num_rows, cast)), into)
    place.write_bytes(bytes(into.getvalue()))
    found = audit(shop, sink)
    [damaged] = [each for each in found.examples if each.kind == "damaged"]
    assert damaged.place.endswith(place.name) and "cannot be read" in damaged.note
    assert found.found["different"] == 0 and found.found["missing"] == rows.num_rows


def test_a_writer_that_goes_on_is_no_finding(
    shop: Shop, sink: FileSink, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed and merged while files are read is of a later manifest: rows of it are not judged."""
    send(shop, sink, clock)

    def meanwhile() -> None:
        shop.epoch([Sale(1), Sale(25 * 60), Sale(50 * 60, "d")], watermark=START + DAY)
        refresh(shop)
        send(shop, sink, clock)
        merge(shop, sink, clock)

    interrupt(monkeypatch, meanwhile)
    found = audit(shop, sink)
    assert (found.found, found.moved) == (NOTHING, 0)
    assert audit(shop, sink).held == found.held + 1


def test_files_that_were_replaced_before_they_were_read_are_not_judged(
    shop: Shop, sink: FileSink, clock: Clock, monkeypatch: pytest.MonkeyPatch, warehouse: Location
) -> None:
    """A reading of more than an hour finds that upkeep has deleted what it was to read."""
    send(shop, sink, clock)

    def meanwhile() -> None:
        files = [warehouse / each.removeprefix(f"{warehouse}/") for each in list_current_files(sink.path)]
        merge(shop, sink, clock)
        delete_files(each for each in files if str(each) not in list_current_files(sink.path))

    interrupt(monkeypatch, meanwhile)
    with pytest.raises(ReadUnstable, match="replaced by others"):
        audit(shop, sink)


def interrupt(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], None]) -> None:
    """Let something happen after a manifest was read, and before its files are."""
    reads = FileReading.read_rows

    def read_later(self: FileReading, span: StartRange) -> Iterator[pa.Table]:
        monkeypatch.setattr(FileReading, "read_rows", reads)
        meanwhile()
        yield from reads(self, span)

    monkeypatch.setattr(FileReading, "read_rows", read_later)


def test_a_manifest_that_somebody_deleted_is_no_empty_target(
    shop: Shop, sink: FileSink, clock: Clock, warehouse: Location
) -> None:
    """Nobody can say which files count: that is an error, and not a target without rows."""
    send(shop, sink, clock)
    manifests = [each for each in list_found_files(warehouse / "out" / "_manifests") if each[:2] == "00"]
    delete_files([warehouse / "out" / "_manifests" / max(manifests)])
    with pytest.raises(SetupError, match="was deleted"):
        audit(shop, sink)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sets", [(), [["shop"], ["shop", "day", "till"]]], ids=["plain", "grouped"])
def test_ugly_rows_are_read_back(warehouse: Location, form: str, sets: list[list[str]]) -> None:
    """A finding that is none would be looked for in vain: NULL keys, NaN, long decimals, line breaks, rows gone."""
    served, clock = ServedRows(make_view(grouping_sets=sets), 4, 30), Clock()
    with closing(make_target(warehouse, served, clock, format=form, buckets=["1 day", "shop"])) as target:
        target.take_over()
        target.write(served.whole(20), served.position)
        for _ in range(3):
            require_read_back(target, served)
            target.write([served.change(5, 3, 3)], served.position)
            target.tidy(lambda: False)
            clock.now += 60
        clock.now += 7200
        target.tidy(lambda: False)
        require_read_back(target, served)


def require_read_back(target: FileTarget, served: ServedRows) -> None:
    """Require that the last row of each place is, to the letter, what is spelled of the view's."""
    rows = served.as_table()
    with target.open_reading() as reading:
        assert reading.find_position() == served.position
        held = pa.concat_tables(reading.read_rows(StartRange()))
        assert not reading.list_damage()
    found = dict(zip(held["place"].to_pylist(), held["value"].to_pylist(), strict=True))
    kept = {place: value for place, value in found.items() if value is not None}
    places, values = target.spell_places(rows), target.spell_values(rows)
    assert kept == dict(zip(places.to_pylist(), values.to_pylist(), strict=True))
    assert pc.count(held["start"], mode="only_null").as_py() == 0
