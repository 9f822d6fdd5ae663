"""One Spark session as every job of ours wants it: quiet, UTC, Delta and Kafka on the class path.

It is of a Spark of this process, or of the Spark Connect server that SPARK_REMOTE names.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from seamline.model.errors import SetupError
from seamline.model.protocol.job_arguments import BRIEF
from seamline.runtime.java import (
    class_path,
    is_in_bucket,
    jvm_options,
    spark_jars,
    store_class_path,
    store_jars,
)
from seamline.spark.session import unix_sockets
from seamline.spark.session.arrow_batches import MEASURED
from seamline.spark.session.attempt_notes import Attempted
from seamline.spark.session.object_store import s3a_settings

PACKAGES = Path(__file__).resolve().parents[3]
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
    "spark.databricks.delta.stats.skipping": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(MEASURED.records),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(MEASURED.bytes),
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
# A failing Python foreachBatch is matched by a regex that recurses: the default stack overflows.
JAVA = "-Xss8m -Duser.timezone=UTC"

OF_A_CLIENT = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
)
"""What a client of a server brings along; the rest is the server's."""
LETTING_GO = {
    f"spark.kafka.consumer.{cache}.{name}": "1s"
    for cache in ("cache", "fetchedData.cache")
    for name in ("timeout", "evictorThreadRunInterval")
}
"""Of a driver that knows of trouble: each query of another size has Kafka consumers of its own, and those of before
would keep what they have fetched, once decompressed, for five minutes."""
OF_THIS_HOST = ("spark.driver.host", "spark.driver.bindAddress")
"""What a driver whose executors are elsewhere must not say."""
MASTER = "SEAMLINE_SPARK_MASTER"
ANSWERS_WITHIN = 60.0
DAEMON = "seamline.spark.daemon"
CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"


def open_spark_session(
    app: str,
    *,
    cores: str = "",
    memory: str = "2g",
    more: Mapping[str, str] | None = None,
    java: str | None = None,
    brief: bool = False,
    warehouse: str = "",
) -> SparkSession:
    """Start Spark, or return the session that runs already; ``memory`` is the driver's heap, ``cores`` Spark's master.

    Where ``cores`` is empty, SEAMLINE_SPARK_MASTER names the master; without either it is "local[2]".

    Under spark-submit the name, the master and the memory are those of the submission; with SPARK_REMOTE there is
    a server that has them. SEAMLINE_SPARK_UI=true turns on Spark's pages; ``more`` settings go before ours;
    ``java`` are options of its JVM instead of ``jvm_options``; with ``brief`` it ends before it has done much.
    ``warehouse`` is where tables are: for one in a bucket Spark gets what it needs to read and write there.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if url := os.environ.get("SPARK_REMOTE"):
        return of_server(url)
    bucket = is_in_bucket(warehouse)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = submitted_master() if submitted else choose_master(cores, os.environ)
    local = is_in_driver(master)
    builder = SparkSession.builder
    if not submitted:
        builder = builder.appName(app).master(master).config("spark.driver.memory", write_heap(memory))
        builder = builder.config("spark.driver.extraClassPath", class_path())
        os.environ.update(store_class_path(os.environ) if bucket else {})
    if not local:
        # An executor in the driver has its class path; what is named here is copied for each.
        jars = [*spark_jars(), *(store_jars() if bucket else [])]
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    shown = {
        "spark.ui.enabled": os.environ.get("SEAMLINE_SPARK_UI", SETTINGS["spark.ui.enabled"]),
        "spark.driver.extraJavaOptions": f"{JAVA} {jvm_options(brief=brief) if java is None else java}",
        "spark.executorEnv.PYTHONPATH": str(PACKAGES),
    }
    ours = pick_settings(master)
    near = {"spark.python.daemon.module": DAEMON, **unix_sockets.unix_socket_settings()} if local else {}
    small = BRIEF if brief else {}
    for name, value in {
        **ours,
        **near,
        **shown,
        **s3a_settings(os.environ, warehouse),
        **small,
        **(more or {}),
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def start_spark_in_thread(app: str, **given: Any) -> Future[SparkSession]:
    """Start Spark in a thread of its own: a start is mostly waiting, and who needs it has modules to import."""
    made: Future[SparkSession] = Future()

    def start() -> None:
        try:
            made.set_result(open_spark_session(app, **given))
        except Exception as error:  # noqa: BLE001 - who waits for it gets it
            made.set_exception(error)

    threading.Thread(target=start, name="spark", daemon=True).start()
    return made


def halved_driver_settings(attempt: Path) -> Mapping[str, str]:
    """Return the settings of a driver where earlier ones left in ``attempt`` what halving had learned; else none."""
    note = Attempted(attempt).read()
    return LETTING_GO if note and note.size else {}


def is_spark_connect() -> bool:
    """Return whether Spark is a Spark Connect server's, and not of this process."""
    return "SPARK_REMOTE" in os.environ


def close_connect_session(spark: SparkSession) -> None:
    """Close the session on a server. A Spark of this process ends with it, and takes a second less than to stop."""
    if is_spark_connect():
        spark.stop()


def choose_master(declared: str, environ: Mapping[str, str]) -> str:
    """Return Spark's master: the one that is declared, else the deployment's, else this process."""
    return declared or environ.get(MASTER) or "local[2]"


def write_heap(declared: str) -> str:
    """Return the size of a heap as Java reads it, of which Spark asks no more: "2gb" is "2g" there."""
    return declared.lower().removesuffix("b")


def pick_settings(master: str) -> Mapping[str, str]:
    """Return our settings for a session of that master: executors elsewhere reach the driver by its host's own name."""
    return {
        name: value for name, value in SETTINGS.items() if is_in_driver(master) or name not in OF_THIS_HOST
    }


def is_in_driver(master: str) -> bool:
    """Return whether tasks run in the driver's own JVM; of ``local-cluster[...]`` each executor is a process."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def submitted_master() -> str:
    """Return the master that spark-submit was given; a SparkConf knows it once the JVM is known."""
    SparkContext._ensure_initialized()  # noqa: SLF001
    return SparkConf().get("spark.master") or ""


def start_connect_server(app: str, port: int, *, warehouse: str) -> SparkSession:
    """Start a Spark of this process that is a Spark Connect server as well, on this machine's own address."""
    # It would make the session a client of itself.
    os.environ.pop("SPARK_REMOTE", None)
    serving = {
        "spark.plugins": CONNECT,
        "spark.connect.grpc.binding.address": "localhost",
        "spark.connect.grpc.binding.port": str(port),
    }
    return open_spark_session(app, more=serving, warehouse=warehouse)


def of_server(url: str) -> SparkSession:
    """Open a session on a Spark Connect server; SetupError if none answers in time, or it has no Delta."""
    place = urlsplit(url)
    await_server(place.hostname or "localhost", place.port or 15002)
    spark = SparkSession.builder.remote(url).getOrCreate()
    if "Delta" not in (spark.conf.get("spark.sql.extensions", "") or ""):
        spark.stop()
        raise SetupError(
            f"The Spark server at {place.netloc} does not support Delta.",
            hint=f"start it with spark.sql.extensions={SETTINGS['spark.sql.extensions']} and Delta's jars.",
        )
    for name in OF_A_CLIENT:
        spark.conf.set(name, SETTINGS[name])
    return spark


def await_server(host: str, port: int) -> None:
    """Wait until someone listens: a driver that has just been started again takes a moment."""
    until = time.monotonic() + ANSWERS_WITHIN
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.2)
    raise SetupError(
        f"No Spark Connect server answered at {host}:{port} within {ANSWERS_WITHIN:g} s.",
        hint="`seamline driver status` shows the resident driver, `seamline driver start` starts it.",
    )


def format_session_summary(spark: SparkSession) -> str:
    """Describe which Spark this is, and where its pages are."""
    if url := os.environ.get("SPARK_REMOTE"):
        return f"Spark {spark.version} behind {urlsplit(url).netloc}"
    return f"Spark {spark.sparkContext.applicationId}, UI: {spark.sparkContext.uiWebUrl or 'off'}"
