#!/usr/bin/env bash
# test_adult.sh SHORTLIST SOURCE: the command learns the census rows of ./dev data adult as well as it should: a model
# trained, saved and opened again ranks rows it has not seen, and training again gives the same file. ./dev test fetches
# the rows; where they are not there it is skipped.
set -euo pipefail
shortlist=$1
source=$2
data=$source/data/adult
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -f "$data/complete" ] || { echo "data/adult is not there: ./dev data adult makes it" && exit 77; }

train() {
    "$shortlist" train "$source/examples/specs/adult.json" "$data/train.csv" -o "$1" --epochs 4 --threads 1 \
        >"$work/said" 2>&1 || { cat "$work/said" && exit 1; }
}

train "$work/one.slr"
train "$work/two.slr"
cmp "$work/one.slr" "$work/two.slr" || { echo "two trainings of the same seed differ" && exit 1; }

"$shortlist" evaluate "$work/one.slr" "$data/test.csv" --json >"$work/evaluated"
figure() { sed -nE "s/.*\"$1\": *([-0-9.e+]+).*/\1/p" "$work/evaluated" | head -n 1; }
awk -v auc="$(figure auc)" -v logloss="$(figure logloss)" 'BEGIN {
    printf "AUC %.4f, logloss %.4f\n", auc, logloss
    exit !(auc >= 0.912 && logloss > 0.2 && logloss <= 0.31)
}' || { echo "it learned less than it should: AUC at least 0.912, logloss at most 0.31" && exit 1; }
