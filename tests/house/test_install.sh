#!/usr/bin/env bash
# test_install.sh BUILD CC CXX RANKER: installs into an empty prefix, moves it, and uses it as a stranger would: by
# find_package and by pkg-config, from C and from C++, and by the command. RANKER says whether the build has one. The
# README's first program is compiled and run as it is written there.
set -euo pipefail
build=$1 cc=$2 cxx=$3 ranker=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v "$cxx" >/dev/null || { echo "no C++ compiler here" && exit 77; }
flags=(-Wall -Wextra -Wpedantic -Wconversion -Werror)

# use DIRECTORY: runs the programs in it, which end with 3 where the library says that it cannot rank.
use() {
    local program status
    for program in "$1/consumer_c" "$1/consumer_cxx"; do "$program"; done
    for program in "$1/ranking_c" "$1/ranking_cxx"; do
        status=0
        "$program" || status=$?
        [ "$status" -eq "$([ "$ranker" = ON ] && echo 0 || echo 3)" ] || { echo "$program: $status" && exit 1; }
    done
}

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
export CMAKE_PREFIX_PATH=$work/prefix
cmake -S "$here/consumer" -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
cmake --build "$work/cmake" >/dev/null
use "$work/cmake"

pc=$(find "$work/prefix" -name shortlist.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir shortlist)
mkdir "$work/pc"
for program in consumer ranking; do
    # pkg-config's output must stand; the words are meant to be split.
    # shellcheck disable=SC2046
    "$cc" "${flags[@]}" "$here/consumer/$program.c" -o "$work/pc/${program}_c" $(pkg-config --cflags --libs shortlist)
    # shellcheck disable=SC2046
    "$cxx" "${flags[@]}" "$work/cmake/$program.cpp" -o "$work/pc/${program}_cxx" $(pkg-config --cflags --libs shortlist)
done
(export LD_LIBRARY_PATH=$libdir && use "$work/pc")

mkdir "$work/first"
ln -s "$build" "$work/first/build"
ln -s "$here/../../include" "$work/first/include"
sed -n '/^```c$/,/^```$/p' "$here/../../README.md" | grep -v '^```' >"$work/first/first.c"
line=$(grep '^cc .*first\.c' "$here/../../README.md")
(cd "$work/first" && bash -ec "$cc ${flags[*]} ${line#cc }" >"$work/first/printed")
head -n 1 "$work/first/printed" | grep -x '42 1\.000' >/dev/null || { echo "the README's first program" && exit 1; }

cmp "$here/../../LICENSE" "$work/prefix/share/doc/shortlist/LICENSE" || { echo "the licence is not installed" && exit 1; }

# Nothing of the moved copy is looked for where it was built.
programs=("$work/prefix/bin/shortlist")
[ ! -x "$build/shortlist-mpi" ] || programs+=("$work/prefix/bin/shortlist-mpi")
"$work/prefix/bin/shortlist" cpu >/dev/null
readelf -d "${programs[@]}" "$libdir"/libshortlist.so | grep -E 'R(UN)?PATH' >"$work/paths"
! grep -vE '\[\$ORIGIN[^:]*\]' "$work/paths" || { echo "a path that does not move with the prefix" && exit 1; }
ldd "${programs[@]}" >"$work/needed"
! grep -E "libshortlist.*$build|not found" "$work/needed" || exit 1
if grep libdnnl "$work/needed" | grep -vE ' => /(usr/)?lib' >/dev/null; then
    grep "libdnnl.* => $work/prefix/" "$work/needed" >/dev/null || { echo "oneDNN is not the installed one" && exit 1; }
    [ -f "$work/prefix/share/doc/shortlist/onednn/LICENSE" ] || { echo "oneDNN came without its licence" && exit 1; }
fi
echo "installed, moved, found and run"
