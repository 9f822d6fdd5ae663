"""A resident Spark driver, by its file. The job is seamline.jobs.driver."""

from runpy import run_module

run_module("seamline.jobs.driver", run_name="__main__")
