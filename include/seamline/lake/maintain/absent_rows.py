"""Generations that are served though their table lacks rows of them: it came back from a backup.

Every file is listed, and those are read that contain several generations: a person asks for it, and no start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from seamline.lake.storage.delta_table import Table
from seamline.lake.storage.layout import Layout
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.storage.table_cache import Files
from seamline.model.protocol.manifest import Manifest, Statement


def list_absent_generations(layout: Layout, manifest: Manifest) -> Iterator[Statement]:
    """List what is served of generations of which rows are not there."""
    for view in sorted({view for view, _ in manifest.published}):
        there = count_rows_by_generation(layout, view)
        for (name, interval), each in sorted(manifest.published.items()):
            if name == view and there[interval, each.generation] < each.rows:
                yield each


def count_rows_by_generation(layout: Layout, view: str) -> Counter[tuple[str, str]]:
    """Count the rows of each generation of a view version, by (interval id, generation)."""
    found: Counter[tuple[str, str]] = Counter()
    root = layout.generations_of(view)
    if not Table.exists(root) or not (files := Files.of(Table.open(root))).actions.num_rows:
        return found
    columns = (files.partition("interval"), files.low("generation"), files.high("generation"))
    facts = zip(
        *(each.to_pylist() for each in columns), files.actions["num_records"].to_pylist(), strict=True
    )
    for path, (interval, low, high, rows) in zip(files.paths, facts, strict=True):
        if low and low == high:
            found[interval, low] += rows
        else:
            names = read_plain_columns(path, ["generation"])["generation"].to_pylist()
            found.update((interval, name) for name in names)
    return found
