#!/usr/bin/env bash
# test_install.sh BUILD CC CXX: installs into an empty prefix, moves it, and uses it as a stranger would: by
# find_package and by pkg-config, from C and from C++, and by the command.
set -euo pipefail
build=$1 cc=$2 cxx=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v "$cxx" >/dev/null || { echo "no C++ compiler here" && exit 77; }
flags=(-Wall -Wextra -Wpedantic -Wconversion -Werror)

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
export CMAKE_PREFIX_PATH=$work/prefix
cmake -S "$here/consumer" -B "$work/cmake" -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
cmake --build "$work/cmake" >/dev/null
"$work/cmake/consumer_c"
"$work/cmake/consumer_cxx"

pc=$(find "$work/prefix" -name shortlist.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir shortlist)
# What pkg-config says must stand; the words are meant to be split.
# shellcheck disable=SC2046
"$cc" "${flags[@]}" "$here/consumer/consumer.c" -o "$work/by_c" $(pkg-config --cflags --libs shortlist)
# shellcheck disable=SC2046
"$cxx" "${flags[@]}" "$work/cmake/consumer.cpp" -o "$work/by_cxx" $(pkg-config --cflags --libs shortlist)
LD_LIBRARY_PATH=$libdir "$work/by_c"
LD_LIBRARY_PATH=$libdir "$work/by_cxx"

"$work/prefix/bin/shortlist" cpu >/dev/null
! ldd "$work/prefix/bin/shortlist" | grep -E "libshortlist.*($build|not found)" || exit 1
echo "installed, moved, found and run"
