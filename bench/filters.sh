#!/usr/bin/env bash
# Filters by the share allowed and where queries lie: ours by every strategy, Faiss, hnswlib, usearch, a scan ([SET...]).
# Takes the peers from their packages; bench/filters/run.py builds the indexes, takes the turns and leaves the records.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh
. bench/peers/hnswlib_headers.sh
. bench/peers/usearch_headers.sh

readonly PEERS=build/peers
readonly VENV=$PEERS/filters-venv

die() {
    printf 'bench filters: %s\n' "$*" >&2
    exit 1
}

main() {
    local word sets=()
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/filters/options.py --help
    done
    mkdir -p "$PEERS"
    some_peers "$VENV"
    hnswlib_headers "$VENV/bin/python" "$PEERS"
    usearch_headers "$PEERS"
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_HNSWLIB="$PWD/$PEERS/hnswlib-$HNSWLIB_VERSION" \
        -DSHORTLIST_USEARCH="$PWD/$PEERS/usearch-$USEARCH_VERSION" >/dev/null
    cmake --build build --target bench_filters native_filters native_hnswlib native_usearch >/dev/null ||
        die "the programs were not built; cmake --build build says why"
    for word in "$@"; do
        [[ $word != -* ]] || break
        sets+=("$word")
    done
    [ ${#sets[@]} -gt 0 ] || sets=(glove100 gloss384)
    for word in "${sets[@]}"; do
        [ -f "data/$word/complete" ] || ./dev data "$word"
    done
    "$VENV/bin/python" bench/filters/run.py "$@"
}

main "$@"
