#!/usr/bin/env bash
# Search, build, file size and start-up side by side with hnswlib 0.8.0 (--quick, --rounds N, --threads N, --data DIR).
# Takes the headers from hnswlib's source package and compiles them with that package's own flags for this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/hnswlib/headers.sh

readonly PEERS=build/peers
readonly PYTHON=$PEERS/venv/bin/python

die() {
    printf 'bench hnswlib: %s\n' "$*" >&2
    exit 1
}

environment() {
    [ -f "$PEERS/venv/complete" ] && return 0
    rm -rf "$PEERS/venv"
    python3 -m venv "$PEERS/venv" || die "python3 cannot make a virtual environment; install python3-venv"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check 'matplotlib>=3.7,<4'
    touch "$PEERS/venv/complete"
}

main() {
    mkdir -p "$PEERS"
    environment
    hnswlib_headers "$PYTHON" "$PEERS"
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_HNSWLIB="$PWD/$PEERS/hnswlib-$HNSWLIB_VERSION" \
        -DSHORTLIST_HNSWLIB_VERSION="$HNSWLIB_VERSION" >/dev/null
    cmake --build build --target bench_compare
    [[ " $* " == *" --data"* ]] || [ -f data/glove100/base.fbin ] || ./dev data glove100
    "$PYTHON" bench/hnswlib/run.py --program build/bench/hnswlib/bench_compare "$@"
}

main "$@"
