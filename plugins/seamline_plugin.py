"""Seamline's pages for an Airflow whose folder of plugins this is; an installed package needs no file."""

from seamline_airflow import SeamlinePlugin

__all__ = ["SeamlinePlugin"]
