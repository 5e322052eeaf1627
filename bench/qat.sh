#!/usr/bin/env bash
# INT8 by training beside INT8 by calibration: AUC on Adult and MovieLens, time of a step (--seeds N, --only PART, --quick).
# PART is accuracy or steps; a step is one of Criteo's shape. Leaves the figures in bench/results/qat.json.
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
