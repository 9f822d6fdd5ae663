"""The client writes settings of its own into the environment: each test begins without any."""

from tests.unit.lineage.conftest import no_settings

__all__ = ["no_settings"]
