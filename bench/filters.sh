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

# The packages that this benchmark needs, of those that ./dev bench peers takes.
environment() {
    local key
    grep -E '^(--no-binary|hnswlib|faiss-cpu|usearch|numpy|matplotlib)' bench/peers/requirements.txt \
        >"$PEERS/filters-requirements.txt"
    key=$(cat "$PEERS/filters-requirements.txt" <(python3 --version) | sha256sum)
    venv_is_new "$VENV" "$key" || return 0
    echo "bench filters: fetching the libraries of bench/peers/requirements.txt"
    # Without the cache, so that hnswlib is compiled here and for this machine.
    env -u HNSWLIB_NO_NATIVE "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        -r "$PEERS/filters-requirements.txt" || die "pip could not install all of $PEERS/filters-requirements.txt"
    printf '%s' "$key" >"$VENV/key"
}

main() {
    local word sets=()
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/filters/options.py --help
    done
    mkdir -p "$PEERS"
    environment
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
