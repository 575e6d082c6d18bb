# Bare `make` lists what there is. Written for GNU make 3.81 and later (macOS ships that one).

VENV := .venv
BIN := $(VENV)/bin
UV ?= uv

# The first Python on the path that is new enough, unless one is named: make setup PYTHON=python3.12
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(or $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c "$(SUPPORTED)" >/dev/null 2>&1 && echo $$python && break; done),python3)

# Most of a test's time is waiting: for a lease's end, for an election. So more run at once than there are cores.
TEST_PROCESSES ?= 4

# Hash-checked, exactly what the lock names, nothing resolved here. All wheels but two that are pure Python and
# published as source alone; those are built with the locked build tools.
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --no-input
INSTALL := $(PIP) install --require-hashes --no-deps --no-build-isolation --only-binary :all: --no-binary nkeys,forbiddenfruit

# The type checker is pinned by the lock; it need not ask whether a newer one exists.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help setup run fleet test cluster sim chaos check bench lock FORCE

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.tools-installed  ## create .venv and install everything that the lock names (PYTHON=python3.12 picks one)

run: $(VENV)/.engine-installed  ## set up and start the example company; Ctrl-C drains and stops it
	$(BIN)/crewlet run -c crewlet.yaml --company examples/company/company.yaml

fleet: $(VENV)/.engine-installed  ## set up and start three nodes of one company in .crewlet/fleet; Ctrl-C drains and stops them
	@test -d .crewlet/fleet || $(BIN)/crewlet init --fleet 3 .crewlet/fleet >/dev/null
	$(BIN)/python examples/fleet/start.py .crewlet/fleet

test: check  ## set up, check, run all tests and a small run of the benchmarks (TEST_PROCESSES=4 at a time)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadscope -m "not alone"
	$(BIN)/python -m pytest -m alone tests/broker tests/e2e

cluster: setup  ## every promise on three broker members, with changes of leader; random programs in full
	CREWLET_FULL_PROGRAMS=1 $(BIN)/python -m pytest tests/contracts -m cluster
	CREWLET_FULL_PROGRAMS=1 $(BIN)/python -m pytest tests/contracts/test_queue_programs.py -k and_on_a_broker
	CREWLET_FULL_PROGRAMS=1 $(BIN)/python -m pytest tests/contracts/test_lease_programs.py
	CREWLET_FULL_PROGRAMS=1 $(BIN)/python -m pytest tests/contracts/test_log_programs.py -k of_a_broker

sim: setup  ## the full simulations of the event queue, of the fleet and of turns; writes tests/sim/results/
	$(BIN)/python -m tests.sim.campaign
	$(BIN)/python -m tests.sim.fleet_campaign
	$(BIN)/python -m tests.sim.turn_campaign

chaos: setup  ## kill an engine at every step, cut nodes and links off for minutes, restart a fleet of 100 seats under load
	CREWLET_EVERY_STEP=1 CREWLET_LONG_OUTAGES=1 CREWLET_FULL_CHURN=1 $(BIN)/python -m pytest --timeout 1800 \
		tests/e2e/test_killed_anywhere.py tests/e2e/test_restarts.py tests/e2e/test_satellite.py tests/broker/queue/test_survival.py \
		tests/e2e/test_partitions.py tests/e2e/test_members_under_load.py tests/e2e/test_rolling_restart.py \
		tests/broker/records/test_listing_under_churn.py tests/broker/records/test_listing_leaves_nothing.py

check: setup  ## lint, format, types and import rules: what CI checks
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(VENV)/.peers-installed  ## measure, print each figure beside its floor, write benchmarks/results/latest.json
	$(BIN)/python -m benchmarks

lock:  ## resolve the dependencies anew into requirements/ (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv on the path (or UV=/path/to/uv)" >&2; exit 1; }
	@$(LOCKED) pyproject.toml --output-file requirements/lock.txt
	@$(LOCKED) --group build --constraints requirements/lock.txt --output-file requirements/build.txt
	@$(LOCKED) --group dev --constraints requirements/lock.txt --constraints requirements/build.txt \
		--output-file requirements/dev.txt
	@$(LOCKED) --group bench --constraints requirements/lock.txt --constraints requirements/build.txt \
		--constraints requirements/dev.txt --output-file requirements/bench.txt

# One lock for all supported Pythons and systems, without a word about where packages came from.
LOCKED = $(UV) --no-config pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# Rewritten only when the interpreter changes, so that everything below follows a change and nothing else.
$(VENV)/.interpreter: FORCE
	@if test "$(origin PYTHON)" = file && $(BIN)/python -c "$(SUPPORTED)" 2>/dev/null; then \
		test -f $@ || touch $@; exit 0; fi; \
	python="$(PYTHON)"; \
	found="$$("$$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3], sys.base_prefix)' 2>/dev/null)"; \
	"$$python" -c "$(SUPPORTED)" 2>/dev/null || { \
		echo "Crewlet needs Python 3.11, 3.12 or 3.13; $$python is $${found:-not there}." >&2; \
		echo "Install one, then name it: make setup PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	test "$$found" = "$$(cat $@ 2>/dev/null)" && $(BIN)/python -c "$(SUPPORTED)" 2>/dev/null && exit 0; \
	echo "Creating $(VENV) with Python $$found"; \
	"$$python" -m venv --clear $(VENV) || { \
		echo "This Python cannot create a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }; \
	echo "$$found" > $@

$(VENV)/.engine-installed: $(VENV)/.interpreter requirements/build.txt requirements/lock.txt pyproject.toml
	@echo "Installing the engine's dependencies"
	@$(INSTALL) -r requirements/build.txt
	@$(INSTALL) -r requirements/lock.txt
	@$(PIP) install --no-deps --no-index --no-build-isolation --editable .
	@touch $@

$(VENV)/.tools-installed: $(VENV)/.engine-installed requirements/dev.txt
	@echo "Installing the tools for tests and checks"
	@$(INSTALL) -r requirements/dev.txt
	@touch $@

$(VENV)/.peers-installed: $(VENV)/.tools-installed requirements/bench.txt
	@echo "Installing the peers that the benchmarks stand beside"
	@$(INSTALL) -r requirements/bench.txt
	@touch $@
