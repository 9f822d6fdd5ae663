"""Ad events of `ad_campaigns`, in a topic of their own."""

from __future__ import annotations

from seamline.local.generators.ad_campaigns import records
from seamline.local.generators.record import Generator

GENERATOR = Generator("examples.live_ad_events", records)
