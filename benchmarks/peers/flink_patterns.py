"""Whether patterns find what Flink SQL's MATCH_RECOGNIZE finds, in rows made up. Slow.

    python -m benchmarks.peers.flink_patterns --patterns 60 --rows 40 --seed 1

Both get the same steps and measures. Flink drops a row that is exactly ``WITHIN`` after the first one, which
Seamline still takes: its patterns get a microsecond less. What else Flink means differently is left out
(pattern_cases.py says what). The exit code is 1 if a match differs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from benchmarks.peers.flink import Flink, flink, write_failure
from benchmarks.peers.pattern_cases import KINDS, Case, Row, make_case
from benchmarks.spine import free_port
from seamline.model.functions.folding import BLANK, Fold, KeyRow, Place
from seamline.model.patterns.pattern_function import HOLDS, PatternFunction, load_pattern
from seamline.model.patterns.steps import list_step_names
from seamline.model.types.schema import Schema

KEYS = 4
SECOND = 1_000_000
PER_JOB = 20
"""So many patterns are one job: each is an operator of its own."""
OF_STEP = ("count({0}.n)", "first({0}.n)", "last({0}.n)", "sum({0}.amount)", "last({0}.amount)")
OF_MATCH = ("first(n)", "last(n)", "count(amount)", "sum(amount)", "min(amount)", "max(amount)")
TABLE = """
CREATE TABLE made (
  c INT, k INT, n BIGINT, kind INT, amount BIGINT, ms BIGINT, `at` AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'json')"""
ROWS_OF = "CREATE TEMPORARY VIEW made_{0} AS SELECT k, n, kind, amount, `at` FROM made WHERE c = {0}"
QUERY = """
SELECT {number}, k, {shown} FROM made_{number} MATCH_RECOGNIZE (
  PARTITION BY k ORDER BY `at`
  MEASURES {measures}
  ONE ROW PER MATCH AFTER MATCH SKIP {skip}
  PATTERN ({steps}){within}
  DEFINE {define}
)"""

Found = dict[tuple[int, int], list[str]]
"""What the matches show, by the number of the case and the key, sorted as text."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compare, and say what differs."""
    asked = read_arguments(argv)
    dice = random.Random(asked.seed)
    cases = [make_case(dice, KEYS, asked.rows) for _ in range(asked.patterns)]
    ours = fold_all(cases)
    theirs = ask_flink(cases)
    settled = [place for place in ours if cases[place[0]].is_settled(place[1])]
    differing = 0
    for number, key in settled:
        own, other = (each[number, key] for each in (ours, theirs))
        if not cases[number].is_single(key):
            own, other = (shorten(each) for each in (own, other))
        if own != other:
            differing += 1
            show(cases[number], key, own, other)
    rows, matches = len(settled) * asked.rows, sum(len(ours[place]) for place in settled)
    print(
        f"{len({number for number, _ in settled})} patterns, {rows:,} rows, {matches:,} matches: "
        f"{differing} of {len(settled)} keys differ; {len(ours) - len(settled)} keys are left out."
    )
    return int(bool(differing))


def read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    reader = argparse.ArgumentParser(prog="python -m benchmarks.peers.flink_patterns", description=__doc__)
    reader.add_argument("--patterns", type=int, default=60)
    reader.add_argument("--rows", type=int, default=40, help=f"of each of {KEYS} keys")
    reader.add_argument("--seed", type=int, default=1)
    return reader.parse_args(argv)


def show(case: Case, key: int, ours: Sequence[str], theirs: Sequence[str]) -> None:
    """Print what differs."""
    print(f"\n{case.text}  within {case.within} s, skip {case.skip}")
    print(" ", {step.name: sorted(step.kinds) for step in case.steps})
    print(" ", " ".join(f"{row.n}@{row.second}:{row.kind}" for row in case.of_key(key)))
    for name, own, others in (("Seamline", ours, theirs), ("Flink", theirs, ours)):
        for match in sorted(set(own) - set(others)):
            print(f"  only {name}: {match}")


def shorten(matches: Sequence[str]) -> list[str]:
    """Leave out of matches which steps their rows take."""
    return sorted(" ".join(match.split()[-len(OF_MATCH) :]) for match in matches)


def list_measures(case: Case) -> dict[str, str]:
    """List what a match shows, in the words of both."""
    of_steps = [text.format(step.name) for step in case.steps for text in OF_STEP]
    return {f"m{place}": text for place, text in enumerate([*of_steps, *OF_MATCH])}


def fold_all(cases: Sequence[Case]) -> Found:
    """Return what the matches of Seamline show."""
    return {
        (number, key): sorted(write(values) for values in fold(case, key))
        for number, case in enumerate(cases)
        for key in range(KEYS)
    }


def fold(case: Case, key: int) -> Iterator[Sequence[Any]]:
    """Fold the rows of a key."""
    within = None if case.within is None else case.within * SECOND - 1
    made = PatternFunction(
        case.text,
        list_measures(case),
        Schema.parse("n BIGINT, amount BIGINT"),
        within=within,
        skip=case.skip,
    )
    names = list_step_names(case.text)
    rows = [
        KeyRow(row.second * SECOND, Place(0, row.n, "t", "id"), make_values(case, row, names))
        for row in case.of_key(key)
    ]
    for item in Fold(load_pattern("found", made)).finish(BLANK, rows, 10**9 * SECOND):
        assert not item.side
        yield item.values


def make_values(case: Case, row: Row, names: Sequence[str]) -> Mapping[str, Any]:
    """Return a row with the steps that hold for it."""
    holds = case.hold(row)
    bits = sum(1 << place for place, name in enumerate(names) if name in holds)
    return {HOLDS: bits, "n": row.n, "amount": row.amount}


def write(values: Sequence[Any]) -> str:
    """Write what a match shows as Flink is told to."""
    return " ".join("-" if value is None else str(value) for value in values)


def ask_flink(cases: Sequence[Case]) -> Found:
    """Return what the matches of Flink show."""
    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, flink(Path(folder)) as engine:
        path = Path(folder) / "made.json"
        write_rows(cases, path)
        for begin in range(0, len(cases), PER_JOB):
            numbers = range(begin, min(begin + PER_JOB, len(cases)))
            for number, key, shown in run(engine, path, {number: cases[number] for number in numbers}):
                found[number, key].append(shown)
            print(f"Flink has looked for {numbers.stop} patterns.", file=sys.stderr, flush=True)
    return defaultdict(list, {place: sorted(matches) for place, matches in found.items()})


def write_rows(cases: Sequence[Case], path: Path) -> None:
    """Write the rows of all cases as JSON, in the order of their times."""
    rows = sorted((row.second, number, row) for number, case in enumerate(cases) for row in case.rows)
    with path.open("w") as file:
        for second, number, row in rows:
            made = {"c": number, "k": row.key, "n": row.n, "kind": row.kind, "amount": row.amount}
            print(json.dumps({**made, "ms": second * 1000}), file=file)


def run(engine: Flink, path: Path, cases: Mapping[int, Case]) -> Iterator[tuple[int, int, str]]:
    """Run one job of several patterns, and give each match: its case, its key and what it shows."""
    tables = engine.open_tables(free_port())
    tables.getConfig().set("parallelism.default", "1")
    tables.executeSql(TABLE.format(path=path.as_uri()))
    for number in cases:
        tables.executeSql(ROWS_OF.format(number))
    query = " UNION ALL ".join(make_query(number, case) for number, case in cases.items())
    try:
        rows = tables.executeSql(query).collect()
        while rows.hasNext():
            row = rows.next()
            yield row.getField(0), row.getField(1), row.getField(2)
    except Py4JJavaError as error:
        raise SystemExit(write_failure(error)) from error


def make_query(number: int, case: Case) -> str:
    """Return the query of a case."""
    measures = list_measures(case)
    define = [
        f"{step.name} AS kind IN ({', '.join(map(str, sorted(step.kinds)))})"
        for step in case.steps
        if len(step.kinds) < KINDS
    ]
    return QUERY.format(
        number=number,
        shown=" || ' ' || ".join(f"COALESCE(CAST({name} AS STRING), '-')" for name in measures),
        measures=", ".join(f"{text} AS {name}" for name, text in measures.items()),
        skip=case.skip.upper(),
        steps=case.flink_text,
        within=f" WITHIN INTERVAL '{case.within}' SECOND" if case.within else "",
        define=", ".join(define),
    )


if __name__ == "__main__":
    sys.exit(main())
