#!/usr/bin/env bash
# Races every library on one core: hnswlib, Faiss, usearch, SVS, pyglass-portable, VSAG, NGT, ScaNN, RaBitQ ([DATASET] --quick).
# Takes them from their packages, the versions of bench/peers/requirements.txt; ours is built and installed beside them.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh
. bench/peers/hnswlib_headers.sh

readonly PEERS=build/peers
readonly VENV=$PEERS/peers-venv
readonly PYTHON=$VENV/bin/python

die() {
    printf 'bench peers: %s\n' "$*" >&2
    exit 1
}

environment() {
    local key
    key=$(cat bench/peers/requirements.txt <(python3 --version) | sha256sum)
    venv_is_new "$VENV" "$key" || return 0
    echo "bench peers: fetching the libraries of bench/peers/requirements.txt"
    # Without the cache, so that hnswlib is compiled here and for this machine.
    env -u HNSWLIB_NO_NATIVE "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        -r bench/peers/requirements.txt || die "pip could not install all of bench/peers/requirements.txt"
    printf '%s' "$key" >"$VENV/key"
}

# The programs of bench/peers/native/, which ask ours and three of the peers without Python.
native() {
    hnswlib_headers "$PYTHON" "$PEERS"
    local packages
    packages=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_HNSWLIB="$PWD/$PEERS/hnswlib-$HNSWLIB_VERSION" \
        -DSHORTLIST_RABITQLIB="$(echo "$packages"/lib*/cmake/rabitqlib)" -DSHORTLIST_SVS="$packages/svs" >/dev/null
    cmake --build build --target native_shortlist native_hnswlib native_rabitq native_svs >/dev/null ||
        die "the programs of bench/peers/native were not built; cmake --build build says why"
}

main() {
    local word
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/peers/options.py "$@"
    done
    mkdir -p "$PEERS"
    environment
    apart_venv "$PEERS/scann-core-venv" bench/peers/scann-core-requirements.txt ||
        echo "bench peers: scann-core could not be installed and is left out" >&2
    our_module "$VENV"
    native
    local set=glove100
    [ $# -eq 0 ] || [[ $1 == -* ]] || set=$1
    [ -d "data/${set//:/-}" ] || ./dev data "$set"
    "$PYTHON" bench/peers/run.py "$@"
}

main "$@"
