"""The client writes settings of its own into the environment: each test begins without any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def no_settings() -> Iterator[None]:
    """Leave the environment as it was, and nothing of OpenLineage's in it meanwhile."""
    with patch.dict(os.environ):
        for name in [each for each in os.environ if each.startswith("OPENLINEAGE")]:
            del os.environ[name]
        yield
