#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests again and again while stress-ng keeps every core busy, to find those that depend on time.
# usage: tools/test_loaded.sh [RUNS [PART...]]     20 times all parts of `make test`, by default
# What it can be built with is built before. A run that fails keeps its logs in out/loaded/<run>. The
# exit code is 0 if all runs passed.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
# shellcheck source=tools/common.sh
. "$here/common.sh"

runs=${1:-20}
parts=("${@:2}")
[ ${#parts[@]} -gt 0 ] || parts=(test)
[[ $runs =~ ^[1-9][0-9]*$ ]] || die "the number of runs is '$runs', and must be a number from 1: make test-loaded RUNS=20"

"$here/install-needs.sh" load
cd "$here/.."
/usr/bin/python3 tools/run_parts.py programs unit-build fuzz-build
rm -rf out/loaded
mkdir -p out/loaded
stress-ng --quiet --cpu 0 &  # one for each core
load=$!
trap 'kill "$load" 2> /dev/null; wait "$load" 2> /dev/null || true' EXIT
failed=()
for ((run = 1; run <= runs; run++)); do
  begin=$SECONDS
  if /usr/bin/python3 tools/run_parts.py "${parts[@]}" > "out/loaded/$run.log" 2>&1; then
    verdict=passed
  else
    verdict=failed
    failed+=("$run")
    cp -r out/parts "out/loaded/$run"
  fi
  # A load that has ended would make the runs worth nothing.
  kill -0 "$load" 2> /dev/null || die "stress-ng has ended by itself"
  say "run $run of $runs: $verdict, $((SECONDS - begin)) s, load $(cut -d' ' -f1 /proc/loadavg)"
done
if [ ${#failed[@]} -gt 0 ]; then
  for run in "${failed[@]}"; do grep -hE 'failed|FAILED|\|' "out/loaded/$run.log" | tail -n 20; done
  die "${#failed[@]} of $runs runs failed: ${failed[*]}; their logs are in out/loaded"
fi
say "all $runs runs passed"
