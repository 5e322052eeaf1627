#!/usr/bin/env bash
# test_plain.sh CC: the library needs a C compiler and libc alone. Builds it static without OpenMP or the command,
# links a program to it, and runs that.
set -euo pipefail
cc=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$work/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON -DSHORTLIST_BUILD_CLI=OFF \
    -DSHORTLIST_BUILD_TESTS=OFF -DSHORTLIST_BUILD_BENCH=OFF -DSHORTLIST_BUILD_EXAMPLES=OFF >"$work/log"
grep -q 'OpenMP *left out' "$work/log" || { cat "$work/log" && exit 1; }
cmake --build "$work/build" --target shortlist -j 2 >"$work/log" || { cat "$work/log" && exit 1; }
"$cc" -I"$root/include" "$root/tests/consumer/consumer.c" "$work/build/libshortlist.a" -lm -o "$work/consumer"
"$work/consumer"
! ldd "$work/consumer" | grep -E 'gomp|libomp|numa|pmem|dnnl|mpi' || exit 1
echo "built and run with a C compiler alone"
