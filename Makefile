# make demo     fit simulated labels and write a report, in .venv
# make test     lint, types, import order and all tests, in .venv with the development packages
# make docs     build the documentation site and check it in Chromium, in .venv-docs
# make wheel    build dist/, and run the demo from the wheel alone, in .venv-wheel, by uvx and by pipx
# make bench    time annotruth beside other packages, in .venv-bench
# make fuzz     random tables, files, columns, options and saved fits, for ten minutes at most
# make attack   attack the service on both databases: rights, hostile requests, Schemathesis, a generated client
# make mutants  change core files line by line in a copy, and list the changes that no test notices
# make sanitize run the kernels' tests with checks of their memory and arithmetic
# make crash    kill commands and make their writes fail, and check what they leave behind
# make format   format the code and mend what the linter can
# make clean    remove the environments and everything that was built
# make label-studio  test webhooks and predictions with the real Label Studio, in .venv-label-studio
#
# All environments use the pinned versions in constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
DOCS := .venv-docs
WHEEL := .venv-wheel
LABEL_STUDIO := .venv-label-studio
ATTACK := .venv-attack
MUTANTS := .venv-mutants
PINNED := PIP_CONSTRAINT=$(CURDIR)/constraints.txt
INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test compiler fuzz browser java postgresql format docs wheel bench crash sanitize label-studio attack mutants clean

demo: $(VENV)/.ready
	$(BIN)/annotruth demo

test: $(VENV)/.ready-dev browser java postgresql
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --ignore tests/spark
	$(BIN)/pytest tests/spark  # in one process, which shares one local Spark

# Seeds are printed; `--seed S --only N` runs a case again. FUZZ are further options, such as
# FUZZ="--count 20000 --seconds 3600".
fuzz: $(VENV)/.ready-dev
	$(BIN)/python -m tests.fuzz --count 4000 --seconds 300 $(FUZZ)
	$(BIN)/python -m tests.fuzz --part flips --count 12000 --seconds 120 $(FUZZ)
	$(BIN)/python -m tests.fuzz --part fits --count 1000 --seconds 120 $(FUZZ)
	$(BIN)/python -m tests.fuzz --part crowds --count 100 --seconds 120 $(FUZZ)
	$(BIN)/pytest -n auto --hypothesis-profile thorough -k rises_at_every_step tests/models

# Some tests open reports in Chromium. Where it is missing and cannot be installed, they skip;
# with ANNOTRUTH_NEEDS_BROWSER set they fail.
SUDO := $(if $(filter-out 0,$(shell id -u)),sudo -n)
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "Chromium is missing and could not be installed: tests that open reports will skip"

# Spark needs Java. Where it is missing and cannot be installed, the Spark tests skip; with
# ANNOTRUTH_NEEDS_JAVA set they fail.
java:
	@command -v java >/dev/null || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    { $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jre-headless >/dev/null || \
	      $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq default-jre-headless >/dev/null; }; } || \
	  echo "Java is missing and could not be installed: the Spark tests will skip"

# Some tests read from a PostgreSQL server, which they start themselves: Debian's, outside the path.
# Where it is missing and cannot be installed, they skip; with ANNOTRUTH_NEEDS_POSTGRESQL set they fail.
postgresql:
	@ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null; } || \
	  echo "PostgreSQL is missing and could not be installed: tests of its server will skip"

# Kernels are compiled with checks of addresses and of undefined behavior (SANITIZE=thread: of races),
# into an installation of their own.
SANITIZE := address,undefined
sanitize: $(VENV)/.ready-dev
	rm -rf build/sanitize
	$(BIN)/python $(INSTALL) --no-build-isolation --no-deps --target build/sanitize \
	  -Cbuild-dir=build/sanitize-kernels -Ccmake.define.ANNOTRUTH_SANITIZE=$(SANITIZE) .
	PYTHONPATH=build/sanitize PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD=$$($(CXX) -print-file-name=lib$(if $(filter thread,$(SANITIZE)),tsan,asan).so) \
	  $(BIN)/pytest -n 0 $(if $(filter thread,$(SANITIZE)),tests/engines/test_memory.py,tests/kernels)

format: $(VENV)/.ready-dev
	$(BIN)/clang-format -i $(filter %.cpp %.hpp,$(KERNELS))
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site works offline: open build/docs/index.html. Pages of names that no longer exist go first.
docs: $(DOCS)/.ready browser
	rm -rf docs/reference
	$(DOCS)/bin/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs
	$(DOCS)/bin/python -m tests.docs.check_site build/docs
	@echo "built: open build/docs/index.html"

# Nothing of the sources is on the path: the demo runs in a temporary folder.
wheel:
	rm -rf dist $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(PINNED) $(WHEEL)/bin/python $(INSTALL) build
	$(PINNED) $(WHEEL)/bin/python -m build --outdir dist
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(PINNED) $(WHEEL)/bin/python $(INSTALL) dist/*.whl
	$(WHEEL)/bin/python -I -c 'import annotruth, pathlib; assert (pathlib.Path(annotruth.__file__).parent / "py.typed").exists()'
	folder=$$(mktemp -d) && bin=$$(pwd)/$(WHEEL)/bin && cd $$folder && $$bin/annotruth demo && test -s annotruth-demo.html
	for tool in "uvx --from" "pipx run --spec"; do \
	  command -v $${tool%% *} >/dev/null || { echo "$${tool%% *} is missing: not tested with it"; continue; }; \
	  wheel=$$(echo $(CURDIR)/dist/*.whl) && folder=$$(mktemp -d) && cd $$folder && \
	  $$tool $$wheel annotruth demo >/dev/null && test -s annotruth-demo.html || exit 1; \
	done

# The other packages are installed in a separate environment, so that they do not affect the
# versions used here. With DATA=folder, benchmarks on real labels run too.
bench: $(BENCH)/.ready
	$(BENCH)/bin/python -m benchmarks.passes
	$(BENCH)/bin/python -m benchmarks.fit_scaling
	$(BENCH)/bin/python -m benchmarks.acceleration $(if $(DATA),--data-dir $(DATA))
	$(BENCH)/bin/python -m benchmarks.end_to_end
	$(BENCH)/bin/python -m benchmarks.glad $(if $(DATA),--data-dir $(DATA))
	$(if $(DATA),$(BENCH)/bin/python -m benchmarks.sureal_agreement --data-dir $(DATA))

# KILLS=N and SEED=N choose how many kills there are, and when.
crash: $(VENV)/.ready-dev
	$(BIN)/python -m tests.crash $(if $(KILLS),--kills $(KILLS)) $(if $(SEED),--seed $(SEED))

# The tools talk to the service over HTTP, and their versions of some packages differ. SECONDS=N bounds
# each part that has no end.
attack: $(VENV)/.ready-dev $(ATTACK)/.ready postgresql
	$(BIN)/python -m tests.attack --tools $(ATTACK)/bin --seconds $(or $(SECONDS),60)

# Cosmic Ray changes one place at a time in a copy of the last commit; a mutant that survives is a change
# that no test notices. tests/mutants.txt lists files and tests; FILE=em.py takes those of that name.
mutants: $(VENV)/.ready-dev $(MUTANTS)/.ready
	rm -rf build/mutants && mkdir -p build/mutants && git archive HEAD | tar -x -C build/mutants
	cd build/mutants && grep -v '^#' tests/mutants.txt | grep '$(FILE)' | while read file tests; do \
	  printf '[cosmic-ray]\nmodule-path = "%s"\ntimeout = 300.0\nexcluded-modules = []\n' $$file > mutants.toml; \
	  printf 'test-command = "env PYTHONPATH=src $(CURDIR)/$(BIN)/pytest -xq -p no:cacheprovider %s"\n' $$tests >> mutants.toml; \
	  printf '[cosmic-ray.distributor]\nname = "local"\n' >> mutants.toml; \
	  rm -f mutants.sqlite && $(CURDIR)/$(MUTANTS)/bin/cosmic-ray init mutants.toml mutants.sqlite && \
	  $(CURDIR)/$(MUTANTS)/bin/cosmic-ray exec mutants.toml mutants.sqlite && \
	  $(CURDIR)/$(MUTANTS)/bin/cr-report --show-diff --surviving-only mutants.sqlite; done

# Label Studio is started on an empty SQLite file, which takes a minute or more.
label-studio: $(VENV)/.ready-dev $(LABEL_STUDIO)/.ready
	ANNOTRUTH_LABEL_STUDIO=$(CURDIR)/$(LABEL_STUDIO)/bin/label-studio \
	  $(BIN)/pytest -n 0 tests/serve/hooks/test_real_label_studio.py

clean:
	git clean -fdXq cmake src/annotruth/kernels
	rm -rf $(VENV) $(BENCH) $(DOCS) $(WHEEL) $(LABEL_STUDIO) $(ATTACK) $(MUTANTS) build dist docs/reference .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The kernels in C++ are compiled when the package is installed. Where a compiler is missing and cannot
# be installed, their NumPy twins run in their place.
compiler:
	@command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	  { command -v apt-get >/dev/null && $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq g++ >/dev/null; } || \
	  echo "A C++ compiler is missing and could not be installed: fits will be slow"

KERNELS := cmake/CMakeLists.txt $(wildcard src/annotruth/kernels/native/* src/annotruth/kernels/native/*/*)

# What `annotruth` itself needs, and no more.
$(VENV)/.ready: pyproject.toml constraints.txt $(KERNELS) | compiler
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "annotruth needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PINNED) $(BIN)/python $(INSTALL) --editable .
	touch $@

# The same environment with the packages for tests, lint, types and Spark added.
$(VENV)/.ready-dev: $(VENV)/.ready
	$(PINNED) $(BIN)/python $(INSTALL) --editable '.[dev]'
	touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(PINNED) $(BENCH)/bin/python $(INSTALL) --editable . --requirement benchmarks/requirements.txt
	$(BENCH)/bin/python $(INSTALL) --no-deps peerannot==0.0.1.post43  # without torch, which it lists
	touch $@

$(DOCS)/.ready: pyproject.toml constraints.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(PINNED) $(DOCS)/bin/python $(INSTALL) --editable '.[docs]'
	touch $@

$(ATTACK)/.ready: Makefile
	test -x $(ATTACK)/bin/python || $(PYTHON) -m venv $(ATTACK)
	$(ATTACK)/bin/python $(INSTALL) schemathesis==4.32.5 openapi-python-client==0.29.1
	touch $@

$(MUTANTS)/.ready: Makefile
	test -x $(MUTANTS)/bin/python || $(PYTHON) -m venv $(MUTANTS)
	$(MUTANTS)/bin/python $(INSTALL) cosmic-ray==8.7.0
	touch $@

# Its versions of many packages differ from those used here.
$(LABEL_STUDIO)/.ready: Makefile
	test -x $(LABEL_STUDIO)/bin/python || $(PYTHON) -m venv $(LABEL_STUDIO)
	$(LABEL_STUDIO)/bin/python $(INSTALL) label-studio==1.23.2
	touch $@
