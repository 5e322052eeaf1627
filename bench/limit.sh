#!/usr/bin/env bash
# How near a search comes to the time its distances alone would take (--quick, --keep, --clock cpu, --data DIR).
# Builds the indexes with the command and leaves medians, least and most in bench/results/limit.json.
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target bench_limit shortlist_cli
    [[ " $* " == *" --data"* ]] || ./dev data glove100
    python3 bench/limit/run.py "$@"
}

main "$@"
