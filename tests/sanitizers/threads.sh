#!/usr/bin/env bash
# Runs pytest on a free-threaded Python and an extension that are both built with ThreadSanitizer.
#
#   tests/sanitizers/threads.sh BUILD [PYTEST ARGUMENT...]
#
# The Python is that of `tools/build-python.sh 3.13t-tsan`: without it, this says so. NumPy and pyarrow are the wheels: of races
# in their code nothing is seen.
set -euo pipefail
mkdir -p "$1"
build=$(realpath "$1")
shift
PYTHON=${PYTHON:-.venv/bin/python}
PIP=${PIP:-.venv/bin/pip}
here=$(cd "$(dirname "$0")" && pwd)
root=${PYTHONS_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/arrowdl-pythons}/3.13t-tsan
if [ ! -x "$root/bin/python3" ]; then
  echo "nothing ran: there is no Python with ThreadSanitizer, tools/build-python.sh 3.13t-tsan builds one"
  exit 0
fi
export PYTHON_GIL=0
export TSAN_OPTIONS="second_deadlock_stack=1:exitcode=66:suppressions=$build/suppressions.txt"
cat "$root"/share/tsan/suppressions_free_threading.txt "$here/tsan.txt" >"$build/suppressions.txt"
env=$build/venv
[ -d "$env" ] || "$root/bin/python3" -m venv --without-pip "$env"
site=$("$env/bin/python" -c "import sysconfig; print(sysconfig.get_path('platlib'))")
# By another Python, for which pip takes no minutes.
[ -d "$site/pyarrow" ] || "$PIP" install -qq --no-compile --target "$site" --only-binary :all: \
  --implementation cp --python-version 3.13 --abi cp313t --platform "manylinux_2_28_$(uname -m)" \
  numpy pyarrow pytest hypothesis
cmake --preset tsan -B "$build" -DARROWDL_PYTHON=ON -DARROWDL_TESTS=OFF \
  -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DPython_EXECUTABLE="$env/bin/python" \
  -DPython_INCLUDE_DIR="$("$env/bin/python" -c "import sysconfig; print(sysconfig.get_path('include'))")" \
  -Dpybind11_DIR="$("$PYTHON" -m pybind11 --cmakedir)" \
  -DARROWDL_DLPACK_INCLUDE_DIR="$("$PYTHON" -m tvm_ffi.config --dlpack-includedir)"
cmake --build "$build" --target _core
rm -rf "${site:?}/arrowdl"
cp -r "$here/../../python/arrowdl" "$site"
cmake --install "$build" --prefix "$site/arrowdl" --component python
exec "$env/bin/python" -m pytest -p no:cacheprovider "$@"
