#!/usr/bin/env bash
# Whole builds by turns: ours by leaves and by inserting, hnswlib, SymphonyQG, ScaNN, Faiss, usearch ([SET...] --rows N).
# Takes the peers from their packages; bench/build/run.py takes the turns and leaves the record.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh

readonly PEERS=build/peers
readonly VENV=$PEERS/build-venv

die() {
    printf 'bench build: %s\n' "$*" >&2
    exit 1
}

wanted() { grep -E "^($1)==" bench/peers/requirements.txt; }

# The packages that this benchmark needs, of those that ./dev bench peers takes. A peer that cannot be installed is named
# in $VENV/failed, and in the record.
environment() {
    local key package
    local -r pip=("$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir)
    key=$(cat bench/build.sh bench/peers/requirements.txt <(python3 --version) | sha256sum)
    venv_is_new "$VENV" "$key" || return 0
    echo "bench build: fetching the libraries of bench/peers/requirements.txt"
    wanted 'numpy|matplotlib' | xargs "${pip[@]}" || die "pip could not install numpy and matplotlib"
    : >"$VENV/failed"
    # hnswlib is compiled here and for this machine.
    for package in $(wanted 'hnswlib|faiss-cpu|usearch|rabitqlib'); do
        env -u HNSWLIB_NO_NATIVE "${pip[@]}" --no-binary hnswlib "$package" || echo "$package" >>"$VENV/failed"
    done
    printf '%s' "$key" >"$VENV/key"
}

main() {
    local word sets=()
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/build/options.py --help
    done
    mkdir -p "$PEERS"
    environment
    cmake --build build --target shortlist_cli synth >/dev/null || die "the command was not built; ./dev build says why"
    for word in "$@"; do
        [[ $word != -* ]] || break
        sets+=("$word")
    done
    [ ${#sets[@]} -gt 0 ] || sets=(glove100 gloss384 synth)
    for word in "${sets[@]}"; do
        [ "$word" = synth ] || [ -f "data/$word/complete" ] || ./dev data "$word"
    done
    local failed
    failed=$(paste -sd, "$VENV/failed")
    apart_venv "$PEERS/scann-core-venv" bench/peers/scann-core-requirements.txt || failed+=,scann-core
    "$VENV/bin/python" bench/build/run.py --failed "$failed" "$@"
}

main "$@"
