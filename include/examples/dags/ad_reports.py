"""Two DAGs of Airflow that build on the pipeline ad_campaigns: one for each hour, one for each day.

Copy this file into Airflow's folder of DAGs. The files go to reports in SEAMLINE_HOME, which the workers share, or
to the folder that SEAMLINE_REPORTS names.
"""

import os
from datetime import UTC, datetime

from airflow.sdk import DAG, Asset, CronDataIntervalTimetable, PartitionedAssetTimetable

from seamline.provider import SeamlineCompleteSensor, SeamlineQueryOperator

VIEW = "ad_campaigns.views_by_campaign"
FOLDER = os.environ.get("SEAMLINE_REPORTS") or f"{os.environ.get('SEAMLINE_HOME', '.seamline')}/reports"

# An hour that is certified and published is a partition, and so is its correction: this DAG runs again for it.
with DAG(
    "ad_campaigns_hours",
    schedule=PartitionedAssetTimetable(
        assets=Asset("ad_campaigns/intervals", "x-seamline://ad_campaigns/intervals")
    ),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
) as hours:
    # The hour of the run's partition has been certified; another build of it may be under way.
    certified = SeamlineCompleteSensor(task_id="certified", view=VIEW, timeout=600)
    written = SeamlineQueryOperator(
        task_id="write",
        view=VIEW,
        start="{{ ti.xcom_pull('certified')['span'].split('/')[0] }}",
        end="{{ ti.xcom_pull('certified')['span'].split('/')[1] }}",
        path=f"{FOLDER}/hours/{{{{ partition_key }}}}.parquet",
    )
    certified >> written

# A day needs all of its 24 hours. An hour without rows is never built, and would be missing for ever in a roll-up.
with DAG(
    "ad_campaigns_days",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
) as days:
    all_hours = SeamlineCompleteSensor(task_id="all_hours", view=VIEW, until="certified", timeout=12 * 3600)
    report = SeamlineQueryOperator(
        task_id="write",
        view=VIEW,
        start="{{ data_interval_start }}",
        end="{{ data_interval_end }}",
        path=f"{FOLDER}/days/{{{{ ds }}}}.csv",
    )
    all_hours >> report
