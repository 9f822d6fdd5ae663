"""Compact and clean the tables of a pipeline, by its file. The job is seamline.jobs.upkeep."""

from runpy import run_module

run_module("seamline.jobs.upkeep", run_name="__main__")
