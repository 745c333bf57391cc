#!/usr/bin/env bash
# Tests the package on other Pythons: builds it for each, and runs the tests whose libraries it has.
#
#   tools/test-pythons.sh VERSION...    # 3.13, or 3.13t for the free-threaded one
#
# LIBRARIES are installed where they have a wheel, of another version than the pinned one if need be.
# A file of TESTS that imports a missing one is left out, and a test that needs it is skipped. DLPACK
# is the folder of dlpack/dlpack.h. A Python that the machine lacks is no failure.
set -uo pipefail
cd "$(dirname "$0")/.."

LIBRARIES=${LIBRARIES-numpy pyarrow}
TESTS=${TESTS:-tests/python/process tests/python/convert tests/python/protocols tests/python/stream}
PEERS="arro3 cffi duckdb hypothesis jax ml_dtypes nanoarrow numpy pandas PIL polars pyarrow tensordict torch tqdm tvm_ffi"

# `3.13t` of a Python, or nothing if it does not run.
version_of() {
  "$1" -c 'import sys, sysconfig
free = sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2] + "t" * bool(free))' 2>/dev/null
}

# The Python of a version: of tools/build-python.sh, of the system, or of pyenv.
find_python() {
  local number=${1%t} python
  for python in build/pythons/"$1"/bin/python3 "$(command -v "python$1")" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$number".*[0-9]"${1#"$number"}"/bin/python3; do
    [ "$(version_of "$python")" = "$1" ] && echo "$python" && return
  done
  return 1
}

make_environment() {
  "$python" -m venv --clear "$env" &&
    "$env/bin/pip" install -qq -c requirements/constraints.txt -r requirements/gpu-build.txt \
      pytest pytest-xdist || return
  local wheel="$env/bin/pip install -qq --only-binary :all:"
  for library in hypothesis $LIBRARIES; do
    $wheel -c requirements/constraints.txt "$library" 2>/dev/null || $wheel "$library" 2>/dev/null ||
      echo "Python $version: $library has no wheel for it"
  done
  echo "$LIBRARIES" >"$env/.made"
}

test_python() {
  local env=.venv-python$version absent
  [ "$(cat "$env/.made" 2>/dev/null)" = "$LIBRARIES" ] || make_environment || return
  "$env/bin/pip" install -qq --no-deps --no-build-isolation --force-reinstall \
    -C build-dir="build/python$version" -C cmake.define.ARROWDL_WERROR=ON \
    -C cmake.define.ARROWDL_DLPACK_INCLUDE_DIR="$DLPACK" . || return
  "$env/bin/python" -I tests/smoke.py || return
  absent=$("$env/bin/python" -c 'import importlib.util, sys
print(*(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))' $PEERS)
  case $version in *t) local -x PYTHON_GIL=0 ;; esac
  # shellcheck disable=SC2046,SC2086
  ARROWDL_WITHOUT=$absent "$env/bin/python" -m pytest -q -n "${JOBS:-2}" -m "not slow" \
    $(grep -rLE "^(import|from) (${absent// /|})\\b" --include 'test_*.py' $TESTS)
}

failed=0
for version in "$@"; do
  printf '\n-- Python %s\n' "$version"
  if ! python=$(find_python "$version"); then
    outcome="not run: this machine has none. tools/build-python.sh $version builds it"
  elif before=$SECONDS && test_python; then
    outcome="passed, $((SECONDS - before)) s"
  else
    outcome="FAILED" failed=1
  fi
  outcomes+=("$(printf '%6s  %s' "$version" "$outcome")")
done
printf '\n%s\n' "${outcomes[@]}"
exit $failed
