#!/usr/bin/env bash
# Runs make targets one after the other and prints the time of each. Stops at the first failure; the
# last line then says how to run the failed target alone.
#
#   tools/stages.sh TARGET...
set -uo pipefail

begun=$SECONDS
for stage in "$@"; do
  before=$SECONDS
  printf '\n== %s\n' "$stage"
  "${MAKE:-make}" --no-print-directory "$stage"
  status=$?
  if [ $status -ne 0 ]; then
    printf '\n== %s failed after %d s. To run it alone: make %s\n' \
      "$stage" $((SECONDS - before)) "$stage" >&2
    exit $status
  fi
  times+=("$(printf '%6d s  %s' $((SECONDS - before)) "$stage")")
done
printf '\n%s\n' "${times[@]}"
printf '%6d s  in all\n' $((SECONDS - begun))
