# Everything that is done to this project, by name.  `make` alone lists it.
#
# The only needs are make and Python 3.11 or newer with pip.  What a recipe needs is
# installed into $(VENV) the first time, from the hashed lock files, and again only
# when those change.

VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check

# Chosen in this order; `make PYTHON=/usr/bin/python3.12 test` chooses otherwise.
PYTHON ?= python3 python3.11 python3.12 python3.13 python3.14 python

# Stages of one environment: what running needs, what developing needs, and what only
# some tests and the benchmarks need.
RUN := $(VENV)/.ready-to-run
DEV := $(VENV)/.ready-to-develop
EXTRAS := $(VENV)/.ready-for-all-tests
BENCHMARK := $(VENV)/.ready-to-benchmark

# PyTorch is pinned but not locked: its archives differ by machine, and so do their
# hashes.  `make TORCH=torch==2.13.0+cu130 test-all` chooses another build.
TORCH ?= torch==2.13.0

# Tests of one file stay in one process, for they share compiled kernels.
PYTEST := $(PY) -m pytest --numprocesses auto --dist loadfile

# What `make test` leaves out, as it needs time, or more than Python and make.
REST := slow or torch or extras or browser or ray

export PYTHONUTF8 := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-rest check format format-check lint types layers docs \
	paper-map soak coverage benchmark pictures build lock clean

help: ## list the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(RUN) ## watch an agent learn the paper's Example 2, safe from the first step
	@$(BIN)/escapade demo
	@echo "For the command escapade by its name: . $(BIN)/activate"

test: $(DEV) ## run the tests, but for those that need time or more than Python
	$(PYTEST) -m "not ($(REST))"

test-all: test test-rest ## run all tests

test-rest: $(EXTRAS) ## run the tests that `make test` leaves out
	$(PYTEST) -m "$(REST)"

check: format-check lint types layers test docs paper-map ## everything that must hold before a commit lands

format: $(DEV) ## rewrite the code in the one format
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix-only --exit-zero --quiet .

format-check: $(DEV) ## is the code in the one format
	$(PY) -m ruff format --check .

lint: $(DEV) ## common mistakes and missing docstrings
	$(PY) -m ruff check .

types: $(DEV) ## static types, strictly
	$(PY) -m mypy

layers: $(DEV) ## which module may import which
	$(BIN)/lint-imports --no-logo

docs: $(DEV) ## build the documentation into site/, strictly
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

paper-map: $(DEV) ## does each row of docs/paper-map.md point to code and a test
	$(PY) scripts/check_paper_map.py

soak: $(DEV) ## kill runs 200 times and at every moment, and live a million steps
	$(PY) scripts/soak.py --kills 200
	$(PY) scripts/soak.py --kills 20 --durable
	$(PY) scripts/soak.py --moments
	$(PY) scripts/soak.py --steps 1000000

coverage: $(EXTRAS) ## lines tested, kernels included (compilation is off)
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m "not (slow or browser or ray or compiled)" --cov --cov-report=term-missing:skip-covered

benchmark: $(BENCHMARK) $(EXTRAS) ## run the benchmarks, some of them beside other libraries
	@for program in $(filter-out %/instances.py %/results.py,$(wildcard benchmarks/*.py)); do \
		echo "== $$program"; $(PY) $$program || exit 1; \
	done

results: $(BENCHMARK) $(EXTRAS) ## run what docs/results.md is made of, and write it (`make results PROGRAMS=walk`)
	$(PY) benchmarks/results.py $(PROGRAMS)

pictures: $(EXTRAS) ## take the pictures in docs/pictures anew (needs a Chromium)
	$(BIN)/escapade demo --out runs/pictures
	$(PY) scripts/pictures.py runs/pictures

build: $(DEV) ## a source archive and a wheel in dist/
	$(PY) -m build --no-isolation --outdir dist .

# The resolver keeps every pin that still fits; `make lock LOCK_FLAGS=--upgrade` does not.
LOCK = $(PY) -m uv pip compile pyproject.toml --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --no-annotate --quiet \
	--custom-compile-command "make lock" $(LOCK_FLAGS)

lock: $(DEV) ## pin and hash the requirements again
	$(LOCK) --group build --output-file requirements.lock
	$(LOCK) --group build --group test --group check --group docs \
		--constraints requirements.lock --output-file requirements-dev.lock
	$(LOCK) --group build --group extras \
		--constraints requirements-dev.lock --output-file requirements-extras.lock
	$(LOCK) --group build --group benchmark \
		--constraints requirements-dev.lock --output-file requirements-benchmark.lock

clean: ## remove what the recipes made, the environment included
	rm -rf $(VENV) site dist build .coverage htmlcov .mypy_cache .ruff_cache \
		.pytest_cache .hypothesis .import_linter_cache
	find src tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +

# -- the environment -----------------------------------------------------------------

# A candidate has to run, not only to exist.  Debian's Python may lack ensurepip; then
# the environment is filled by the pip outside it.
$(PY):
	@for candidate in $(PYTHON); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
			>/dev/null 2>&1; then chosen="$$candidate"; break; fi; \
	done; \
	if [ -z "$$chosen" ]; then \
		echo "Escapade needs Python 3.11 or newer; none of these is: $(PYTHON)" >&2; \
		echo "Name one with: make PYTHON=/path/to/python3.11 ..." >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$chosen" --version)"; \
	if "$$chosen" -c 'import ensurepip' >/dev/null 2>&1; then \
		"$$chosen" -m venv --clear $(VENV); \
	else \
		"$$chosen" -m venv --clear --without-pip $(VENV) && \
		"$$chosen" -m pip --python $(PY) install --quiet pip; \
	fi

# $(call install,lock file): the pinned requirements, then the project itself.
define install
	@echo "Installing $(1) into $(VENV); this takes a minute or two, once"
	@$(PIP) install --quiet --require-hashes -r $(1)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
endef

$(RUN): $(PY) requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@touch $@

$(DEV): $(PY) requirements-dev.lock pyproject.toml
	$(call install,requirements-dev.lock)
	@touch $(RUN) $@

$(EXTRAS): $(DEV) requirements-extras.lock
	$(call install,requirements-extras.lock)
	@echo "Installing $(TORCH) into $(VENV)"
	@$(PIP) install --quiet "$(TORCH)"
	@touch $@

$(BENCHMARK): $(DEV) requirements-benchmark.lock
	$(call install,requirements-benchmark.lock)
	@touch $@
