# make demo and make test do all their own set-up; they need a Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-long lint types check clean

setup: $(STAMP)

$(STAMP): pyproject.toml setup.py $(wildcard native/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "F3 needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile --editable . --group dev
	@$(BIN)/python -c 'import routing._native' 2>/dev/null \
	  || echo "No compiled forwarding table: routers will use the Python one (docs/fast-path.md)." >&2
	@touch $(STAMP)

demo: setup
	$(BIN)/f3 demo

# What a change must pass; a few minutes on two cores.
test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# Everything, with 10,000 random schedules.
test-long: setup
	F3_SCHEDULES=10000 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

check: lint types test

clean:
	rm -rf build *.egg-info routing/_native.*.so experiments/_opponents.*.so $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
