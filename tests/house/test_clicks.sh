#!/usr/bin/env bash
# test_clicks.sh CLICKS: the synthetic click logs are the same bytes on every machine and at any thread count. The logs
# are laid out as Criteo's, can be cut anywhere, and hold something to learn. Bad arguments are refused.
set -euo pipefail
clicks=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

readonly SUM=458b93cf20224564f28a17755173821b7ec682c94c42eff3e7bb2d29e9a04ff5
OMP_NUM_THREADS=1 "$clicks" 0 40000 5 one one.truth
OMP_NUM_THREADS=4 "$clicks" 0 40000 5 four
"$clicks" 36000 4000 5 tail
"$clicks" 0 1000 6 other

cmp one four
cmp tail <(tail -n 4000 one)
! cmp -s <(head -n 1000 one) other || { echo "the seed changes nothing" && exit 1; }
echo "$SUM  one" | sha256sum -c - || { echo "the rows are not those recorded" && exit 1; }

integer='(-?[0-9]+)?' category='([0-9a-f]{8})?'
layout=$(printf '[01]'; printf "\t$integer%.0s" {1..13}; printf "\t$category%.0s" {1..26})
! grep -vnxE "$layout" one || { echo "a row is not laid out as Criteo's" && exit 1; }
grep -qP '\t-[0-9]' one || { echo "no number is negative" && exit 1; }
grep -qP '\t\t' one || { echo "nothing is missing" && exit 1; }

# Share of clicks, and the AUC of the probabilities behind them, by the sum of the clicks' ranks.
paste one.truth <(cut -f 1 one) | LC_ALL=C sort -g | awk '
    $2 == 1 { clicks++; ranks += NR }
    END {
        share = clicks / NR; auc = (ranks - clicks * (clicks + 1) / 2) / (clicks * (NR - clicks))
        printf "clicks %.3f, AUC %.3f\n", share, auc
        exit !(NR == 40000 && share > 0.22 && share < 0.28 && auc > 0.78 && auc < 0.83)
    }' || { echo "there is not to learn what was planted" && exit 1; }

for bad in "0 0 1" "-1 4 1" "0 x 1" "0 4294967296 1" "0 4"; do
    # shellcheck disable=SC2086
    if "$clicks" $bad out 2>/dev/null; then echo "accepted: $bad" && exit 1; fi
done
! "$clicks" 0 4 1 /nowhere/out 2>message || exit 1
grep -q /nowhere/out message
echo "synthetic clicks as recorded"
