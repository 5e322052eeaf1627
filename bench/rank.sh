#!/usr/bin/env bash
# Ranking side by side with PyTorch (training) and ONNX Runtime (serving), and the funnel's latency (--quick, --rounds N).
# Takes the peers from their packages.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PEERS=build/peers
readonly PYTHON=$PEERS/rank-venv/bin/python
readonly PACKAGES=(torch==2.15.0 onnxruntime==1.31.1 onnx==1.23.2 'matplotlib>=3.7,<4' numpy)

die() {
    printf 'bench rank: %s\n' "$*" >&2
    exit 1
}

environment() {
    if [ "$(cat "$PEERS/rank-venv/key" 2>/dev/null)" != "${PACKAGES[*]}" ]; then
        rm -rf "$PEERS/rank-venv"
        python3 -m venv "$PEERS/rank-venv" || die "python3 cannot make a virtual environment; install python3-venv"
        echo "bench rank: fetching ${PACKAGES[*]} (some 3 GB)"
        "$PYTHON" -m pip install --quiet --disable-pip-version-check "${PACKAGES[@]}"
        printf '%s' "${PACKAGES[*]}" >"$PEERS/rank-venv/key"
    fi
    # The rows PyTorch trains on are those that our own features encode.
    "$PYTHON" -m pip install --quiet --disable-pip-version-check ./bindings/python
}

main() {
    mkdir -p "$PEERS"
    environment
    bash bench/rank/header.sh "$PEERS/onnxruntime"
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_ORT="$PWD/$PEERS/onnxruntime" >/dev/null
    cmake --build build --target bench_rank --target bench_item_parts --target bench_funnel
    local set
    for set in adult flights clicks:50000 glove100; do ./dev data "$set"; done
    "$PYTHON" bench/rank/run.py "$@"
}

main "$@"
