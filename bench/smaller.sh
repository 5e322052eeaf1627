#!/usr/bin/env bash
# How well distilled and pruned models rank beside the large one that they come from (--set adult|flights, --seeds N).
# Trains with the command and leaves the figures in bench/results/smaller-SET.json.
set -euo pipefail
cd "$(dirname "$0")/.."

main() {
    ./dev build shortlist_cli
    local set=adult
    [[ " $* " == *" flights "* ]] && set=flights
    [[ " $* " == *" --data"* ]] || ./dev data "$set"
    python3 bench/smaller/run.py "$@"
}

main "$@"
