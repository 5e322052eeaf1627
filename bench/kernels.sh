#!/usr/bin/env bash
# Kernels: ns a score by tier, dim and place, and side by side with SimSIMD and NumKong (--quick, --json FILE).
# Takes the peers' headers from their source packages and compiles them for this machine. The numbers are also left in
# bench/results/kernels.json, unless --json names another file.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PEERS=build/peers

die() {
    printf 'bench kernels: %s\n' "$*" >&2
    exit 1
}

# headers NAME VERSION SHA256: the source package, by pip; nothing of it is installed.
headers() {
    local name=$1 version=$2 sum=$3 package=$PEERS/$1-$2.tar.gz
    if [ ! -f "$package" ]; then
        python3 -m venv "$PEERS/pip" || die "python3 cannot make a virtual environment; install python3-venv"
        "$PEERS/pip/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$name" \
            --dest "$PEERS" "$name==$version" || die "pip could not download the source package of $name $version"
    fi
    echo "$sum  $package" | sha256sum --check --quiet || die "$package is not the one these numbers are compared with; \
remove it and run this again"
    [ -d "$PEERS/$name-$version/include" ] || tar -xzf "$package" -C "$PEERS"
}

main() {
    mkdir -p "$PEERS"
    headers simsimd 6.5.16 0a005c6e2dacec83f235a747f7dbecca46b5d4d1e183ecc1929ca556ee7d7564
    headers numkong 7.8.6 c0c930acdb0f1c3839ab43aaa15368b9266c95a08abf20d51d335abc4ff6db09
    cmake -S . -B build -DSHORTLIST_BUILD_BENCH=ON \
        -DSHORTLIST_SIMSIMD="$PWD/$PEERS/simsimd-6.5.16/include" -DSHORTLIST_SIMSIMD_VERSION=6.5.16 \
        -DSHORTLIST_NUMKONG="$PWD/$PEERS/numkong-7.8.6/include" -DSHORTLIST_NUMKONG_VERSION=7.8.6 >/dev/null
    cmake --build build --target bench_kernels
    mkdir -p bench/results
    [[ " $* " == *" --json "* ]] || set -- "$@" --json bench/results/kernels.json
    build/bench/kernels/bench_kernels "$@"
}

main "$@"
