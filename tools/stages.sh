#!/usr/bin/env bash
# Runs make targets one after the other. Prints for each its time, and the time of all processors
# together: if that is much less than twice as much, a processor was idle. Stops at the first failure;
# the last line then says how to run the failed target alone.
#
#   tools/stages.sh TARGET...     # "test-python SUITE=slow": a target with variables
set -uo pipefail

# The seconds of processors that the processes of this script have used, as Linux counts them.
count_processor_seconds() {
  local fields=()
  [ -r /proc/$$/stat ] && read -ra fields </proc/$$/stat
  echo $(((${fields[15]:-0} + ${fields[16]:-0}) / $(getconf CLK_TCK)))
}

begun=$SECONDS
for stage in "$@"; do
  before=$SECONDS
  used=$(count_processor_seconds)
  printf '\n== %s\n' "$stage"
  # shellcheck disable=SC2086 -- a stage may set variables
  "${MAKE:-make}" --no-print-directory $stage
  status=$?
  if [ $status -ne 0 ]; then
    printf '\n== %s failed after %d s. To run it alone: make %s\n' \
      "$stage" $((SECONDS - before)) "$stage" >&2
    exit $status
  fi
  used=$(($(count_processor_seconds) - used))
  times+=("$(printf '%6d s %6d s of processors  %s' $((SECONDS - before)) $used "$stage")")
done
printf '\n%s\n' "${times[@]}"
printf '%6d s  in all\n' $((SECONDS - begun))
