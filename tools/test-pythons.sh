#!/usr/bin/env bash
# Tests the package on other Pythons: builds it for each, and runs the tests whose libraries it has.
#
#   tools/test-pythons.sh VERSION...        # 3.13, or 3.13t for the free-threaded one
#   tools/test-pythons.sh 3.13-newest       # NEWEST_TESTS with the libraries of requirements/newest.txt
#   tools/test-pythons.sh --raise 3.13      # writes into it the newest that can be installed together
#
# The last lines say of each what ran, or why nothing did. A Python of Debian's packages is fetched;
# one that has to be built first, which takes minutes, is not.
# LIBRARIES are installed where they have a wheel, of another version than the pinned one if need be;
# for -newest, beside those of the file: LIBRARIES=torch installs several GB of CUDA on Linux.
# A file of TESTS that imports a missing one is left out, and a test that needs it is skipped. DLPACK
# is the folder of dlpack/dlpack.h. A Python that is not available is not a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

TESTS=${TESTS:-tests/python/process}
NEWEST=requirements/newest.txt
NEWEST_TESTS=${NEWEST_TESTS:-$(echo tests/python/{convert,protocols,interchange} \
  tests/python/loader/test_{jax,layouts,opening,round_trips}.py)}
PEERS="arro3 cffi duckdb fsspec hypothesis jax ml_dtypes nanoarrow numpy pandas PIL polars pyarrow tensordict torch tqdm tvm_ffi"

log=$(mktemp) && trap 'rm -f "$log"' EXIT

# `3.13t` of a Python, or nothing if it does not run.
version_of() {
  "$1" -c 'import sys, sysconfig
free = sysconfig.get_config_var("Py_GIL_DISABLED")
print("%d.%d" % sys.version_info[:2] + "t" * bool(free))' 2>/dev/null
}

# The Python of a version: of tools/build-python.sh, of the system, or of pyenv.
find_python() {
  local number=${1%t} python root=${PYTHONS_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/arrowdl-pythons}
  for python in "$root/$1"/bin/python3 "$(command -v "python$1")" \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$number".*[0-9]"${1#"$number"}"/bin/python3; do
    [ "$(version_of "$python")" = "$1" ] && echo "$python" && return
  done
  return 1
}

# Prints the Python, fetched from Debian's packages if need be, or why there is none.
get_python() {
  local why
  find_python "$1" && return
  case $1 in
    *t) why="this machine has none. tools/build-python.sh $1 builds it, in some minutes" ;;
    *)
      why=$(tools/build-python.sh "$1" 2>&1 >/dev/null) && find_python "$1" && return
      why="this machine has none, and tools/build-python.sh: ${why##*$'\n'}"
      ;;
  esac
  echo "$why"
  return 1
}

# Debian's packages bring no pip, and the pip of an old Python knows no free-threaded ones: it installs
# wheels into them that cannot be imported.
install() {
  local pip=("${PIP:-.venv/bin/pip}" --python "$env/bin/python")
  [ -x "$env/bin/pip" ] && pip=("$env/bin/python" -m pip)
  "${pip[@]}" install -qq --no-compile "$@"
}

make_environment() {
  "$python" -m venv --clear --without-pip "$env" && install -c requirements/constraints.txt pip &&
    install -c requirements/constraints.txt -r requirements/gpu-build.txt \
      pytest pytest-xdist || return
  local wheel="install --only-binary :all:"
  # shellcheck disable=SC2086
  [ -z "$newest" ] || $wheel $newest || return
  for library in hypothesis $libraries; do
    $wheel -c requirements/constraints.txt "$library" 2>/dev/null || $wheel "$library" 2>/dev/null ||
      echo "Python $version: $library has no wheel for it"
  done
  echo "$python $newest $libraries" >"$env/.made"
}

# The pins of NEWEST for those of another version of Python, in a line each, behind what opens the file.
raise_newest() {
  local python env names pins
  python=$(get_python "$1") || { echo "$python" >&2 && return 1; }
  env=$(mktemp -d) && "$python" -m venv --without-pip "$env" || return
  names=$(sed -n 's/^\([A-Za-z0-9_.-]*\)==.*/\1/p' "$NEWEST")
  # shellcheck disable=SC2086
  pins=$(install --only-binary :all: --dry-run --report - $names | "$python" -c 'import json, sys
for one in json.load(sys.stdin)["install"]:
    if one["requested"]:
        print("{name}=={version}".format(**one["metadata"]))') || return
  rm -rf "$env"
  { grep '^#' "$NEWEST" && sort -f <<<"$pins"; } >"$log" && cp "$log" "$NEWEST" && git --no-pager diff --stat -- "$NEWEST"
}

test_python() {
  local env=.venv-python$version newest="" libraries=${LIBRARIES-numpy pyarrow} tests=$TESTS
  local absent missing file files
  case $version in *-newest)
    newest=$(grep -v '^#' "$NEWEST") libraries=${LIBRARIES-} tests=$NEWEST_TESTS
    newest=${newest//$'\n'/ }
    ;;
  esac
  [ "$(cat "$env/.made" 2>/dev/null)" = "$python $newest $libraries" ] || make_environment || return
  install --no-deps --no-build-isolation --force-reinstall \
    -C build-dir="build/python$version" -C cmake.define.ARROWDL_WERROR=ON \
    -C cmake.define.ARROWDL_DLPACK_INCLUDE_DIR="$DLPACK" . || return
  "$env/bin/python" -I tests/smoke.py || return
  absent=$("$env/bin/python" -c 'import importlib.util, sys
print(*(name for name in sys.argv[1:] if not importlib.util.find_spec(name)))' $PEERS)
  missing=${absent// /|}
  # A helper of the tests may import it too.
  for file in $(grep -lE "^(import|from) ($missing)\\b" tests/python/helpers/*.py); do
    missing+="|helpers(\\.| import )$(basename "$file" .py)"
  done
  # grep's exit status says whether a file has such a line, not whether one lacks it.
  # shellcheck disable=SC2086
  files=$(grep -rLE "^(import|from) ($missing)\\b" --include 'test_*.py' $tests)
  [ -n "$files" ] || { echo "no file of $tests does without $absent" && return 1; }
  case $version in *[0-9]t) local -x PYTHON_GIL=0 ;; esac
  # shellcheck disable=SC2086
  ARROWDL_WITHOUT=$absent "$env/bin/python" -m pytest -q -n "${JOBS:-2}" --dist worksteal -m "not slow" $files
}

if [ "${1-}" = --raise ]; then
  raise_newest "${2:?the version of Python}"
  exit
fi
failed=0
for version in "$@"; do
  printf '\n-- Python %s\n' "$version"
  before=$SECONDS
  if ! python=$(get_python "${version%-newest}"); then
    outcome="cannot be had: $python"
  elif test_python | tee "$log"; then
    outcome="passed in $((SECONDS - before)) s: $("$python" -V), smoke and $(tail -n 1 "$log")"
  else
    outcome="FAILED: $("$python" -V)" failed=1
  fi
  outcomes+=("$(printf '%6s  %s' "$version" "$outcome")")
done
printf '\n%s\n' "${outcomes[@]}"
exit $failed
