#!/usr/bin/env bash
# INT8 and bf16 layers beside layers of floats, by turns on one core: time of a row, with medians and quartiles of the ratio.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
cmake --build build --target bench_int8
taskset -c 0 build/bench/int8/bench_int8 "${1:-41}" | tee bench/results/int8.json
