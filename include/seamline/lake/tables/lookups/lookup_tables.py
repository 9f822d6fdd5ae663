"""Look-ups as tables: read where the user keeps them, checked, and kept in the warehouse by version."""

from __future__ import annotations

import hashlib
import importlib
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from deltalake import DeltaTable

from seamline.lake.engine.lookup_joins import CONDITION, key_name
from seamline.lake.engine.rule_conditions import list_conditions
from seamline.lake.storage.arrow_types import arrow_type
from seamline.lake.storage.durability import sync_file, sync_folders
from seamline.lake.storage.exact_casts import cast_exactly, through_doubles
from seamline.lake.storage.layout import Layout, definitions_folder
from seamline.lake.storage.parquet_files import read_plain_columns
from seamline.lake.store.locations import Location, replace_file
from seamline.model.compile.lookups.lookup_join import MOST_CONDITIONS, LookupJoin, compile_rule_condition
from seamline.model.errors import DefinitionError, LookupBroken, SeamlineError

log = logging.getLogger("seamline.lookups")
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
SHOWN = 3
ONE_ROW = "a look-up returns one row for a key: make the key unique, or add a column to on=."
MOST_RULES, MOST_OF_ALL = 10_000, 1_000
"""How many rows of a table of rules may have one key, and how many there may be where there is no key."""
DOUBLES = "make it DECIMAL or text where the table is made, or declare the column DOUBLE."


def path_of(join: LookupJoin) -> Path:
    """Return where a look-up's file or folder is; relative to the folder of definitions."""
    return definitions_folder() / join.table


def read_lookup_signature(join: LookupJoin) -> object:
    """Read what changes when the table does, at the cost of asking the file system; functions never change."""
    if FUNCTION.fullmatch(join.table):
        return None
    path = path_of(join)
    if path.is_dir():
        return DeltaTable(str(path), without_files=True).version()
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


def read_lookup_mark(join: LookupJoin) -> object:
    """Read the ``read_lookup_signature``, or why there is none: what is broken is read again when it changes."""
    try:
        return read_lookup_signature(join)
    except Exception as error:  # noqa: BLE001 - what is wrong with a table shows when it is read
        return f"{type(error).__name__}: {error}"


def table_schema(join: LookupJoin) -> pa.Schema:
    """Return the columns of what ``load_lookup`` returns."""
    return pa.schema([(name, arrow_type(type)) for name, _, type in columns_of(join)])


def columns_of(join: LookupJoin) -> list[tuple[str, str, str]]:
    """List the columns: what they are called when loaded, in the table, and their Spark types."""
    keys = [(key_name(name), name, key.type.spark) for name, key in join.keys]
    conditions = [(CONDITION, join.condition, "STRING")] if join.condition else []
    return [*keys, *((field.name, name, field.type.spark) for name, field in join.columns), *conditions]


def load_lookup(join: LookupJoin) -> pa.Table:
    """Load a look-up: its keys by ``key_name``, its columns as a row calls them, in the order of the keys.

    Raises LookupBroken if it cannot be read, lacks a column, has a value of another type or a key twice.
    A row without a key matches nothing and is left out.
    """
    wanted = [name for _, name, _ in columns_of(join)]
    try:
        found = read_lookup_source(join, list(dict.fromkeys(wanted)))
    except SeamlineError:
        raise
    except Exception as error:
        raise LookupBroken(
            f"Look-up {join.name}: {join.table!r} cannot be read: {type(error).__name__}: {error}.",
            hint=f"paths are relative to {definitions_folder()}; functions must be importable.",
        ) from error
    if missing := [name for name in wanted if name not in found.column_names]:
        raise LookupBroken(
            f"Look-up {join.name}: {join.table!r} has no column {missing[0]!r}.",
            hint=f"it has {', '.join(found.column_names)}.",
        )
    columns = [cast_lookup_column(join, found[name], type, name) for _, name, type in columns_of(join)]
    keys = [key_name(name) for name, _ in join.keys]
    table = pa.table(columns, schema=table_schema(join))
    for key in keys:
        table = table.filter(pc.is_valid(table[key]))
    if not join.every:
        return require_unique_keys(join, table, keys, ONE_ROW)
    name, named = join.columns[0]
    if table[named.name].null_count:
        raise LookupBroken(
            f"Look-up {join.name}: {join.table!r} has a row without a value of {name!r}.",
            hint="the first of columns= names the rule: give each row one.",
        )
    require_few_rules(join, table, keys)
    if join.condition:
        require_conditions(join, table, named.name)
    return require_unique_keys(
        join, table, [*keys, named.name], "give each rule of a key another name: records have that."
    )


def read_lookup_source(join: LookupJoin, wanted: Sequence[str]) -> pa.Table:
    """Read the table as it is kept; a csv's cells are text, empty ones NULL."""
    if FUNCTION.fullmatch(join.table):
        module, _, name = join.table.partition(":")
        given: Any = getattr(importlib.import_module(module), name)()
        return given if isinstance(given, pa.Table) else pa.Table.from_pandas(given, preserve_index=False)
    path = path_of(join)
    if path.is_dir():
        return DeltaTable(str(path)).to_pyarrow_table()
    if path.suffix == ".parquet":
        return read_plain_columns(path)
    options = pcsv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    return pcsv.read_csv(path, convert_options=options)


def cast_lookup_column(join: LookupJoin, values: pa.ChunkedArray, type: str, column: str) -> pa.ChunkedArray:
    """Cast a column to what was declared, or what its key must equal; nothing is rounded."""
    wanted = arrow_type(type)
    try:
        return cast_exactly(values, wanted)
    except pa.ArrowException as error:
        doubles = through_doubles(values.type, wanted)
        raise LookupBroken(
            f"Look-up {join.name}: column {column!r} of {join.table!r} is {values.type}, not {type}: {error}.",
            hint=DOUBLES if doubles else "declare its type in columns=, or CAST what the key must equal.",
        ) from error


def require_few_rules(join: LookupJoin, table: pa.Table, keys: Sequence[str]) -> None:
    """Require that a record is compared with no more rules than it can be in an epoch; LookupBroken."""
    most = table.group_by(keys).aggregate([([], "count_all")])["count_all"] if keys else [table.num_rows]
    found, bound = max(map(int, most), default=0), MOST_RULES if keys else MOST_OF_ALL
    if found > bound:
        of = "with one key" if keys else "and no key"
        raise LookupBroken(
            f"Look-up {join.name}: {join.table!r} has {found:,} rules {of}, and {bound:,} are the most.",
            hint="each is compared with every record that has its key: let on= name what chooses among them.",
        )


def require_conditions(join: LookupJoin, table: pa.Table, name: str) -> None:
    """Require that each rule has a condition that can be compiled; LookupBroken names the first that has none."""
    texts, of = list_conditions(table), f"Look-up {join.name}: {join.table!r}"
    if len(texts) > MOST_CONDITIONS:
        raise LookupBroken(
            f"{of} has {len(texts):,} different conditions, and {MOST_CONDITIONS:,} are the most.",
            hint="let what differs in a number or a word be a column, and compare that in where=.",
        )
    wrong = {text: why for text in texts if (why := find_wrong_condition(text, join))}
    for row in table.select([name, CONDITION]).to_pylist():
        text = row[CONDITION]
        if text is None or text in wrong:
            said = wrong[text].message if text else "It is empty."
            raise LookupBroken(
                f"{of} has a wrong {join.condition!r} where {join.columns[0][0]} = {row[name]!r}: {said}",
                hint=wrong[text].hint if text else "write true for a rule that has no condition of its own.",
            )


def find_wrong_condition(text: str, join: LookupJoin) -> DefinitionError | None:
    """Return what is wrong with a condition that a table has; None where nothing is."""
    try:
        compile_rule_condition(text, join.sees)
    except DefinitionError as problem:
        return problem
    return None


def require_unique_keys(join: LookupJoin, table: pa.Table, keys: Sequence[str], hint: str) -> pa.Table:
    """Return the rows in the order of their keys; LookupBroken, with a hint, if one is there twice."""
    counted = table.group_by(keys).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1)).select(keys).slice(0, SHOWN).to_pylist()
    if twice:
        called = {loaded: name for loaded, name, _ in columns_of(join)}
        named = "; ".join(
            ", ".join(f"{called[name]} = {value!r}" for name, value in row.items()) for row in twice
        )
        raise LookupBroken(
            f"Look-up {join.name}: {join.table!r} has more than one row with {named}.",
            hint=hint,
        )
    return table.sort_by([(key, "ascending") for key in keys]).combine_chunks()


def hash_lookup_rows(table: pa.Table) -> str:
    """Hash what a loaded look-up says to 12 hex digits."""
    digest = hashlib.sha256(repr([(field.name, str(field.type)) for field in table.schema]).encode())
    for batch in table.to_batches(max_chunksize=10_000):
        digest.update(repr(list(batch.to_pydict().values())).encode())
    return digest.hexdigest()[:12]


class Lookups:
    """The pinned look-ups of a pipeline that are of tables, each by its newest version that could be read.

    A table that cannot be read leaves the version before it in force; ``before`` are those of the last epoch.
    Making one reads all tables, and raises LookupBroken for one that has no version before it.
    """

    def __init__(
        self,
        joins: Sequence[LookupJoin],
        layout: Layout,
        before: Mapping[str, str],
        *,
        every: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.joins = tuple(join for join in joins if not join.of)
        self.layout, self.every, self.clock = layout, every, clock
        self.seen: dict[str, object] = {}
        names = {join.name for join in self.joins}
        self.versions = {name: version for name, version in before.items() if name in names}
        for join in self.joins:
            self.poll(join)
        self.asked = clock()

    def current_versions(self) -> Mapping[str, str]:
        """Return the version of each look-up; the tables are asked at most once in ``every`` seconds."""
        if self.clock() - self.asked >= self.every:
            for join in self.joins:
                self.poll(join)
            self.asked = self.clock()
        return dict(self.versions)

    def version_paths(self, versions: Mapping[str, str]) -> dict[str, Location]:
        """Return the file of each version."""
        return {name: self.layout.lookup(name, version) for name, version in versions.items()}

    def poll(self, join: LookupJoin) -> None:
        """Take the newest version, or log why the one before it stays."""
        try:
            self.load(join)
        except LookupBroken as problem:
            if join.name not in self.versions:
                raise
            log.warning("%s Version %s stays in use.", problem.message, self.versions[join.name])

    def load(self, join: LookupJoin) -> None:
        """Load a table that has changed and keep it; what it was is noted first, so that it is read once."""
        now = read_lookup_mark(join)
        if join.name in self.seen and self.seen[join.name] == now:
            return
        self.seen[join.name] = now
        version = keep_lookup_version(join, self.layout)
        if join.name in self.versions and self.versions[join.name] != version:
            log.info("Look-up %s changes from version %s to %s", join.name, self.versions[join.name], version)
        self.versions[join.name] = version


def keep_lookup_version(join: LookupJoin, layout: Layout) -> str:
    """Read a look-up, store it under its version, and return that; LookupBroken as ``load_lookup``."""
    table = load_lookup(join)
    version = hash_lookup_rows(table)
    path = layout.lookup(join.name, version)
    if not path.exists():
        write_lookup_version(table, path)
    return version


def write_lookup_version(table: pa.Table, path: Location) -> None:
    """Write a version whole or not at all; it is on disk before an epoch names it."""
    written = pa.BufferOutputStream()
    pq.write_table(table, written)
    replace_file(path, written.getvalue().to_pybytes(), before=sync_file)
    sync_folders([path.parent], above=path.parents[2])
