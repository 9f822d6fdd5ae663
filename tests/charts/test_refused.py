"""Values that cannot be right are refused by their names, before anything is made."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.charts.rendering import CHART, LEAST, Rendered, render

pytestmark = pytest.mark.faults
REFUSED = {
    "nothing": ("", "pipelines: no pipeline is listed"),
    "no pipelines": ("pipelines: []", "pipelines: no pipeline is listed"),
    "only names": ("pipelines: [orders]", "write {name: orders}"),
    "no name": ("pipelines: [{resources: {}}]", 'pipelines: "" is no name'),
    "capitals": ("pipelines: [{name: Orders}]", 'pipelines: "Orders" is no name of a pipeline'),
    "hyphen": ("pipelines: [{name: web-orders}]", 'pipelines: "web-orders" is no name of a pipeline'),
    "number": ("pipelines: [{name: 7}]", 'pipelines: "7" is no name of a pipeline'),
    "collision": ("pipelines: [{name: orders}, {name: orders_}]",
                  "pipelines: orders and orders_ would both be seamline-orders"),
    "twice": ("pipelines: [{name: orders}, {name: orders}]", "pipelines: orders and orders would both be"),
    "no warehouse": ("warehouse: ''", "warehouse: where the tables are is not set"),
    "folder": ("warehouse: /srv/warehouse", "warehouse: /srv/warehouse is no address of a bucket"),
    "own folder": ("warehouses: {orders: /srv}", "warehouse: /srv is no address of a bucket"),
    "own of nobody": ("warehouses: {Orders: s3://a}", 'warehouses: "Orders" is no name of a pipeline'),
    "no Kafka": ("kafka: {existingSecret: ''}", "kafka.existingSecret: the Secret"),
    "connection": ("kafka: {existingSecret: kafka, connection: Kafka-1}", 'kafka.connection: "Kafka-1"'),
    "key": ("store: {secretKey: hunter22}", "the chart takes no keys"),
    "password": ("kafka: {existingSecret: kafka, password: hunter22}", "the chart takes no keys"),
    "plain secret": ("env: {AWS_SECRET_ACCESS_KEY: hunter22}", "env.AWS_SECRET_ACCESS_KEY: looks like a secret"),
    "plain connection": ("env: {AIRFLOW_CONN_KAFKA_OTHER: '{}'}", "env.AIRFLOW_CONN_KAFKA_OTHER: looks like"),
    "secret in a URL": ("env: {SEAMLINE_ALERT_WEBHOOK: 'https://ada:hunter22@example.org'}",
                        "env.SEAMLINE_ALERT_WEBHOOK: looks like a secret"),
    "set already": ("env: {SEAMLINE_HOME: /tmp}", "env.SEAMLINE_HOME: the chart sets it"),
    "secret of Spark": ("builds: {conf: {spark.hadoop.fs.s3a.secret.key: hunter22}}", "looks like a secret"),
    "two places": ("definitions: {existingConfigMap: a, existingClaim: b}", "definitions: existingConfigMap and"),
    "account": ("serviceAccount: {create: false}", "serviceAccount.name is needed"),
    "scaled by nothing": ("stream: {spark: {enabled: true, autoscaling: {enabled: true}}}",
                          "stream.spark.autoscaling.prometheus: the address of Prometheus is not set"),
    "misspelled": ("pipeline: [{name: orders}]", "pipeline"),
}  # fmt: skip


def rendered(text: str, folder: Path) -> Rendered:
    """Render the least values, with some in the place of theirs."""
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump({**yaml.safe_load(LEAST), **(yaml.safe_load(text) or {})}))
    return render(values)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_right_is_refused(name: str, tmp_path: Path) -> None:
    """Whoever installs the chart reads which value is wrong, and no secret is repeated."""
    text, why = REFUSED[name]
    made = render(CHART / "values.yaml") if name == "nothing" else rendered(text, tmp_path)
    assert made.text.strip() == "" and why in made.refusal
    assert "hunter22" not in made.refusal


def test_the_least_is_enough(tmp_path: Path) -> None:
    """What is refused above is refused for what was put in."""
    assert rendered("", tmp_path).refusal == ""
