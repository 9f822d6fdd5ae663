"""The tables of docs/capacity.md, made by the model: `python -m benchmarks.scale --page` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, isinf
from pathlib import Path

from benchmarks.scale import requests
from benchmarks.scale.bottleneck import Costs, Limit, list_limits, most_of
from benchmarks.scale.building import upkeep_seconds
from benchmarks.scale.epoch import most_events
from benchmarks.scale.fitting import read_observations
from benchmarks.scale.load import Load
from benchmarks.scale.predictions import WITHIN, read_predictions
from benchmarks.scale.report import store_bytes_a_month
from benchmarks.scale.units import Units

PAGE = Path(__file__).resolve().parents[2] / "docs" / "capacity.md"
PART = re.compile(
    r"(<!-- made by python -m benchmarks\.scale --page: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL
)
LATENCIES: tuple[float | None, ...] = (None, 1.0, 11.0, 27.0)
BASE = Load()
QUIET = replace(BASE, events=100.0, trigger=30.0)
"""What each of many pipelines is given."""
SPREAD = replace(QUIET, machine_gb=1e6, cores=1e5)
"""The same, with streams on as many machines as they need."""
EXTREMES: tuple[tuple[str, float, str, Load], ...] = (
    ("events", 1e6, "events/s", BASE),
    ("partitions", 1e3, "partitions", BASE),
    ("intervals", 1e5, "intervals", BASE),
    ("keys", 1e8, "keys", BASE),
    ("pipelines", 1e4, "pipelines, one machine", QUIET),
    ("pipelines", 1e4, "pipelines, many machines", SPREAD),
)
YAHOO = replace(BASE, events=15e6, views=1, keys=100, partitions=64, rtt=11.0, cores=64, machine_gb=256.0)
"""The Yahoo benchmark as Flink's authors ran it: 15 million events a second, 100 campaigns, windows of ten seconds."""
SHARDS: tuple[tuple[str, Load], ...] = (
    ("as shipped, 64 cores", YAHOO),
    (
        '`max_offsets_per_epoch=20_000_000`, `trigger="5 seconds"`, 16 cores',
        replace(YAHOO, max_offsets=20e6, trigger=5.0, cores=16),
    ),
    ("the same, 64 cores", replace(YAHOO, max_offsets=20e6, trigger=5.0)),
    (
        '`max_offsets_per_epoch=60_000_000`, `trigger="20 seconds"`, 64 cores',
        replace(YAHOO, max_offsets=60e6, trigger=20.0),
    ),
)
GROWS = 1.02
"""Times as much, at least, that something uses which ends because of a dimension."""
ANY = 1e9
NEARLY = 0.3
FILLED = 0.7
"""The share of what a stream keeps up with that it is given."""


def write_page(text: str, units: Units) -> str:
    """Write the parts of the page anew; KeyError for one that is not known."""
    return PART.sub(lambda found: found[1] + PARTS[found[2]](units) + found[3], text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table of Markdown."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def spell(number: float) -> str:
    """Write a number with two digits that count."""
    if isinf(number):
        return "no bound"
    if number >= 10:
        digits = len(str(int(number))) - 2
        return f"{round(number, -digits):,.0f}"
    return f"{number:.2g}"


def name_place(rtt: float | None) -> str:
    """Name where a warehouse is."""
    return "on disk" if rtt is None else f"{rtt:g} ms"


def load_at(base: Load, dimension: str, value: float, rtt: float | None) -> Load:
    """Return the workload of an extreme."""
    given: float = round(value) if dimension == "partitions" else value
    return replace(base, rtt=rtt, **{dimension: given})


def extremes(units: Units) -> str:
    """Write what ends first as each dimension grows."""
    rows = []
    for dimension, value, name, base in EXTREMES:
        for rtt in LATENCIES:
            load = load_at(base, dimension, value, rtt)
            growing = list_growing(load, load_at(base, dimension, value / 10, rtt), units)
            ends = [(most_of(load, dimension, units, each.resource), each) for each in growing]
            most, first = min(ends, key=lambda end: end[0])
            told = [f"{value:,.0f} {name}", name_place(rtt), first.name, spell(most), spell_share(first.used)]
            rows.append([*told, f"`{first.knob}`: {first.how}"])
    return table(["load", "warehouse", "what ends first", "at", "used at the load", "the setting"], rows)


def list_growing(load: Load, tenth: Load, units: Units) -> list[Limit]:
    """List what is used most, of what a tenth of the load uses less of."""
    less = {each.name: each.used for each in list_limits(tenth, units)}
    found = [each for each in list_limits(load, units) if each.used > GROWS * less[each.name]]
    return [each for each in found if each.used > NEARLY * found[0].used]


def spell_share(share: float) -> str:
    """Write a share: in percent below two, in times above."""
    return f"{share:.0%}" if share < 2 else f"{spell(share)} times"


def following(units: Units) -> str:
    """Write all that does not suffice, on disk."""
    rows = []
    for dimension, value, name, base in EXTREMES:
        limits = list_limits(load_at(base, dimension, value, None), units)
        cells = [f"{each.name} ({spell_share(each.used)})" for each in limits if each.used > 1]
        rows.append([f"{value:,.0f} {name}", ", ".join(cells) or "nothing"])
    lines = (["load", "what does not suffice"], ["---", "---"], *rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def sharded(load: Load, units: Units) -> tuple[float, int, Load]:
    """Return what one stream of the example keeps up with, into how many it goes, and what each is given."""
    most = most_events(load, units)
    count = max(1, ceil(load.events / (FILLED * most)))
    return most, count, replace(load, events=load.events / count)


def yahoo(units: Units) -> str:
    """Write the worked example."""
    rows = []
    for name, load in SHARDS:
        most, count, each = sharded(load, units)
        costs = Costs(each, units)
        asked = {kind: count * value for kind, value in costs.requests.items()}
        month = requests.dollars_a_month(asked, units)
        writes = sum(asked[kind] for kind in requests.WRITING_KINDS if kind in asked)
        reads = asked["GET"] + asked["HEAD"]
        rows.append(
            [
                name,
                spell(most),
                spell(most_events(replace(load, cores=ANY), units)),
                f"{count:,}",
                spell(count * costs.cores),
                spell_share(upkeep_seconds(each, costs.history, units) / each.upkeep),
                spell(writes),
                spell(reads),
                f"{(writes + reads) * requests.MONTH / 1e6:,.0f}",
                f"{month:,.0f}",
            ]
        )
    heads = [
        "each stream",
        "events/s it keeps up with",
        "with any cores",
        "streams",
        "cores busy",
        "an upkeep",
    ]
    heads += ["PUT, LIST a second", "GET, HEAD a second", "million requests a month", "dollars"]
    return table(heads, rows)


def yahoo_bill(units: Units) -> str:
    """Write what the example costs in a month beside its requests."""
    _, count, each = sharded(SHARDS[-1][1], units)
    costs = Costs(each, units)
    cores = count * costs.cores
    stored = store_bytes_a_month(YAHOO, units) / 1e12
    hours = requests.MONTH / 3600
    asked = {kind: count * value for kind, value in costs.requests.items()}
    rows = [
        ["cores", f"{spell(cores)} busy", f"{cores * hours * units['price.core']:,.0f}"],
        ["memory", f"{spell(count * costs.stream_mb / 1024)} GB", ""],
        [
            "requests",
            f"{spell(sum(asked.values()))} a second",
            f"{requests.dollars_a_month(asked, units):,.0f}",
        ],
        ["a month of records", f"{spell(stored)} TB", f"{stored * units['price.terabyte']:,.0f}"],
        ["read from Kafka", f"{YAHOO.events * YAHOO.event_bytes / 1e9:.1f} GB/s", ""],
        ["written to the bucket", f"{YAHOO.events * units['stored'] / 1e9:.2f} GB/s", ""],
    ]
    return table(["", "how much", "dollars a month"], rows)


def compared(_: Units) -> str:
    """Write what was predicted beside what was measured."""
    rows = []
    for each in read_predictions():
        sizes = ", ".join(f"{value:,.0f} {name}" for name, value in each.sizes.items())
        for at, (figure, said, found, error) in enumerate(each.errors()):
            missed = f"**{error:.0%}**" if error > WITHIN else f"{error:.0%}"
            place = [] if at else [str(each.round), f"{each.kind}: {sizes}"]
            rows.append([*(place or ["", ""]), f"`{figure}`", f"{said:.4g}", f"{found:.4g}", missed])
    return table(["round", "trial", "figure", "predicted", "measured", "off by"], rows)


def hits(_: Units) -> str:
    """Write how many predictions held, round by round."""
    rounds: dict[int, list[tuple[str, float]]] = {}
    for each in read_predictions():
        errors = [(f"{figure} of {each.kind}", error) for figure, _, _, error in each.errors()]
        rounds.setdefault(each.round, []).extend(errors)
    rows = []
    for number, found in rounds.items():
        if not found:
            continue
        worst, error = max(found, key=lambda each: each[1])
        held = sum(each <= WITHIN for _, each in found)
        rows.append(
            [
                str(number),
                f"{held} of {len(found)}",
                f"{error:.0%}, `{worst.partition(' ')[0]}` of {worst.rpartition(' ')[2]}",
            ]
        )
    return table(["round", f"figures within {WITHIN:.0%}", "the worst"], rows)


def consumers(_: Units) -> str:
    """Say what it costs that Spark keeps fewer Kafka consumers than there are partitions."""
    streams = [each for each in read_observations() if each.kind == "stream"]
    [more] = [each for each in streams if "cache" in each.sizes]
    [same] = [each for each in streams if each is not more and each.sizes.items() <= more.sizes.items()]
    few, many = (each.figures["epoch_cpu_s"] for each in (same, more))
    return (
        f"With {more.sizes['partitions']:g} partitions an epoch of {more.sizes['epoch']:,.0f} records takes {few:.2f} "
        f"CPU seconds, and {many:.2f} if {more.sizes['cache']:g} consumers are kept.\n"
    )


PARTS: dict[str, Callable[[Units], str]] = {
    each.__name__: each for each in (extremes, following, consumers, yahoo, yahoo_bill, compared, hits)
}
