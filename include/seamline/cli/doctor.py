"""``seamline doctor``: what an installation lacks, one line each, with a way out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import click
from packaging.requirements import Requirement

from seamline.cli.machine_checks import (
    Finding,
    check_folders,
    check_java,
    check_neighbours,
    check_variables,
    run_check,
)
from seamline.model.compile.catalog import Catalog
from seamline.model.compile.counts.counting_sources import list_counting_sources
from seamline.model.errors import AirflowUnavailable, NotFound, SeamlineError, SetupError
from seamline.model.protocol.warehouse_names import SHARED

if TYPE_CHECKING:
    from seamline.model.compile.compiled_pipeline import CompiledPipeline
    from seamline.orchestration.airflow_api import AirflowApi


EXTRAS = {
    "spark": ("delta-spark", "streams and builds on this machine"),
    "airflow": ("apache-airflow", "DAGs and operators"),
    "web": ("plotly", "the pages inside of Airflow, and the HTTP API"),
}
"""A package that comes with the extra alone, as PySpark and FastAPI do not, and what the extra adds."""


@click.command()
@click.option(
    "--airflow/--no-airflow", default=True, show_default=True, help="Check Airflow through its API, too."
)
def doctor(airflow: bool) -> None:
    """Check what this installation needs; exit code 6 if something is missing."""
    from seamline.cli.context import load_configured_catalog

    findings = [*check_packages(list_requirements(), find_installed_version)]
    findings += check_spark_client(find_installed_version)
    for extra in EXTRAS:
        findings += check_extra(extra, find_installed_version)
    findings += [*(check_java() if find_installed_version("delta-spark") else ()), *check_folders()]
    try:
        found = load_configured_catalog()
    except SeamlineError as error:
        found = Catalog({}, ())
        findings.append(Finding("definitions", False, error.message, error.hint))
    findings += check_definitions(found)
    findings += check_variables(found.pipelines) if found.pipelines else ()
    # Where the tables are out of reach, that is said above, once.
    if all(each.good for each in findings if each.name.startswith(SHARED)):
        findings += [
            *check_neighbours(found.pipelines),
            *check_all_decimals(found),
            *check_failovers(found),
            *check_supervisors(found),
        ]
    if airflow:
        findings += of_airflow(found)
    for each in findings:
        click.echo(str(each))
    if missing := sum(not each.good for each in findings):
        raise SetupError(
            f"{missing} of {len(findings)} checks failed.", hint="each failed check above names its fix."
        )


def find_installed_version(package: str) -> str:
    """Return the version that is installed, empty for none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def check_extra(extra: str, installed: Callable[[str], str]) -> Iterator[Finding]:
    """Check the packages of an extra, where it is installed; say what it would add where it is not."""
    own, adds = EXTRAS[extra]
    wanted = [each for each in list_requirements(extra) if each.name != "seamline"]
    if installed(own):
        yield from check_packages(wanted, installed)
    elif wanted:
        yield Finding(f"seamline[{extra}]", True, f"not installed; it adds {adds}")


def list_requirements(extra: str = "") -> list[Requirement]:
    """List what the installed distribution asks for itself, or what an extra adds; nothing where there is none."""
    try:
        declared = [Requirement(line) for line in metadata.requires("seamline") or ()]
    except metadata.PackageNotFoundError:
        return []
    if not extra:
        return [each for each in declared if not each.marker or each.marker.evaluate({"extra": ""})]
    added = [each for each in declared if each.marker and each.marker.evaluate({"extra": extra})]
    for each in added:
        each.marker = None
    return added


def check_packages(wanted: Iterable[Requirement], installed: Callable[[str], str]) -> Iterator[Finding]:
    """Compare versions with the required ones: an Airflow that was installed before may restrict some."""
    for each in wanted:
        found = installed(each.name)
        good = bool(found) and each.specifier.contains(found, prereleases=True)
        yield Finding(each.name, good, found or "not installed", f"pip install '{each}'")


def check_spark_client(installed: Callable[[str], str]) -> Iterator[Finding]:
    """Compare the version of Spark's client with that of the Spark that it lies over, where both are there."""
    client, spark = installed("pyspark-client"), installed("pyspark")
    if client and spark:
        hint = f"pip install pyspark-client=={spark}: it lays its files over pyspark's."
        yield Finding("pyspark-client", client == spark, f"{client}, pyspark is {spark}", hint)


def check_definitions(found: Catalog) -> Iterator[Finding]:
    """Look at the definitions and the connections of their topics."""
    for problem in found.problems:
        yield Finding("definition", False, f"{problem.file}:{problem.line}: {problem.message}", problem.hint)
    if found.pipelines:
        yield Finding("definitions", True, ", ".join(sorted(found.pipelines)))
    names = {find_connection_in_force(each) for each in found.pipelines.values()}
    for name in sorted(filter(None, names)):
        yield run_check(f"connection {name}", partial(resolve_brokers, name))
    for name in sorted({name for each in found.pipelines.values() for name in each.definition.registries}):
        yield run_check(f"registry {name}", partial(ask_registry, name))
    for each in found.pipelines.values():
        for _, counts in list_counting_sources(each):
            look = partial(look_at_count_topic, find_connection_in_force(each), counts.topic)
            yield run_check(f"statements {counts.topic}", look)


def find_connection_in_force(pipeline: CompiledPipeline) -> str:
    """Return the connection that a pipeline's topics are read by: the declared one, or that of a failover."""
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.decided import find_connection

    declared = pipeline.definition.connection
    try:
        return find_connection(declared, locate_tables(pipeline.name))
    except SeamlineError:
        # What is wrong with its tables is another finding.
        return declared


def check_failovers(found: Catalog) -> Iterator[Finding]:
    """Tell of each pipeline that is read by another connection than its definition has."""
    for name, pipeline in sorted(found.pipelines.items()):
        declared, other = pipeline.definition.connection, find_connection_in_force(pipeline)
        if other != declared:
            said = f"{other}, by a failover; the definition has {declared}"
            yield Finding(f"connection of {name}", True, said)


def check_all_decimals(found: Catalog) -> Iterator[Finding]:
    """Tell of each pipeline with decimals whether rows of it were read by an older rule."""
    for name, pipeline in sorted(found.pipelines.items()):
        if pipeline.exact:
            yield from check_decimals(name, pipeline)


def check_decimals(name: str, pipeline: CompiledPipeline) -> Iterator[Finding]:
    """Look at one pipeline's log."""
    from seamline.lake.log.epoch_log import each_epoch
    from seamline.lake.storage.delta_table import Table
    from seamline.lake.storage.layout import locate_tables
    from seamline.lake.tables.reprocessed import Reprocessed
    from seamline.model.compile.compiled_pipeline import rounded_record_version
    from seamline.plan.batch.reprocessing_plan import list_rounded_epochs

    layout = locate_tables(name)
    if not Table.exists(layout.table("ledger")):
        return
    judged = Reprocessed(pipeline, layout).verdicts()
    lossy = list_rounded_epochs(
        each_epoch(layout), pipeline.record_version, rounded_record_version(pipeline), judged
    )
    before = "through a double" if pipeline.format.textual else "by an older rule"
    said = f"{len(lossy)} epochs were read {before}" if lossy else "read by their own digits"
    hint = f"seamline quarantine replay {name}, then seamline flip each of its views."
    yield Finding(f"decimals of {name}", not lossy, said, hint)


def resolve_brokers(connection: str) -> str:
    """Return the brokers of a Kafka connection."""
    from seamline.kafka.connections import read_airflow_connection

    return read_airflow_connection(connection).brokers


def ask_registry(connection: str) -> str:
    """Ask a schema registry for some schema, whether or not it has it, and return where it is."""
    from seamline.kafka.schema_registry import SchemaRegistry

    registry = SchemaRegistry(connection)
    registry.find_schema(1)
    return registry.connection.url


def look_at_count_topic(connection: str, topic: str) -> str:
    """Look whether a topic of producers' statements is there and may be read."""
    from seamline.supervisor.counts.readable import describe_count_topic

    return describe_count_topic(connection, topic)


def check_supervisors(found: Catalog) -> Iterator[Finding]:
    """Tell of each stream, and of the resident driver, that is wanted whether it is kept up."""
    from seamline.lake.tables.control_table import Desired
    from seamline.supervisor import resident
    from seamline.supervisor.outside import read_stream_status

    for name, start in [*((each, f"stream start {each} --here") for each in sorted(found.pipelines)),
                        (resident.NAME, "driver start")]:  # fmt: skip
        state = read_stream_status(name)
        if state.desired in (Desired.RUNNING, Desired.PAUSED):
            what = "resident driver" if name == resident.NAME else f"stream {name}"
            said = "up" if state.live else "wanted, but nothing keeps it up"
            yield Finding(what, state.live, said, f"seamline {start}, or unpause its DAG.")


def of_airflow(found: Catalog) -> Iterator[Finding]:
    """Ask Airflow for its health, version, pools, DAGs and the Spark connection."""
    from seamline.orchestration.airflow_api import AirflowApi

    try:
        api = AirflowApi.from_env()
        health = api.health()
    except AirflowUnavailable as error:
        hint = f"{error.hint} Or leave it out: --no-airflow."
        yield Finding("Airflow", False, error.message, hint)
        return
    for name in ("metadatabase", "scheduler", "dag_processor"):
        state = health.get(name, "absent")
        yield Finding(f"Airflow's {name}", state == "healthy", state, f"start it: see {api.url}.")
    try:
        yield from check_airflow(api, sorted(found.pipelines))
    except AirflowUnavailable as error:
        yield Finding("Airflow", False, error.message, error.hint)


def check_airflow(api: AirflowApi, pipelines: Iterable[str]) -> Iterator[Finding]:
    """Ask an Airflow that answers."""
    from seamline.orchestration.pools import POOLS
    from seamline.plan.wording.observation_text import RECONCILER

    version = str(api.call("GET", "/version", login=False)["version"])
    for wanted in (each for each in list_requirements("airflow") if each.name == "apache-airflow"):
        good = wanted.specifier.contains(version, prereleases=True)
        yield Finding("Airflow's version", good, version, f"run {wanted}.")
    for error in api.import_errors():
        yield Finding("DAG file", False, error.strip().splitlines()[-1], "fix what Airflow cannot import.")
    for name, (slots, _) in POOLS.items():
        hint = f"airflow pools set {name} {slots} Seamline"
        yield check_airflow_object(f"pool {name}", partial(api.call, "GET", f"/pools/{name}"), hint)
    if "AIRFLOW_CONN_SPARK_DEFAULT" in os.environ:
        yield Finding("connection spark_default", True, "set by the environment")
    else:
        hint = "airflow connections add spark_default --conn-type spark --conn-host 'local[*]'"
        yield check_airflow_object(
            "connection spark_default", partial(api.call, "GET", "/connections/spark_default"), hint
        )
    for pipeline in pipelines:
        for layer in ("stream", "batch", "upkeep"):
            yield check_dag(api, f"{pipeline}__{layer}")
    yield check_dag(api, RECONCILER)


def check_airflow_object(name: str, look: Callable[[], object], hint: str) -> Finding:
    """Return whether Airflow has something of a name."""
    try:
        look()
    except NotFound:
        return Finding(name, False, "Airflow has none; a task that needs it would wait or fail.", hint)
    return Finding(name, True, "is there")


def check_dag(api: AirflowApi, id: str) -> Finding:
    """Return whether a DAG is there and runs."""
    try:
        paused = bool(api.dag(id)["is_paused"])
    except NotFound:
        hint = "put the two lines of docs/airflow.md into Airflow's folder of DAGs."
        return Finding(f"DAG {id}", False, "Airflow has not parsed it.", hint)
    return Finding(f"DAG {id}", not paused, "paused" if paused else "runs", f"airflow dags unpause {id}")


COMMANDS = (doctor,)
