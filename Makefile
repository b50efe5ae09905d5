# Two commands: `make demo` shows the main job, `make test` checks everything.
# Both set up their own environment in .venv from the pinned versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready
BENCH := .venv-bench

.PHONY: demo test format bench clean

demo: $(SETUP)
	$(BIN)/annotruth demo

test: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Peers live in an environment of their own, so that they never shape ours. With
# DATA=folder the benchmarks that need real labels run too.
bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks.passes
	$(BENCH)/bin/python -m benchmarks.glad $(if $(DATA),--data-dir $(DATA))
	$(if $(DATA),$(BENCH)/bin/python -m benchmarks.sureal_agreement --data-dir $(DATA))

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "annotruth needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	PIP_CONSTRAINT=constraints.txt $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --requirement benchmarks/requirements.txt
	touch $@
