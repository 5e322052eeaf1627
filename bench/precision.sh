#!/usr/bin/env bash
# INT8 and bf16 beside ONNX Runtime, OpenVINO with NNCF, and PyTorch: speed, accuracy, bytes (--quick, --only PART).
# Takes the peers from their packages, as bench/rank.sh does; a peer that cannot be had is told of and left out.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PEERS=build/peers
readonly VENV=$PEERS/precision-venv
readonly PYTHON=$VENV/bin/python
# Ours needs onnx; the others are the peers, each left out where it cannot be installed.
readonly NEEDED=(onnx==1.23.2 'matplotlib>=3.7,<4' numpy)
readonly OTHERS=(onnxruntime==1.31.1 openvino==2026.4.1 nncf==3.4.0 torch==2.15.0)

die() {
    printf 'bench precision: %s\n' "$*" >&2
    exit 1
}

environment() {
    local key="${NEEDED[*]} ${OTHERS[*]}" package all=1
    if [ "$(cat "$VENV/key" 2>/dev/null)" != "$key" ]; then
        rm -rf "$VENV"
        python3 -m venv "$VENV" || die "python3 cannot make a virtual environment; install python3-venv"
        echo "bench precision: fetching $key (some 4 GB)"
        "$PYTHON" -m pip install --quiet --disable-pip-version-check "${NEEDED[@]}"
        for package in "${OTHERS[@]}"; do
            "$PYTHON" -m pip install --quiet --disable-pip-version-check "$package" ||
                { all=0 && echo "bench precision: without $package"; }
        done
        # The next run tries again to get a library that is missing.
        [ $all = 0 ] || printf '%s' "$key" >"$VENV/key"
    fi
    "$PYTHON" -m pip install --quiet --disable-pip-version-check ./bindings/python
}

main() {
    mkdir -p "$PEERS"
    environment
    local site ort="" openvino=""
    site=$(cd "$VENV"/lib/python*/site-packages && pwd)
    if bash bench/rank/header.sh "$PEERS/onnxruntime"; then ort=$PWD/$PEERS/onnxruntime; fi
    [ ! -d "$site/openvino/include" ] || openvino=$site/openvino/include
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON -DSHORTLIST_ORT="$ort" -DSHORTLIST_OPENVINO="$openvino" >/dev/null
    cmake --build build --target bench_precision --target bench_mixed --target bench_tables --target shortlist_cli
    local set
    for set in adult movielens100k flights clicks:50000; do ./dev data "$set"; done
    "$PYTHON" bench/precision/run.py "$@"
}

main "$@"
