# Every target sets up what it needs: start with `make demo`, `make test` or `make check`.

PYTHON ?= python3
JOBS ?= 2
PYTHONS ?= 3.12 3.13 3.14 3.13t 3.14t 3.13-newest
PYTHON_TESTS ?= $(addprefix tests/python/,process convert protocols stream loader/test_ends.py loader/test_threads.py)
COMPILERS ?= g++-12 g++-14 g++-16 clang++-14 clang++-19
PEERS ?= training storage tensorflow paddle mlx modin oneapi opencl
FUZZ_SECONDS ?= 60
RANDOM_CASES ?= 3000
CLANG ?= clang
CLANGXX = $(subst clang,clang++,$(CLANG))

VENV := .venv
BIN := $(VENV)/bin
# Python compiles the modules that are imported. pip would compile all, half of an install's time.
INSTALL := install -qq --no-compile
PIP_INSTALL := $(BIN)/pip $(INSTALL)
# A third of a test's time is a wait for processes, files and deadlines.
WORKERS := $(shell expr $(JOBS) + 1)
# Each worker has files of its own until it has nothing left: what a file needs is made once, and
# compiled once by JAX, and no worker is idle while another has a queue.
XDIST := -n $(WORKERS) --dist worksteal

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Each process would compile all that it imports: `import torch` takes five seconds, not one.
unexport PYTHONDONTWRITEBYTECODE
export PATH := $(CURDIR)/$(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# ccache: clones, worktrees and presets share object files.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

.DEFAULT_GOAL := help
ifndef PARALLEL
.NOTPARALLEL:
endif
.PHONY: help
help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- to call by hand ---------------------------------------------------

.PHONY: demo check test test-more bench docs clean
demo: build/.demo  ## flights from Parquet to a PyTorch model and back
	$(BIN)/python examples/flights.py

check: lint build types test-cpp test-python  ## the inner loop

# The quickest to fail comes first. With WHOLE=1, all of tests/python runs at once, as in `.ci/run`:
# collecting the tests takes 20 seconds each time.
test:  ## lint, types, the C++ and Python suites, the package
	@tools/stages.sh build lint types test-cpp $(if $(WHOLE),"test-python SUITE=whole",test-python "test-python SUITE=package")

# `make test-more PEERS=` leaves the heavy peers out.
test-more:  ## the rest: slow and long random tests, docs, peers, other compilers and Pythons, fuzzing, sanitizers
	@tools/stages.sh $(if $(WHOLE),,"test-python SUITE=slow" "test-python SUITE=random") side-by-side fuzz tsan asan

# Of other libraries' Loaders, each in one environment: `make bench BENCH=peers` alone.
bench: build dist/.wheel $(VENV)/.bench .venv-loaders/.dev  ## compare with peers, into benchmarks/results
ifneq ($(BENCH),peers)
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.loader
endif
	$(BIN)/pip --python .venv-loaders/bin/python $(INSTALL) --no-deps --force-reinstall dist/*.whl
	.venv-loaders/bin/python -m benchmarks.loader --peers
	$(if $(BENCH),,$(BIN)/python -m benchmarks.overview)

docs: build $(VENV)/.docs  ## docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

clean:  ## remove all that make made, environments too
	rm -rf .venv* .gpu build dist docs/_build demo-output third_party .mypy_cache .ruff_cache .pytest_cache

# ---- stages ----------------------------------------------------------------

CPP_FILES = $(shell find cpp tests examples -name '*.[ch]pp' -not -path '*/.*')

.PHONY: lint format types build test-cpp test-python side-by-side interop test-pythons check-package check-compilers
# With TIDY=1 clang-tidy too, which takes a minute on two cores.
lint: $(VENV)/.dev $(if $(TIDY),build $(VENV)/.tidy)  ## ruff, clang-format, codespell, phrases of prose
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python tools/lint_prose.py
	@echo $(CPP_FILES) | xargs -n 16 -P $(JOBS) $(BIN)/clang-format --dry-run -Werror
	$(BIN)/codespell
	$(if $(TIDY),@find cpp/src -name '*.cpp' | xargs -n 4 -P $(JOBS) $(BIN)/clang-tidy -p build/dev --quiet)

format: $(VENV)/.dev  ## format the sources
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP_FILES)

types: build  ## mypy, pyright, and the stub against the module
	@MYPYPATH=python $(BIN)/stubtest arrowdl._core --allowlist tests/typing/stubtest.txt & stub=$$!; \
	  $(BIN)/mypy; ours=$$?; wait $$stub && exit $$ours
	$(BIN)/pyright --pythonpath $(BIN)/python tests/typing/usage.py

# Importing the editable install rebuilds what changed.
build: build/.dev  ## the editable install
	$(BIN)/python -c "import arrowdl"

test-cpp: build  ## the core's tests
	cmake --build build/dev --target arrowdl_tests
	ctest --test-dir build/dev --output-on-failure -j $(JOBS)

# Suites of tests/python: quick; package (the wheel, the sdist, the examples); slow (ends and forks of
# processes, long loops); random (RANDOM_CASES cases of each kind, against plain Python); whole.
# Tests of devices skip without the fake drivers.
SUITE ?= quick
SUITES := quick package slow random whole
PACKAGE_TESTS = tests/python/project
SELECT_quick = -m "not slow"
SELECT_package = -m slow $(PACKAGE_TESTS)
SELECT_slow = -m slow --ignore $(PACKAGE_TESTS)
SELECT_random = -m "not slow" -k test_random
FAKE_DRIVERS = fake_cuda fake_hip fake_hiprtc fake_torch
test-python: build $(if $(filter package whole,$(SUITE)),dist/.wheel $(VENV)/.demo)  ## tests/python: SUITE=quick, package, slow, random or whole
	$(if $(filter $(SUITES),$(SUITE)),,$(error SUITE=$(SUITE): the suites are $(SUITES)))
	cmake --build build/dev --target $(FAKE_DRIVERS)
	ARROWDL_BUILD=build/dev $(if $(filter package whole,$(SUITE)),ARROWDL_WHEEL=$$(ls dist/*.whl)) \
	  $(if $(filter random whole,$(SUITE)),ARROWDL_RANDOM_CASES=$(RANDOM_CASES)) \
	  $(BIN)/python -m pytest -q $(XDIST) $(SELECT_$(SUITE))

# WORKERS at a time: each uses one processor. The longest come first. The packages that docs and
# check-package need go into one environment, one after the other.
side-by-side: build dist/.wheel $(VENV)/.docs $(VENV)/.package  ## peers, test-pythons, docs, check-package, check-compilers
	@$(MAKE) --no-print-directory --output-sync -j $(WORKERS) PARALLEL=1 $(PEERS:%=test-peer-%) \
	  test-pythons docs check-package check-compilers

# One of PEERS, in an environment of its own: `make test-peer-storage`.
test-peer-%: .venv-%/.dev dist/.wheel
	$(BIN)/pip --python .venv-$*/bin/python $(INSTALL) --no-deps --force-reinstall dist/*.whl
	.venv-$*/bin/python -m pytest -q $(wildcard tests/peers/test_$*.py tests/peers/test_$*_*.py)
	ARROWDL_PEER=$* .venv-$*/bin/python -m pytest -q tests/peers/test_conformance.py

# Each in an environment of its own, into docs/interop/results.csv. Outside CI.
interop: dist/.wheel  ## ask libraries of requirements/interop again: LIBRARIES="polars duckdb", all by default
	$(BIN)/python tools/interop.py $(LIBRARIES)

# Each in an environment of its own: what can be had of PYTHONS without building one. 3.13-newest has
# the libraries of requirements/newest.txt, which `tools/test-pythons.sh --raise 3.13` raises.
test-pythons: $(VENV)/.dev  ## the package on other Pythons, free-threaded ones too, and with the newest libraries
	DLPACK=$$($(BIN)/python -m tvm_ffi.config --dlpack-includedir) TESTS="$(PYTHON_TESTS)" tools/test-pythons.sh $(PYTHONS)

# What the package index would refuse, and all licences; a second build, from the sdist, in isolation
# and in another folder, has to give the same bytes. It has the pybind11 of $(VENV): ccache knows no
# path of an environment that exists for one build.
AGAIN := $(CURDIR)/build/again
SAME_DATE = export SOURCE_DATE_EPOCH=$$(cat dist/.wheel)
check-package: dist/.wheel $(VENV)/.package  ## the metadata, contents, page and bytes of the wheel and the sdist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python tools/list_licenses.py dist/*.whl dist/*.tar.gz
	$(BIN)/cffconvert --validate --infile CITATION.cff
	rm -rf $(AGAIN) && mkdir -p $(AGAIN)/sdist
	$(SAME_DATE); $(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('$(AGAIN)')"
	tar -xzf $(AGAIN)/*.tar.gz -C $(AGAIN)/sdist --strip-components=1
	$(SAME_DATE); CCACHE_BASEDIR=$(AGAIN)/sdist $(PYTHON) $(BUILD_WHEEL) --wheel-dir $(AGAIN) -C build-dir=build/dev \
	  -C cmake.define.pybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir) $(AGAIN)/sdist
	for file in dist/*.tar.gz dist/*.whl; do cmp $$file $(AGAIN)/$$(basename $$file) || exit 1; done
	sha256sum dist/*.tar.gz dist/*.whl

# The front end of each of COMPILERS on the core and its tests, in as few units as can be, in the newest
# standard alone: `make build` and `make fuzz` compile C++17, and nearly all that C++20 changed is in
# C++23. tools/test-compilers.sh compiles all standards and runs the tests, tools/newer-compilers.sh
# has newer compilers. Then our declarations of HIP, against Debian's header.
check-compilers: $(VENV)/.dev  ## the core's syntax with each of COMPILERS, as C++23
	$(if $(filter clang++-19,$(COMPILERS)),tools/setup-system.sh clang clang-19)
	CHECK=syntax TESTS= COMPILERS="$(COMPILERS)" STANDARDS=23 PYTHON=$(BIN)/python tools/test-compilers.sh
	tools/check-hip.sh

# ---- on a machine with a GPU -----------------------------------------------

# It needs no network: run `make gpu-carry` on another machine, copy .gpu/, run `make test-gpu`.
# These targets run that machine's own Python, with its torch, jax, cupy and numba.
.PHONY: gpu-carry test-gpu card
test-gpu card: export PATH := $(subst $(CURDIR)/$(BIN):,,$(PATH))
test-gpu card: export PYTHONPATH := $(CURDIR)/build/gpu/site
BUILD_GPU = PYTHON=$(PYTHON) tools/gpu-build.sh

gpu-carry: $(VENV)/.build  ## .gpu/: the inputs of a build without a network
	rm -rf .gpu
	$(BIN)/python cmake/fetch_sources.py extract nanoarrow .gpu/nanoarrow
	$(BIN)/python cmake/fetch_sources.py extract dlpack .gpu/include
	$(BIN)/pip download -qq --only-binary :all: --dest .gpu/wheels -r requirements/gpu-build.txt

# With SANITIZE=1 under compute-sanitizer (docs/internals/testing.rst says what it cannot see).
test-gpu:  ## tests/gpu, on a machine with a GPU; with SANITIZE=1 a part of them under compute-sanitizer
	$(BUILD_GPU)
	$(if $(SANITIZE),PYTHON=$(PYTHON) tests/sanitizers/gpu.sh,$(PYTHON) -m pytest -q -p no:cacheprovider tests/gpu -m cuda)

# REHEARSE=1 runs it without a GPU, as tools/card.sh says.
card: $(if $(REHEARSE),build)  ## all that needs a GPU, in 12 minutes: tests, sanitizer, benchmarks, profile, into benchmarks/results
ifdef REHEARSE
	cmake --build build/dev --target $(FAKE_DRIVERS)
	ARROWDL_BUILD=build/dev RESULTS=build/card PYTHON=$(CURDIR)/$(BIN)/python PYTHONPATH= tools/card.sh --rehearse
else
	begin=$$(date +%s); PYTHON=$(PYTHON) timeout 300 tools/gpu-build.sh && \
	  PYTHON=$(PYTHON) CARD_SECONDS=$$((700 + begin - $$(date +%s))) tools/card.sh
endif

# ---- sanitizers and fuzzing ------------------------------------------------

.PHONY: asan tsan fuzz
# One build has the fuzz targets, the C++ tests and the extension, so that the core is compiled once.
# Any Clang with its run-time libraries: CLANG=clang-19 takes that one. CMake would forget the preset
# if the compiler of a build changed. Without llvm-symbolizer, addr2line finds the names of functions.
define CONFIGURE_ASAN
$(if $(filter clang,$(CLANG)),tools/setup-system.sh clang libclang-rt-dev)
@grep -qs '^CMAKE_CXX_COMPILER:[A-Z]*=\(.*/\)\?$(CLANGXX)$$' build/asan/CMakeCache.txt || \
  rm -f build/asan/CMakeCache.txt
cmake --preset asan -DCMAKE_C_COMPILER=$(CLANG) -DCMAKE_CXX_COMPILER=$(CLANGXX)
endef

# Runs slow tests too, except those of installed packages, the demo, the list of the GPU suite and
# objects of all libraries, whose own mistakes the sanitizer would report, and those that fork while
# threads work: in the child, a lock of the sanitizer's allocator stays locked (Clang 14).
ASAN_SKIPS = --ignore tests/python/project/test_packaging.py --ignore tests/python/device/test_gpu_suite.py --ignore tests/python/protocols/test_every_library.py --ignore tests/python/loader/test_fork.py \
  --deselect 'tests/python/loader/test_ends.py::test_nothing_is_left_of_an_epoch[fork_in_the_middle-False]' \
  --deselect 'tests/python/loader/test_ends.py::test_nothing_is_left_of_an_epoch[fork_in_the_middle-True]' \
  --deselect tests/python/project/test_examples.py::test_flights \
  --deselect tests/python/loader/test_loader.py::test_dataloader_workers_share_the_rows \
  --deselect tests/python/loader/test_loader.py::test_each_iteration_of_workers_is_the_next_epoch
# Files that move memory between owners: conversions, protocols, streams, devices, workers. Of the
# tests of workers one, as test_messages.py and test_writing.py have all that they send.
ASAN_FILES = $(addprefix tests/python/,convert protocols device stream interchange \
  process/test_lifetime.py process/test_threads.py loader/test_writing.py loader/test_messages.py \
  loader/test_workers.py::test_workers_give_the_batches_of_the_loader)
ASAN_PYTEST = CXX=$(CLANGXX) ARROWDL_DOUBLES=build/asan tests/sanitizers/python.sh $(BIN)/python build/asan -q $(XDIST) $(ASAN_SKIPS)

asan: build  ## C++ tests under ASan and UBSan, and the Python tests that move memory (with ALL=1, all) under ASan
	$(CONFIGURE_ASAN)
	cmake --build build/asan
	cmake --build build/asan --target arrowdl_tests $(FAKE_DRIVERS)
	ASAN_OPTIONS=allow_addr2line=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  ctest --test-dir build/asan --output-on-failure -j $(JOBS)
	$(ASAN_PYTEST) $(if $(ALL),,$(ASAN_FILES))

# Then sixteen threads on free-threaded Python, it and the extension under ThreadSanitizer: with the
# Python of tools/build-python.sh 3.13t-tsan, which takes ten minutes once; without it, this says so.
tsan: $(VENV)/.dev  ## C++ tests under ThreadSanitizer, and threads in free-threaded Python
	cmake --preset tsan
	cmake --build build/tsan --target arrowdl_tests
	TSAN_OPTIONS=second_deadlock_stack=1:atexit_sleep_ms=20:suppressions=$(CURDIR)/tests/sanitizers/tsan.txt \
	  ctest --test-dir build/tsan --output-on-failure -j $(JOBS)
	tests/sanitizers/threads.sh build/tsan-python -q tests/python/process/test_threads_stress.py tests/python/process/test_threads.py \
	  --deselect tests/python/process/test_threads.py::test_a_forked_child_has_its_own_threads

fuzz: $(VENV)/.dev  ## each libFuzzer target for FUZZ_SECONDS
	$(CONFIGURE_ASAN)
	cmake --build build/asan --target fuzzers
	ASAN_OPTIONS=allow_addr2line=1 tests/fuzz/run.sh build/asan/tests/fuzz $(FUZZ_SECONDS) $(JOBS)

# ---- set-up ----------------------------------------------------------------

SYSTEM_BUILD := g++ cmake ccache
SYSTEM_TESTS := libgtest-dev opencl-c-headers

# Requirements of the build; the demo adds its libraries, the development environment all others.
$(VENV)/.build: requirements/build.txt requirements/constraints.txt
	tools/setup-system.sh $(SYSTEM_BUILD)
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) -r $<
	touch $@

$(VENV)/.demo: requirements/demo.txt requirements/constraints.txt $(VENV)/.build
	$(PIP_INSTALL) -r $<
	touch $@

$(VENV)/.dev: requirements/dev.txt requirements/constraints.txt $(VENV)/.build
	tools/setup-system.sh $(SYSTEM_TESTS)
	$(PIP_INSTALL) -r $<
	touch $@

$(VENV)/.%: requirements/%.txt requirements/constraints.txt $(VENV)/.dev
	$(PIP_INSTALL) -r $<
	touch $@

.PRECIOUS: .venv-%/.dev

# OpenCL's CPU device. The other peers include their devices.
SYSTEM_opencl := ocl-icd-libopencl1 pocl-opencl-icd
# The libraries that torchcodec decodes with.
SYSTEM_training := ffmpeg

# Packages of npm, below the environment. Tests that need them are skipped where Node is missing and
# cannot be installed.
NODE_storage := azurite@3.37.0
NPM = command -v npm >/dev/null || tools/setup-system.sh nodejs npm && \
  npm install --silent --no-audit --no-fund --no-package-lock --prefix $(1) $(2)

# pip builds a wheel of pyspark's sdist, and would compress 400 MB of it.
INSTALL_training := --config-settings=--build-option=--compression=stored

# The pip of $(VENV) installs into it: one of its own would take seven seconds.
.venv-%/.dev: requirements/peers/%.txt | $(VENV)/.build
	$(if $(SYSTEM_$*),tools/setup-system.sh $(SYSTEM_$*))
	test -d .venv-$* || $(PYTHON) -m venv --without-pip .venv-$*
	$(BIN)/pip --python .venv-$*/bin/python $(INSTALL) $(INSTALL_$*) -r $<
	$(if $(NODE_$*),-$(call NPM,.venv-$*/node,$(NODE_$*)))
	touch $@

INSTALL_EDITABLE = $(BIN)/pip uninstall -qq --yes arrowdl && \
  $(PIP_INSTALL) --no-build-isolation --no-deps -e .

# Packages are installed while the extension compiles, here and for the demo. Not $(MAKE): `make -n`
# runs recipes that contain it.
build/.dev: $(VENV)/.build requirements/dev.txt pyproject.toml build/.modules
	tools/setup-system.sh $(SYSTEM_TESTS)
	make --no-print-directory $(VENV)/.dev & packages=$$!; \
	  $(INSTALL_EDITABLE); built=$$?; wait $$packages && exit $$built
	touch $@

# The editable install lists each module's path, so it is repeated when files are added or moved.
build/.modules: .FORCE
	@mkdir -p build && find python -name '*.py*' -not -path '*/__pycache__/*' | sort > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
.FORCE:  # it names no file, so it is always newer

# Without the C++ tests, which need more packages; build/.dev reuses the object files.
build/.demo: $(VENV)/.build pyproject.toml requirements/demo.txt requirements/constraints.txt
	$(PIP_INSTALL) -r requirements/demo.txt & libraries=$$!; \
	  { test -e build/.dev || { $(INSTALL_EDITABLE) -C cmake.define.ARROWDL_TESTS=OFF; }; }; \
	  built=$$?; wait $$libraries && exit $$built
	touch $@

# Two builds of a commit give the same files.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)

BUILD_WHEEL = -m pip wheel -qq --no-deps -C cmake.define.ARROWDL_WERROR=ON
# For this machine's glibc: the workflow `wheels` builds those of a release in manylinux's image.
# Paths below the checkout, depth of the build folder and flags are those of the second build of
# check-package, which is users' way: ccache finds each object file again.
dist/.wheel: $(VENV)/.build pyproject.toml CMakeLists.txt LICENSE LICENSE-pybind11 NOTICE README.md tools/long_description.py $(shell find cmake cpp python -type f)
	rm -rf dist
	$(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('dist')"
	$(BIN)/python $(BUILD_WHEEL) --no-build-isolation --wheel-dir dist -C build-dir=build/wheel .
	echo $(SOURCE_DATE_EPOCH) > $@
