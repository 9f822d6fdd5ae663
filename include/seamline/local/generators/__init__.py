"""A generator of records for each pipeline of ``include/examples``, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from seamline.local.generators import ad_campaigns
from seamline.local.generators.record import Generator, Load, Record

GENERATORS: Mapping[str, Generator] = {"ad_campaigns": ad_campaigns.GENERATOR}

__all__ = ["GENERATORS", "Generator", "Load", "Record"]
