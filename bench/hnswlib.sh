#!/usr/bin/env bash
# Search, build, file size and start-up side by side with hnswlib 0.8.0 (--quick, --rounds N, --threads N, --data DIR).
# Takes the headers from hnswlib's source package and compiles them with that package's own flags for this machine.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=0.8.0
readonly SUM=cb6d037eedebb34a7134e7dc78966441dfd04c9cf5ee93911be911ced951c44c
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

# The source package, by pip; nothing of it is installed.
headers() {
    local package=$PEERS/hnswlib-$VERSION.tar.gz
    if [ ! -f "$package" ]; then
        "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary hnswlib \
            --dest "$PEERS" "hnswlib==$VERSION" || die "pip could not download the source package of hnswlib $VERSION"
    fi
    echo "$SUM  $package" | sha256sum --check --quiet || die "$package is not the one these numbers are compared \
with; remove it and run this again"
    [ -f "$PEERS/hnswlib-$VERSION/hnswlib/hnswalg.h" ] || tar -xzf "$package" -C "$PEERS"
}

main() {
    mkdir -p "$PEERS"
    environment
    headers
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_HNSWLIB="$PWD/$PEERS/hnswlib-$VERSION" \
        -DSHORTLIST_HNSWLIB_VERSION="$VERSION" >/dev/null
    cmake --build build --target bench_compare
    [[ " $* " == *" --data"* ]] || [ -f data/glove100/base.fbin ] || ./dev data glove100
    "$PYTHON" bench/hnswlib/run.py --program build/bench/hnswlib/bench_compare "$@"
}

main "$@"
