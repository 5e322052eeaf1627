#!/usr/bin/env bash
# Makes the golden files anew with another version: make.sh SOURCES BUILD, where BUILD is a Release build of the tree
# SOURCES with its shared library. Writes files.tar.xz and answers.txt beside this script. The files of the tree were
# made from commit f1b9868:
#   git archive f1b9868 | tar -x -C OLD && cmake -S OLD -B OLD/build -DCMAKE_BUILD_TYPE=Release && cmake --build OLD/build
#   tests/golden/make.sh OLD OLD/build
# Files with room hold a random identity, and so two runs differ in those.
set -euo pipefail
sources=$(realpath "${1:?give the sources of the version}")
build=$(realpath "${2:?give its build}")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/files"
cc -std=gnu11 -O1 -I "$sources/include" make.c -o "$work/make" -L "$build" -lshortlist -Wl,-rpath,"$build"
"$work/make" "$work/files"
mv "$work/files/answers.txt" answers.txt
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r -C "$work/files" -cf - . |
    xz -9e >files.tar.xz
