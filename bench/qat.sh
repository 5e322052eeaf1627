#!/usr/bin/env bash
# Quantisation-aware training beside calibration: AUC lost on Adult and MovieLens over seeds, and time of a step on
# Criteo's shape (--seeds N, --only accuracy|steps, --quick). Leaves the figures in bench/results/qat.json.
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target bench_mixed shortlist_cli
    local set
    [[ " $* " == *" --data"* ]] || for set in adult movielens100k clicks:50000; do ./dev data "$set"; done
    python3 bench/qat/run.py "$@"
}

main "$@"
