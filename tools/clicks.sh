#!/usr/bin/env bash
# clicks.sh N[:SEED]: makes data/clicks-N-SEED, a synthetic click log of N rows. The last tenth is test.tsv, the rest
# train.tsv. test.truth has the probabilities that the test's labels were drawn with.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

[[ $1 =~ ^([1-9][0-9]+)(:([0-9]+))?$ ]] || {
    echo "clicks: '$1' is not N[:SEED], such as 1000000:1, with N from 10" >&2
    exit 1
}
n=${BASH_REMATCH[1]} seed=${BASH_REMATCH[3]:-1}
train=$((n - n / 10))

begin "clicks-$n-$seed"
build/tools/clicks 0 "$train" "$seed" "$NEW/train.tsv"
build/tools/clicks "$train" "$((n - train))" "$seed" "$NEW/test.tsv" "$NEW/test.truth"
publish
tell "this is synthetic data"
