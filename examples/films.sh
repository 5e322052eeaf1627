#!/usr/bin/env bash
# From recall to ranking on MovieLens-100k, by the Python module. ./dev demo makes ready what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PYTHON=.venv/bin/python
[ -x "$PYTHON" ] && [ -f data/movielens100k/complete ] || {
    echo "films.sh: ./dev demo makes ready the Python module and the data, and runs this" >&2
    exit 1
}
key=$(cat examples/films-requirements.txt <($PYTHON --version) | sha256sum)
if [ "$(cat .venv/films-key 2>/dev/null)" != "$key" ]; then
    echo "installing what examples/films.py needs into .venv"
    $PYTHON -m pip install --quiet --disable-pip-version-check -r examples/films-requirements.txt
    printf '%s' "$key" >.venv/films-key
fi

printf '\nFilms for people: 80,000 ratings of MovieLens-100k to learn from, 20,000 held out.\n'
# ALS is many small products: BLAS threads of its own would only get in the way.
OPENBLAS_NUM_THREADS=1 $PYTHON examples/films.py
