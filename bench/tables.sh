#!/usr/bin/env bash
# Embedding tables in codes of 8 and 4 bits beside floats: AUC on Adult, bytes, time of a prediction (--quick, --seeds N).
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    [[ " $* " == *" --data"* ]] || ./dev data adult
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target bench_tables
    python3 bench/tables/run.py "$@"
}

main "$@"
