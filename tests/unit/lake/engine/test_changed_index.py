"""Changes of a table in DuckDB: in any log, cut into epochs in any way, they add up to the table."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.unit.model.changes.test_changelogs import BANK, BY_LOG

from seamline.lake.engine.changed_index import ChangedIndex, changed_schema, image_schema
from seamline.lake.engine.signed_states import compute_signed_states
from seamline.lake.joins.changed_rows import load_snapshot, write_snapshot
from seamline.model.compile.changes.compiled_changelog import DELETED, SIGN, CompiledChangelog
from seamline.model.compile.compiled_pipeline import compile_pipeline
from seamline.model.definition.pipeline import Pipeline

AT = datetime(2026, 1, 5, tzinfo=UTC)
Table = Counter[tuple[Any, ...]]


def find_changelog(definition: Pipeline) -> CompiledChangelog:
    """Return the changelog of a definition."""
    made = compile_pipeline(definition).views[0].changelog
    assert made
    return made


def make_row(dice: random.Random, number: int, epoch: int) -> dict[str, Any]:
    """Make a change at some place of an epoch."""
    return {
        "_topic_id": "t",
        "_topic": "accounts",
        "_partition": dice.choice([0, 1]),
        "_offset": number,
        "_epoch": epoch,
        "_event_time": AT + timedelta(minutes=dice.randint(0, 300)),
        "id": dice.choice([1, 2, 3, None]),
        "version": dice.choice([None, 1, 2, 3, 4]),
        "country": dice.choice(["se", "no", None]),
        "balance": dice.choice([None, 1, 2]),
        DELETED: dice.random() < 0.3,
    }


def make_log(changelog: CompiledChangelog, seed: int) -> list[pa.Table]:
    """Make the rows of some epochs, in no order."""
    dice = random.Random(seed)
    epochs = []
    for epoch in range(8):
        rows = [make_row(dice, 100 * epoch + number, epoch) for number in range(dice.randint(0, 6))]
        dice.shuffle(rows)
        schema = changed_schema(changelog)
        kept = [{name: row[name] for name in schema.names} for row in rows]
        epochs.append(pa.Table.from_pylist(kept, schema))
    return epochs


def make_table(changelog: CompiledChangelog, epochs: list[pa.Table]) -> Table:
    """Return what a table has after all changes of some epochs, by its definition."""
    found = Table()
    rows = [row for epoch in epochs for row in sorted(epoch.to_pylist(), key=read_order)]
    order = changelog.changes.order
    for id in {row["id"] for row in rows}:
        mine = [row for row in rows if row["id"] == id]
        orders = [row[order.name] if order else None for row in mine]
        greatest = max((each for each in orders if each is not None), default=None)
        wins = [row for row, own in zip(mine, orders, strict=True) if own is None or own == greatest]
        if not wins[-1][DELETED]:
            found[tuple(wins[-1][each.name] for each in changelog.columns)] += 1
    return found


def read_order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return where a row is in its epoch."""
    return row["_partition"], row["_offset"]


def derive(index: ChangedIndex, rows: pa.Table) -> Table:
    """Return how often each row of the table is added by an epoch, and taken away."""
    names = [each.name for each in index.changelog.columns]
    found = Table()
    for row in index.con.sql(f"SELECT * FROM {index.derive(rows)}").to_arrow_table().to_pylist():
        found[tuple(row[name] for name in names)] += row[SIGN]
    return found


@pytest.mark.parametrize("definition", [BANK, BY_LOG], ids=["by version", "as read"])
@pytest.mark.parametrize("seed", range(20))
def test_what_epochs_add_and_take_away_is_the_table(tmp_path: Path, definition: Pipeline, seed: int) -> None:
    """At every epoch, whatever is late, comes again, or is in no order within it; the file is opened again at times."""
    changelog = find_changelog(definition)
    index, whole = ChangedIndex(changelog, tmp_path), Table()
    epochs = make_log(changelog, seed)
    for number, rows in enumerate(epochs):
        whole.update(derive(index, rows))
        index.take(rows, str(number))
        assert Table({row: count for row, count in whole.items() if count}) == make_table(
            changelog, epochs[: number + 1]
        )
        if number % 3 == 2:
            index.close()
            index = ChangedIndex(changelog, tmp_path)
            assert index.stamp == str(number)
    index.close()


def test_an_index_goes_on_from_a_snapshot(tmp_path: Path) -> None:
    """What is known of each row is in a file, with deletions and their orders; a torn file is refused."""
    changelog = find_changelog(BANK)
    epochs = make_log(changelog, 5)
    one = ChangedIndex(changelog, tmp_path / "one")
    for rows in epochs[:5]:
        one.take(rows)
    path = tmp_path / "snapshot.parquet"
    batches = one.con.sql(one.named_sql("kept.images")).to_arrow_reader(3)
    write_snapshot(path, changelog, batches)
    other = ChangedIndex(changelog, tmp_path / "other")
    load_snapshot(other, [str(path)], "5")
    assert (other.stamp, other.count_rows()) == ("5", one.count_rows())
    for rows in epochs[5:]:
        assert derive(other, rows) == derive(one, rows)
        one.take(rows)
        other.take(rows)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
    with pytest.raises((OSError, pa.ArrowException, duckdb.Error)):
        load_snapshot(other, [str(path)], "5")


def test_a_deletion_is_remembered_where_its_order_may_matter(tmp_path: Path) -> None:
    """Where changes go as they were read, a deleted row is as one that never was."""
    kept = {}
    for definition in (BANK, BY_LOG):
        changelog = find_changelog(definition)
        index = ChangedIndex(changelog, tmp_path / definition.name)
        row = {**make_row(random.Random(1), 1, 0), DELETED: True}
        schema = changed_schema(changelog)
        index.take(pa.Table.from_pylist([{name: row[name] for name in schema.names}], schema))
        kept[definition.name] = index.count_rows()
    assert kept == {BANK.name: 1, BY_LOG.name: 0}


def test_states_of_what_is_taken_away_are_negative(tmp_path: Path) -> None:
    """What comes to nothing is left out."""
    pipeline = compile_pipeline(BANK)
    changelog = find_changelog(BANK)
    index = ChangedIndex(changelog, tmp_path)
    schema = changed_schema(changelog)

    def change(number: int, country: str, **more: Any) -> pa.Table:
        row = {**make_row(random.Random(1), number, number), "id": 1, "version": number, "balance": 2}
        row = {**row, DELETED: False, "country": country, "_event_time": AT, **more}
        return pa.Table.from_pylist([{name: row[name] for name in schema.names}], schema)

    found = []
    for rows in (
        change(1, "se"),
        change(2, "se"),
        change(3, "no"),
        change(2, "dk"),
        change(4, "no", _deleted=True),
    ):
        made = compute_signed_states(index.con, pipeline.views[0], index.derive(rows))
        index.take(rows)
        found.append({row["country"]: row["rows"] for row in made.to_pylist()})
    assert found == [{"se": 1}, {}, {"se": -1, "no": 1}, {}, {"no": -1}]
    assert image_schema(changelog).names == ["id", "country", "balance", "_greatest", DELETED]
