# Everything by one command; `make` alone lists them.
PYTHON ?= python3
ARGS ?=
# The longest files come first, so that no worker is left alone with them at the end. Three of them keep two cores busy:
# these tests wait for processes, too.
SLOW := tests/cluster tests/e2e tests/dags tests/conformance
# Trials that nothing beside them disturbs.
QUICK := tests/faults/test_backfill_beside_the_stream.py tests/faults/test_double_start.py
# Files whose quick tests make test has run, and whose slow ones bear others beside them.
BESIDE := tests/e2e/test_batch_dag.py tests/e2e/test_broker.py tests/e2e/test_killed_runs.py tests/e2e/test_losses.py tests/e2e/test_operations.py tests/e2e/test_rule_topics.py
# Hundreds of processes import the package: each would compile it, and pytest all tests, where this is set.
export PYTHONDONTWRITEBYTECODE :=
BIN := .venv/bin
ENV := . .seamline/env &&

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test services faults cluster package-test soak bench bench-json bench-full bench-flink browser lint check fmt lock dist clean-demo

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is pinned into .venv and .seamline (the others do this first)
	@$(PYTHON) include/seamline/local/bootstrap.py

demo: setup ## Replay a year of real flights through both layers (ARGS=--exit ends by itself)
	@$(ENV) exec python -m seamline.local.demo $(ARGS)

docs: setup ## Make a site of the pages, .seamline/site; a warning is an error
	@$(ENV) python -m sphinx -q -W --keep-going -d .seamline/doctrees -b html docs .seamline/site $(ARGS)
	@echo "Open .seamline/site/index.html"

test: setup ## Lint and run every test (ARGS go to pytest, in one process)
	@$(if $(strip $(ARGS)),,$(MAKE) --no-print-directory lint)
	@$(ENV) $(if $(strip $(ARGS)),exec python -m pytest tests $(ARGS),\
	  python -m pytest -q -n 3 -m 'not faults' tests/laws tests/unit tests/services tests/charts tests/protocol tests/mutants tests/lives tests/upgrades && exec python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m 'not faults' $(SLOW))

services: setup ## Build and fetch the programs that only the slow suites ask for into .seamline/services (needs Go)
	@$(ENV) python -m tests.services.apicurio && python -m tests.services.connect && exec python -m tests.services.programs

faults: setup ## Run the slow suite: everything that may go wrong, by seed (ARGS=--resume goes on after a break)
	@$(if $(findstring --resume,$(ARGS)),,rm -f .seamline/faults/results.jsonl)
	@$(ENV) python -m pytest -q -n 2 --dist loadfile $(QUICK) tests/unit tests/protocol tests/mutants tests/services tests/charts tests/conformance $(BESIDE) -m faults $(ARGS); first=$$?; [ $$first = 2 ] && exit 2; \
	  python -m pytest -v tests/faults tests/cluster/test_core.py tests/e2e/test_airflow_runs.py tests/e2e/test_asks.py tests/e2e/test_demo.py tests/e2e/test_joined_examples.py tests/e2e/test_joined_operations.py tests/e2e/test_joined_restated.py tests/e2e/counts/test_producers.py tests/e2e/sinks/test_beside_a_stream.py tests/e2e/sinks/test_kafka_sink.py tests/e2e/sinks/test_read_by_tools.py tests/e2e/importing/test_imports.py tests/e2e/importing/test_imported_answers.py tests/e2e/migrating/test_spark_job.py tests/e2e/failover/test_failovers.py tests/e2e/failover/test_unclean_elections.py tests/e2e/tables/test_delta_sources.py tests/e2e/tables/test_table_beside_topic.py tests/e2e/changes/test_changed_accounts.py tests/e2e/test_stream.py tests/e2e/processes/test_abandoned_carts.py tests/e2e/processes/test_shipped_folds.py tests/e2e/changes/test_changed_table.py tests/e2e/changes/test_column_types.py tests/e2e/as_of/test_priced_orders.py tests/e2e/registry/test_registry.py tests/e2e/registry/test_registry_tasks.py tests/e2e/dbt/test_dbt.py tests/e2e/sinks/test_audited_sinks.py tests/e2e/sinks/test_dead_letters.py tests/e2e/lineage/test_told_stream.py tests/dags/glance/test_live_page.py tests/dags/provider/test_hours.py $(QUICK:%=--ignore=%) $(ARGS); second=$$?; \
	  for each in $$first $$second; do case $$each in 0|5) ;; *) exit $$each;; esac; done

cluster: services ## Run docker-compose.yaml's services as processes, check the demo on them, kill each (ARGS="--profile celery")
	@$(ENV) exec python -m tests.cluster $(ARGS)

package-test: setup ## Install the wheel, with each extra, into empty environments, and use it
	@$(ENV) exec python -m pytest -v -s tests/package $(ARGS)

soak: setup ## Keep a stream up for an hour with a fault every three minutes (ARGS="--minutes 5")
	@$(ENV) exec python -m benchmarks.soak $(ARGS)

bench: setup ## Measure against peers in the same run, in about 40 minutes (ARGS="--only drain --resume")
	@$(ENV) exec python -m benchmarks $(ARGS)

bench-json: setup ## The same, the last line one JSON object; exit code 3 if a figure is missing
	@$(ENV) exec python -m benchmarks --json $(ARGS)

bench-full: setup ## The long suite, about two hours and a half (ARGS=--resume goes on after a break)
	@$(ENV) exec python -m benchmarks --full $(ARGS)

bench-flink: setup ## Fetch Flink into .seamline/flink, and drain a topic beside it (ARGS="--records 600000")
	@$(ENV) python -m benchmarks.peers.flink_jars && exec python -m benchmarks.drain --only seamline,flink_work,flink_only $(ARGS)

browser: ## See to it that a Chromium is on PATH, which the tests of the pages drive
	@if command -v chromium chromium-browser google-chrome google-chrome-stable chrome >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	else \
	  echo "No Chromium is on PATH. Install one: 'sudo apt-get install chromium', 'brew install --cask chromium', or Chrome itself." >&2; exit 6; fi

lint: setup ## Form, types, import contracts, spelling
	@$(ENV) ruff check .
	@$(ENV) ruff format --check .
	@$(ENV) mypy
	@$(ENV) lint-imports --no-logo
	@$(ENV) codespell

check: lint ## Lint, laws (fewer cases) and quick unit tests, in under a minute
	@$(ENV) exec python -m pytest -q -n 2 -m "not slow" --hypothesis-profile check tests/laws tests/unit

fmt: setup ## Put the code in its form
	@$(ENV) ruff check --fix .
	@$(ENV) ruff format .

lock: setup ## Pin anew: requirements*.in -> requirements*.txt
	@set -e; for name in requirements requirements-dev requirements-image requirements-dbt; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-annotate \
	    --custom-compile-command 'make lock' $$name.in -o $$name.txt; done

dist: setup ## Build a release into dist: archives, licences, bill of materials, checksums
	@$(ENV) exec python -m release $(ARGS)

clean-demo: ## Remove the demo's data; what was installed and fetched stays
	@pid=$$(cat .seamline/demo/demo.pid 2>/dev/null || true); \
	if [ -n "$$pid" ] && kill -0 "$$pid" 2>/dev/null; then \
	  echo "A demo is running (process $$pid). Stop it with Ctrl-C in its terminal." >&2; exit 6; fi
	@rm -rf .seamline/demo
