#!/usr/bin/env bash
# test_synth.sh SYNTH: the synthetic data sets are the same bytes on every machine and at any thread count. A longer set
# begins with the rows of a shorter one. Bad arguments are refused.
set -euo pipefail
synth=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

readonly SUM=9861a426de64a322d8c3bb01a2bccb8df3b80aa5d3566d4944ad1b86dac99f37
OMP_NUM_THREADS=1 "$synth" 3000 37 5 base one
OMP_NUM_THREADS=4 "$synth" 3000 37 5 base four
"$synth" 1000 37 5 base short
"$synth" 3000 37 6 base other
"$synth" 3000 37 5 queries queries

cmp one four
cmp <(tail -c +9 short) <(tail -c +9 one | head -c $((1000 * 37 * 4)))
[ "$(stat -c %s one)" -eq $((8 + 3000 * 37 * 4)) ]
! cmp -s one other || { echo "the seed changes nothing" && exit 1; }
! cmp -s one queries || { echo "the queries are the base" && exit 1; }
echo "$SUM  one" | sha256sum -c - || { echo "the rows are not those recorded" && exit 1; }

for bad in "0 4 1 base" "4 0 1 base" "4 65537 1 base" "4294967296 4 1 base" "x 4 1 base" "4 4 1 rows" "-1 4 1 base"; do
    # shellcheck disable=SC2086
    if "$synth" $bad out 2>/dev/null; then echo "accepted: $bad" && exit 1; fi
done
! "$synth" 4 4 1 base /nowhere/out 2>message || exit 1
grep -q /nowhere/out message
echo "synthetic data as recorded"
