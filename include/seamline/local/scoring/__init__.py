"""An HTTP service that says how risky a payment is, and misbehaves as it is told: the system that an example asks."""

from __future__ import annotations

from seamline.local.scoring.manners import Manners, risk_of
from seamline.local.scoring.service import ScoringService

__all__ = ["Manners", "ScoringService", "risk_of"]
