#!/usr/bin/env bash
# Runs pytest on an extension built with AddressSanitizer.
#
#   tests/sanitizers/python.sh PYTHON BUILD [PYTEST ARGUMENT...]
#
# PYTHON's packages are seen through an environment of BUILD's own, so that PYTHON's
# editable install of arrowdl stays out of the way.
set -euo pipefail
python=$1 build=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)

platlib() { "$1" -c "import sysconfig; print(sysconfig.get_path('platlib'))"; }
[ -d "$build/venv" ] || "$python" -m venv --without-pip "$build/venv"
site=$(platlib "$build/venv/bin/python")
platlib "$python" >"$site/development.pth"
rm -rf "${site:?}/arrowdl"
cp -r "$here/../../python/arrowdl" "$site"
cmake --install "$build" --prefix "$site/arrowdl" --component python

# The runtime has to be there before Python is; libstdc++ so that exceptions are seen.
LD_PRELOAD="$(${CXX:-g++} -print-file-name=libasan.so) $(${CXX:-g++} -print-file-name=libstdc++.so)"
# Python and the frameworks keep memory until exit on purpose: arrowdl's own live-object
# counter looks for leaks here, LeakSanitizer does in the C++ tests.
export ASAN_OPTIONS=detect_leaks=0:suppressions=$here/asan.txt
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:suppressions=$here/ubsan.txt
export PYTHONMALLOC=malloc LD_PRELOAD
exec "$build/venv/bin/python" -m pytest -p no:cacheprovider "$@"
