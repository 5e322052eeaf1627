#!/usr/bin/env bash
# Compiles the all-reduces for SimGrid: FOLDER/simulate computes sums, FOLDER/simulate_dry only their times.
# Usage: bench/cluster/smpi.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
cd "$1"
readonly FLAGS=(-O2 -std=gnu11 -DSL_SMPI -D_FILE_OFFSET_BITS=64 -I"$root" -I"$root/include")

command -v smpicc >/dev/null || { echo "bench cluster: no smpicc; install libsimgrid-dev" >&2 && exit 1; }
# smpicc makes macros of malloc and free, which base/ has as members. It has no MPI.
for file in "$root"/base/*.c; do
    cc "${FLAGS[@]}" -fPIC -c "$file" -o "base_$(basename "$file" .c).o"
done
rm -f base.a
ar rcs base.a base_*.o
for file in "$root"/cluster/comm/{comm,collect}.c "$root"/cluster/allreduce/*.c "$root"/bench/cluster/{simulate,wire_dry}.c; do
    smpicc "${FLAGS[@]}" -include "$root/bench/cluster/blocking.h" -c "$file" -o "cluster_$(basename "$file" .c).o"
done
mapfile -t objects < <(ls cluster_*.o | grep -v wire)
smpicc "${objects[@]}" cluster_wire.o base.a -lm -lpthread -o simulate
smpicc "${objects[@]}" cluster_wire_dry.o base.a -lm -lpthread -o simulate_dry
