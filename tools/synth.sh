#!/usr/bin/env bash
# synth.sh N:D[:SEED]: makes data/synth-N-D-SEED, a synthetic data set: base, 1,000 queries and their exact neighbours.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $1 =~ ^([1-9][0-9]*):([1-9][0-9]*)(:([0-9]+))?$ ]] || {
    echo "synth: '$1' is not N:D[:SEED], such as 1000000:100:1" >&2
    exit 1
}
n=${BASH_REMATCH[1]} dim=${BASH_REMATCH[2]} seed=${BASH_REMATCH[4]:-1}
out=data/synth-$n-$dim-$seed
new=$out.new
[ ! -f "$out/complete" ] || exit 0

trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir -p "$new"
build/tools/synth "$n" "$dim" "$seed" base "$new/base.fbin"
build/tools/synth 1000 "$dim" "$seed" queries "$new/queries.fbin"
echo "synth: exact neighbours of the queries"
build/shortlist truth "$new/base.fbin" "$new/queries.fbin" -k 100 --metric ip -o "$new/truth.ibin"
touch "$new/complete"
rm -rf "$out"
mv "$new" "$out"
echo "synth: ready in $out (synthetic data)"
