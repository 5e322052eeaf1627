#!/usr/bin/env bash
# test_plain.sh CC: the library needs a C compiler and libc alone. Builds it static without OpenMP, libnuma, cJSON,
# xxHash or the command, links programs to it, and runs those. Ranking is then not supported, and each function of it
# says so.
set -euo pipefail
cc=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$work/build" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON -DSL_NUMA_LIBRARY= -DSL_PMEM_LIBRARY= -DSL_CJSON_LIBRARY= -DSL_XXHASH_INCLUDE= \
    -DSHORTLIST_BUILD_CLI=OFF -DSHORTLIST_BUILD_TESTS=OFF -DSHORTLIST_BUILD_BENCH=OFF \
    -DSHORTLIST_BUILD_EXAMPLES=OFF >"$work/log"
for part in OpenMP libnuma ranker oneDNN MPI; do
    grep -q "$part *left out" "$work/log" || { cat "$work/log" && exit 1; }
done
cmake --build "$work/build" --target shortlist -j 2 >"$work/log" || { cat "$work/log" && exit 1; }

link() { "$cc" -I"$root/include" "$1" "$work/build/libshortlist.a" -lm -o "$2"; }
link "$root/tests/house/consumer/consumer.c" "$work/consumer"
"$work/consumer"
! ldd "$work/consumer" | grep -E 'gomp|libomp|numa|pmem|dnnl|mpi|cjson|xxhash' || exit 1

link "$root/tests/house/consumer/ranking.c" "$work/ranking"
status=0
"$work/ranking" 2>"$work/message" || status=$?
[ "$status" -eq 3 ] && grep -q 'install cJSON and xxHash' "$work/message" || { cat "$work/message" && exit 1; }

# All functions of the header are there.
functions=$(tr '\n' ' ' <"$root/include/shortlist_rank.h" | grep -oE 'SL_API [^;{(]*\(' | grep -oE 'sl_[a-z0-9_]+ *\($' |
    tr -d ' (')
[ "$(wc -l <<<"$functions")" -gt 40 ] || { echo "the header's functions were not found" && exit 1; }
printf '#include <shortlist_rank.h>\ntypedef void (*fn)(void);\nfn all[] = {%s};\nint main(void) { return 0; }\n' \
    "$(sed 's/.*/(fn)&,/' <<<"$functions")" >"$work/all.c"
link "$work/all.c" "$work/all"
echo "built and run with a C compiler alone"
