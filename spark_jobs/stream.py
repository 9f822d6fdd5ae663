"""Run a pipeline's stream, by its file. The job is seamline.jobs.stream."""

from runpy import run_module

run_module("seamline.jobs.stream", run_name="__main__")
