#!/usr/bin/env bash
# Opening at once, media, memory of processes, durable adds beside usearch and hnswlib saving anew (--quick, --data DIR).
# Takes the two from their packages, the versions of bench/storage/requirements.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh

readonly VENV=build/peers/storage-venv
readonly PYTHON=$VENV/bin/python

die() {
    printf 'bench storage: %s\n' "$*" >&2
    exit 1
}

environment() {
    local key
    key=$(cat bench/storage/requirements.txt <(python3 --version) | sha256sum)
    venv_is_new "$VENV" "$key" || return 0
    echo "bench storage: fetching the libraries of bench/storage/requirements.txt"
    env -u HNSWLIB_NO_NATIVE "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        -r bench/storage/requirements.txt || die "pip could not install all of bench/storage/requirements.txt"
    printf '%s' "$key" >"$VENV/key"
}

main() {
    mkdir -p build/peers
    environment
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target bench_storage shortlist_cli
    [[ " $* " == *" --data"* ]] || ./dev data glove100
    "$PYTHON" bench/storage/run.py "$@"
}

main "$@"
