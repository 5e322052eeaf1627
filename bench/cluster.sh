#!/usr/bin/env bash
# Many ranks: training beside PyTorch DDP, its scaling, all-reduces simulated and real (--quick, --only PART, --rounds N).
# bench/cluster/run.py runs the parts: the files of bench/cluster that it names. Records: bench/results/cluster*.json.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VENV=build/peers/cluster-venv
readonly PYTHON=$VENV/bin/python
readonly PACKAGES=(torch==2.15.0 'matplotlib>=3.7,<4' numpy)

die() {
    printf 'bench cluster: %s\n' "$*" >&2
    exit 1
}

environment() {
    if [ "$(cat "$VENV/key" 2>/dev/null)" != "${PACKAGES[*]}" ]; then
        rm -rf "$VENV"
        python3 -m venv "$VENV" || die "python3 cannot make a virtual environment; install python3-venv"
        echo "bench cluster: fetching ${PACKAGES[*]} (some 3 GB)"
        "$PYTHON" -m pip install --quiet --disable-pip-version-check "${PACKAGES[@]}"
        printf '%s' "${PACKAGES[*]}" >"$VENV/key"
    fi
    # The rows PyTorch trains on are those that our own features encode.
    "$PYTHON" -m pip install --quiet --disable-pip-version-check ./bindings/python
}

main() {
    mkdir -p build/peers
    environment
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON >/dev/null
    cmake --build build --target shortlist_cli shortlist_mpi bench_cluster ||
        die "shortlist-mpi was not built: it needs MPI (libopenmpi-dev) and the ranker"
    local set
    for set in adult clicks:50000 glove100 gloss384; do ./dev data "$set"; done
    "$PYTHON" -B bench/cluster/run.py "$@"
}

main "$@"
