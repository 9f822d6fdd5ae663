# One image for Airflow's processes, Spark's master and workers, and the stream's supervisor.
FROM python:3.11-slim-bookworm

RUN apt-get update \
 && apt-get install --yes --no-install-recommends make openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 50000 seamline \
 && install --directory --owner=seamline /opt/seamline /srv/seamline

USER seamline
WORKDIR /opt/seamline

# Set up as every checkout is. The set-up is code of ours, and writes an archive of the classes that the jobs load:
# it comes after the code, not before.
COPY --chown=seamline Makefile pyproject.toml LICENSE README.md requirements*.txt ./
COPY --chown=seamline include include
RUN make setup

COPY --chown=seamline spark_jobs spark_jobs
COPY --chown=seamline dags dags
COPY --chown=seamline plugins plugins

ENV PATH=/opt/seamline/.venv/bin:$PATH \
    AIRFLOW_HOME=/srv/seamline/airflow \
    GX_ANALYTICS_ENABLED=false \
    SEAMLINE_HOME=/srv/seamline/state \
    SEAMLINE_JARS=/opt/seamline/.seamline/jars \
    SEAMLINE_PIPELINES=/opt/seamline/include/pipelines \
    SEAMLINE_WAREHOUSE=/srv/seamline/warehouse

CMD ["seamline", "--help"]
