"""For people who write pipelines: a scenario in a few lines, in plain Python or on Spark and Delta."""

from seamline.testing.scenario import Refused, Scenario

__all__ = ["Refused", "Scenario"]
