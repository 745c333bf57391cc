#!/usr/bin/env bash
# Runs the tests of tests/gpu that are marked `sanitize` under compute-sanitizer: `make test-gpu SANITIZE=1`.
#
# Without tests of ordering: under compute-sanitizer every call may wait. It does not know that a query
# of an event may have found it complete: of races between streams it checks one kind, and of that not
# what a query orders (memory of empty arrays, which work never used, a batch whose columns are ready
# when it is made, and lists whose values are). With host frames it would keep what Python's frames refer
# to, and take the GIL in calls that torch's allocator makes under a lock: so it shows no host frames.
# Not being pinned memory is an error to the driver, and an answer to us. racecheck has nothing
# to find: our kernels share no memory of a block. With SHORT=1 memcheck alone, on one file of copies,
# one of releases and one of the Loader: what `make card` has time for.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not on PATH" >&2; exit 1; }
export ARROWDL_SANITIZED=1 PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync

sanitize() {
  local tool=$1 select=$2
  shift 2
  timeout 900 compute-sanitizer --error-exitcode 9 --report-api-errors no --show-backtrace device \
    --tool "$tool" "$@" "${PYTHON:-python3}" -m pytest -q -p no:cacheprovider tests/gpu \
    -m "cuda and sanitize" -k "$select"
}

if [ -n "${SHORT:-}" ]; then
  sanitize memcheck "test_copies or test_release or test_loader"
  exit
fi
sanitize memcheck ""
sanitize memcheck "not rows and not arrow_readers and not through_the_host" \
  --track-stream-ordered-races use-before-alloc
sanitize initcheck ""
