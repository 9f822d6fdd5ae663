"""How a person names a warehouse: by variables of the environment, and to ``seamline migrate``."""

from __future__ import annotations

from dataclasses import dataclass

SHARED = "SEAMLINE_WAREHOUSE"
"""The variable that says where the warehouse is of all pipelines that have none of their own."""
OWN = f"{SHARED}_"
"""How the variable of one pipeline's own warehouse begins; the pipeline's name follows in upper case."""


def own_variable(pipeline: str) -> str:
    """Return the variable that says where one pipeline's own warehouse is."""
    return f"{OWN}{pipeline.upper()}"


@dataclass(frozen=True)
class WarehouseName:
    """The words that mean a warehouse."""

    variables: tuple[str, ...] = (SHARED,)
    """Those that say where it is; several where pipelines with variables of their own share it."""
    pipeline: str = ""
    """One of which it is the own warehouse; empty for the one of all others."""

    def __str__(self) -> str:
        return " and ".join(self.variables)

    def set_to(self, place: object) -> str:
        """Say how the warehouse is used at a place."""
        return f"set {' and '.join(f'{each}={place}' for each in self.variables)}"

    def migrate(self, options: str) -> str:
        """Write the command about the warehouse's move."""
        return " ".join(each for each in ("seamline migrate", self.pipeline, options) if each)
