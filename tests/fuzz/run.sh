#!/usr/bin/env bash
# Runs every fuzzer of a build for some seconds, starting from its seeds.
#
#   tests/fuzz/run.sh FOLDER SECONDS JOBS
#
# They run side by side, and longer if there are more of them than JOBS: each has SECONDS of a
# processor, and none is idle at the end. New inputs stay in FOLDER. A failing input is kept there too, and its name is printed.
set -euo pipefail
folder=$1 seconds=$2 jobs=$3
seeds=$(cd "$(dirname "$0")" && pwd)/corpus

fuzz() {
  local target=$1 name
  name=$(basename "$target")
  local corpora=("$target.corpus")
  mkdir -p "$target.corpus"
  [ -d "$seeds/$name" ] && corpora+=("$seeds/$name")
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$target." "${corpora[@]}" \
    >"$target.log" 2>&1; then
    tail -n 60 "$target.log"
    echo "$name failed"
    return 255 # xargs stops at once
  fi
  echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$target.log") inputs, no failure"
}
export -f fuzz
export seconds seeds

mapfile -t targets < <(find "$folder" -maxdepth 1 -name '*_fuzz' -type f)
count=${#targets[@]}
[ "$count" -gt 0 ] || { echo "$folder has no fuzzer" >&2 && exit 1; }
[ "$count" -le "$jobs" ] || seconds=$((seconds * count / jobs))
printf '%s\0' "${targets[@]}" |
  xargs -0 -r -n 1 -P "$count" bash -euo pipefail -c 'fuzz "$1"' fuzz
