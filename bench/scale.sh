#!/usr/bin/env bash
# Builds, memory, files and searches from 10,000 to a million vectors or more, and the laws they follow (--most N).
# bench/scale/run.py makes synthetic sets and measures; bench/scale/table.py --write puts the tables in docs/SCALE.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/peers/venv.sh

readonly VENV=build/scale-venv

die() {
    printf 'bench scale: %s\n' "$*" >&2
    exit 1
}

# The package that draws the picture, in the version of ./dev bench peers.
environment() {
    local key wanted
    wanted=$(grep -E '^matplotlib==' bench/peers/requirements.txt)
    key=$(printf '%s' "$wanted" | cat - <(python3 --version) | sha256sum)
    venv_is_new "$VENV" "$key" || return 0
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$wanted" || die "pip could not install $wanted"
    printf '%s' "$key" >"$VENV/key"
}

main() {
    local word
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/scale/options.py --help
    done
    environment
    cmake --build build --target shortlist_cli synth >/dev/null || die "the command was not built; ./dev build says why"
    "$VENV/bin/python" -B bench/scale/run.py "$@"
}

main "$@"
