#!/usr/bin/env bash
# Power failures and kills of a writer, as many as wanted: nothing acknowledged may be lost (--images N, --kills N).
# Builds the two tests, runs them for so many, and leaves the counts in bench/results/crash.json.
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    cmake -S . -B build -DSHORTLIST_BUILD_TESTS=ON >/dev/null
    cmake --build build --target test_crash test_kill
    python3 bench/crash/run.py "$@"
}

main "$@"
