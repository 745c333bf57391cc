#!/usr/bin/env bash
# Runs all that a card is needed for, in less than 12 minutes: `make card`.
#
#   tools/card.sh               on a machine with a GPU, after tools/gpu-build.sh
#   tools/card.sh --rehearse    here: the benchmarks on the CPU, the counts on the drivers' doubles
#
# No step ends the run, and none goes on beyond its time or that of the run: the table at the end
# says how each ended. It writes gpu.md, gpu.json, gpu-profile.md and card.md into RESULTS
# (benchmarks/results), and what the steps said into LOGS (build/card).
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
results=${RESULTS:-benchmarks/results}
logs=${LOGS:-build/card}
limit=${CARD_SECONDS:-700}
bench=(--largest 256)
profile=(--device cuda)
if [ "${1:-}" = --rehearse ]; then
  bench=(--quick --largest 1 --device cpu)
  profile=(--device double)
fi
mkdir -p "$results" "$logs"
failed=0
rows=()

# step NAME SECONDS COMMAND...: runs it for that long at most.
step() {
  local name=$1 most=$2 begin=$SECONDS code left
  shift 2
  left=$((limit - SECONDS))
  if [ "$left" -lt 5 ]; then
    rows+=("| $name | not run: no time is left | 0 |")
    failed=1
    return
  fi
  if [ "$most" -gt "$left" ]; then most=$left; fi
  echo "== $name"
  timeout --kill-after 5 "$most" "$@" > "$logs/$name.txt" 2>&1
  code=$?
  tail -n 4 "$logs/$name.txt"
  case $code in
    0) rows+=("| $name | passed | $((SECONDS - begin)) |") ;;
    124 | 137) rows+=("| $name | stopped after $most s | $((SECONDS - begin)) |") ;;
    *) rows+=("| $name | status $code, see $logs/$name.txt | $((SECONDS - begin)) |") ;;
  esac
  if [ "$code" -ne 0 ]; then failed=1; fi
}

suite=("$python" -m pytest -q -p no:cacheprovider tests/gpu)
step tests 240 "${suite[@]}" -m cuda
step benchmarks 260 "$python" -m benchmarks.gpu "${bench[@]}" --results "$results"
step profile 60 "$python" -m benchmarks.gpu.profile "${profile[@]}" --results "$results"
if command -v compute-sanitizer > /dev/null; then
  SHORT=1 step sanitizer 180 tests/sanitizers/gpu.sh
else
  rows+=("| sanitizer | not run: compute-sanitizer is not on PATH | 0 |")
fi
{
  printf '# Steps of a card\n\n| step | end | seconds |\n|---|---|--:|\n'
  printf '%s\n' "${rows[@]}"
  printf '\n%s seconds in all, of %s.\n' "$SECONDS" "$limit"
} > "$results/card.md"
cat "$results/card.md"
exit "$failed"
