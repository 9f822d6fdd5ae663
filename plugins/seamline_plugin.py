"""Adds Seamline's pages to an Airflow that uses this folder of plugins, unless the installed package already does."""

from importlib.metadata import entry_points

if "seamline" not in entry_points(group="airflow.plugins").names:
    import seamline_airflow

    SeamlinePlugin = seamline_airflow.SeamlinePlugin
