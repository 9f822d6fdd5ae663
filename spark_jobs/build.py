"""Build and certify intervals: for a spark-submit that names a file. The job is seamline.jobs.build."""

from runpy import run_module

run_module("seamline.jobs.build", run_name="__main__")
