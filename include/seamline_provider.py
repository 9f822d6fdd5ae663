"""Registers Seamline as a provider. Airflow reads this while it loads its configuration, so it imports nothing."""

from __future__ import annotations


def get_provider_info() -> dict[str, str]:
    """Return what ``airflow providers list`` shows."""
    return {
        "package-name": "seamline",
        "name": "Seamline",
        "description": "Streams and backfills cut by Kafka offsets: DAGs, operators and pages of Seamline.",
    }
