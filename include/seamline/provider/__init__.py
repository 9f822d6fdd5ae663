"""For the DAGs of others: a sensor, operators and a hook of Airflow's that know the views of a pipeline.

>>> from seamline.provider import SeamlineCompleteSensor
>>> SeamlineCompleteSensor(task_id="wait", view="orders.by_hour", until="certified")
"""

from __future__ import annotations

from seamline.provider.hooks import SeamlineHook
from seamline.provider.operators import SeamlineBackfillOperator, SeamlineQueryOperator
from seamline.provider.sensors import SeamlineCompleteSensor

__all__ = [
    "SeamlineBackfillOperator",
    "SeamlineCompleteSensor",
    "SeamlineHook",
    "SeamlineQueryOperator",
]
