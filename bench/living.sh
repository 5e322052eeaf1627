#!/usr/bin/env bash
# An index that lives: runbooks of adds, deletes, replaces; beside hnswlib, usearch, Faiss, DiskANN ([SET...] --quick).
# Takes the peers from their packages; bench/living/run.py takes the turns and leaves a record a set.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh
. bench/peers/hnswlib_headers.sh
. bench/peers/usearch_headers.sh

readonly PEERS=build/peers
readonly VENV=$PEERS/living-venv

die() {
    printf 'bench living: %s\n' "$*" >&2
    exit 1
}

main() {
    local word sets=() failed=()
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/living/options.py --help
    done
    mkdir -p "$PEERS"
    some_peers "$VENV"
    apart_venv "$PEERS/diskann-venv" bench/living/diskann-requirements.txt ||
        failed=(--failed "diskann:pip could not install bench/living/diskann-requirements.txt")
    our_module "$VENV"
    hnswlib_headers "$VENV/bin/python" "$PEERS"
    usearch_headers "$PEERS"
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_HNSWLIB="$PWD/$PEERS/hnswlib-$HNSWLIB_VERSION" \
        -DSHORTLIST_USEARCH="$PWD/$PEERS/usearch-$USEARCH_VERSION" >/dev/null
    cmake --build build --target native_shortlist native_beside_shortlist native_beside_hnswlib \
        native_beside_usearch >/dev/null ||
        die "the programs were not built; cmake --build build says why"
    cmake --build build --target bench_requests >/dev/null ||
        echo "bench living: no requests: bench_requests needs the ranker" >&2
    for word in "$@"; do
        [[ $word != -* ]] || break
        sets+=("$word")
    done
    [ ${#sets[@]} -gt 0 ] || sets=(glove100 gloss384)
    for word in "${sets[@]}"; do
        [ -f "data/$word/complete" ] || ./dev data "$word"
    done
    "$VENV/bin/python" bench/living/run.py "$@" "${failed[@]}"
}

main "$@"
