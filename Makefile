# Every target sets up what it needs: start with `make demo`, `make test` or `make check`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# `make build` has rebuilt already: an import under make need not look again.
export SKBUILD_EDITABLE_SKIP := $(CURDIR)/build/dev

.PHONY: build cpp-tests
build: build/.installed  ## rebuild what changed
	env -u SKBUILD_EDITABLE_SKIP $(BIN)/python -c "import arrowdl._core"

cpp-tests: build
	cmake --build build/dev --target arrowdl_tests
	ctest --test-dir build/dev --output-on-failure -j $(JOBS)

$(VENV)/.stamp: requirements/dev.txt
	tools/setup-system.sh libgtest-dev
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -r $<
	touch $@

build/.installed: $(VENV)/.stamp pyproject.toml
	$(BIN)/pip install --quiet --no-build-isolation --no-deps -e .
	touch $@
