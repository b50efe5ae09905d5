# `make demo` shows the main job, `make test` checks everything: in an environment of their own,
# .venv, with the pinned versions in constraints.txt. `make docs` builds the site, `make bench`
# times us beside peers, each in its own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready
BENCH := .venv-bench
DOCS := .venv-docs

.PHONY: demo test browser java format docs bench clean

demo: $(SETUP)
	$(BIN)/annotruth demo

test: $(SETUP) browser java
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --ignore tests/spark
	$(BIN)/pytest tests/spark  # in one process, which shares one local Spark

# Reports are opened in Chromium. Where it is missing and cannot be installed, those tests skip;
# with ANNOTRUTH_NEEDS_BROWSER set they fail.
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo -n)
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no Chromium, and none could be installed: the tests that open reports will skip"

# Spark runs on Java. Where it is missing and cannot be installed, its tests skip; with
# ANNOTRUTH_NEEDS_JAVA set they fail.
java:
	@command -v java >/dev/null || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    { $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null || \
	      $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless >/dev/null; }; } || \
	  echo "no Java, and none could be installed: the tests of Spark will skip"

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A site that needs no network, to open as files: build/docs/index.html.
docs: $(DOCS)/.ready
	$(DOCS)/bin/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs
	@echo "built: open build/docs/index.html"

# Peers live in an environment of their own, so that they never shape ours. With
# DATA=folder the benchmarks that need real labels run too.
bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks.passes
	$(BENCH)/bin/python -m benchmarks.sizes
	$(BENCH)/bin/python -m benchmarks.fewer_passes $(if $(DATA),--data-dir $(DATA))
	$(BENCH)/bin/python -m benchmarks.way
	$(BENCH)/bin/python -m benchmarks.glad $(if $(DATA),--data-dir $(DATA))
	$(if $(DATA),$(BENCH)/bin/python -m benchmarks.sureal_agreement --data-dir $(DATA))

clean:
	rm -rf $(VENV) $(BENCH) $(DOCS) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "annotruth needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	PIP_CONSTRAINT=constraints.txt $(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --requirement benchmarks/requirements.txt
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps peerannot==0.0.1.post43  # else torch comes too
	touch $@

$(DOCS)/.ready: pyproject.toml constraints.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	PIP_CONSTRAINT=constraints.txt $(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
