"""Registers Seamline as a provider. Airflow reads this while it loads its configuration, so it imports nothing."""

from __future__ import annotations

from typing import Any

PACKAGE = "seamline.provider"
LINKS = "seamline.orchestration.intervals.links"


def get_provider_info() -> dict[str, Any]:
    """Return what ``airflow providers`` shows, and what the form of a connection of type ``seamline`` has."""
    return {
        "package-name": "seamline",
        "name": "Seamline",
        "description": "Streams and backfills cut by Kafka offsets: DAGs, operators and pages of Seamline.",
        "integrations": [{"integration-name": "Seamline", "tags": ["service"]}],
        **{
            kind: [{"integration-name": "Seamline", "python-modules": [f"{PACKAGE}.{kind}"]}]
            for kind in ("operators", "sensors", "hooks", "triggers")
        },
        "connection-types": [
            {
                "connection-type": "seamline",
                "hook-class-name": f"{PACKAGE}.hooks.SeamlineHook",
                "hook-name": "Seamline",
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "schema", "login", "password", "port"],
                    "relabeling": {},
                },
                "conn-fields": {
                    "warehouse": text_field(
                        "Warehouse",
                        "A folder or a bucket's URL; workers and the triggerer see it. Empty: SEAMLINE_WAREHOUSE.",
                    ),
                    "pipelines": text_field(
                        "Definitions", "The folder of the pipelines' definitions. Empty: SEAMLINE_PIPELINES."
                    ),
                    "store_conn_id": text_field(
                        "Connection of the bucket",
                        "The connection, of type aws, that has the bucket's keys. Empty: SEAMLINE_STORE_CONNECTION.",
                    ),
                },
            }
        ],
        "extra-links": [
            f"{LINKS}.{name}" for name in ("IntervalLink", "CertificateLink", "DriverLogLink", "RunLink")
        ],
    }


def text_field(label: str, description: str) -> dict[str, Any]:
    """Return a field of the connection's form, which may be left empty."""
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}
