#!/usr/bin/env bash
# Runs pytest on an extension built with AddressSanitizer.
#
#   CXX=clang++ tests/sanitizers/python.sh PYTHON BUILD [PYTEST ARGUMENT...]
#
# CXX is the Clang that compiled it. An environment in BUILD uses PYTHON's packages without PYTHON's
# editable install of arrowdl.
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

# The runtime has to be loaded before Python, and libstdc++ so that it can intercept exceptions.
runtime=libclang_rt.asan-$(uname -m).so
[ -f "$("$CXX" -print-file-name="$runtime")" ] || { echo "$CXX has no $runtime" >&2 && exit 1; }
LD_PRELOAD="$("$CXX" -print-file-name="$runtime") $("$CXX" -print-file-name=libstdc++.so)"
# Python and the frameworks keep memory until exit on purpose. Leaks are found by arrowdl's own
# counter of live objects here, and by LeakSanitizer in the C++ tests.
export ASAN_OPTIONS=detect_leaks=0:allow_addr2line=1:suppressions=$here/asan.txt
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:suppressions=$here/ubsan.txt
export PYTHONMALLOC=malloc LD_PRELOAD
unset CXX  # what compiles in a test takes its own
exec "$build/venv/bin/python" -m pytest -p no:cacheprovider "$@"
