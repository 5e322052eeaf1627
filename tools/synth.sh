#!/usr/bin/env bash
# synth.sh N:D[:SEED]: makes data/synth-N-D-SEED, a synthetic data set: base, 1,000 queries and their exact neighbours.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

[[ $1 =~ ^([1-9][0-9]*):([1-9][0-9]*)(:([0-9]+))?$ ]] || {
    echo "synth: '$1' is not N:D[:SEED], such as 1000000:100:1" >&2
    exit 1
}
n=${BASH_REMATCH[1]} dim=${BASH_REMATCH[2]} seed=${BASH_REMATCH[4]:-1}

begin "synth-$n-$dim-$seed"
build/tools/synth "$n" "$dim" "$seed" base "$NEW/base.fbin"
build/tools/synth 1000 "$dim" "$seed" queries "$NEW/queries.fbin"
truth base.fbin queries.fbin ip
publish
tell "this is synthetic data"
