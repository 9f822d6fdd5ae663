"""The API does what its own description says, whatever is asked of it."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

CASES = 10
IN_SQL = "/api/v1/sql"
"""Takes a text of which no schema tells whether it is SQL."""
CALM = settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def operations(database, client):
    """List what the description describes."""
    found = client.get("/api/v1/openapi.json").json()
    found.pop("servers")
    schema = schemathesis.openapi.from_dict(found)
    return [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]


def test_every_answer_is_one_that_is_described(client, operations) -> None:
    """Codes, types and bodies, for what may be asked and for what may not."""
    assert len(operations) >= 12

    def holds(case) -> None:
        asked = case.as_transport_kwargs(base_url="http://airflow")
        asked.pop("cookies", None)
        but = [ignored_auth, *([positive_data_acceptance] if case.operation.path == IN_SQL else [])]
        case.validate_response(
            client.ask(asked.pop("method"), asked.pop("url"), **asked), excluded_checks=but
        )

    for operation in operations:
        CALM(given(case=operation.as_strategy())(holds))()
