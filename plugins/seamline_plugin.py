"""Seamline's pages, for an Airflow whose folder of plugins this is; nothing where the installed package brings them."""

from importlib.metadata import entry_points

if "seamline" not in entry_points(group="airflow.plugins").names:
    import seamline_airflow

    SeamlinePlugin = seamline_airflow.SeamlinePlugin
