#!/usr/bin/env bash
# Training in bf16 and fp16 beside f32: time a step on Criteo's shape, and AUC on Adult over seeds (--quick, --rounds N).
# Leaves the numbers of every step and seed in bench/results/mixed.json.
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target bench_mixed shortlist_cli
    local set
    for set in adult clicks:50000; do ./dev data "$set"; done
    python3 bench/mixed/run.py "$@"
}

main "$@"
