#!/usr/bin/env bash
# Folders depend one way. Reads the #include lines and fails where one points against the order:
#     base <- distance, storage <- hnsw <- recommend -> ranker -> storage -> base
# cluster, cli, bindings and examples see the public headers only. Files of other projects come in angle brackets.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

declare -A may=(
    [include]="" [base]="" [distance]="base" [storage]="base" [hnsw]="base distance storage" [ranker]="base storage"
    [recommend]="base distance storage hnsw ranker" [cluster]="" [cli]="" [bindings]="" [examples]=""
)

# offences TREE: one line for each #include against the order.
offences() {
    local tree=$1 room line file name target
    for room in "${!may[@]}"; do
        [ -d "$tree/$room" ] || continue
        while IFS= read -r line; do
            file=${line%%:*}
            name=${line#*\"}
            name=${name%%\"*}
            case $name in
            *..*) echo "$file: \"$name\" climbs out of its folder" && continue ;;
            shortlist.h | shortlist_rank.h | shortlist_mpi.h) continue ;;
            */*) target=${name%%/*} ;;
            *) target=$room ;;
            esac
            # A folder inside the file's own room, as bindings/python/src has.
            [ -e "$tree/$(dirname "$file")/$name" ] && target=$room
            [ "$target" = "$room" ] && continue
            [[ " ${may[$room]} " == *" $target "* ]] || echo "$file: $room may not include \"$name\""
        done < <(cd "$tree" && grep -rHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$room" \
            --include='*.c' --include='*.h' --include='*.inc' --include='*.cpp' --include='*.hpp' || true)
    done
}

# The check itself is checked first: a tree with one arrow the wrong way, and one the right way, in each room.
fixture=$(mktemp -d)
trap 'rm -rf "$fixture"' EXIT
mkdir -p "$fixture"/{base,storage,hnsw,cli,examples,bindings/python/src}
printf '#include "base/status.h"\n#include "storage/store.h"\n' >"$fixture/hnsw/good.c"
printf '#  include "shortlist.h"\n#include "own.h"\n' >"$fixture/cli/good.c"
printf '#include "hnsw/graph.h"\n' >"$fixture/base/bad.c"
printf ' # include "distance/kernels.h"\n' >"$fixture/storage/bad.h"
printf '#include "base/memory.h"\n' >"$fixture/cli/bad.c"
printf '#include "../base/memory.h"\n' >"$fixture/examples/bad.c"
printf '#include "hnsw/graph.h"\n' >"$fixture/bindings/python/src/bad.cpp"
found=$(offences "$fixture")
if [ "$(grep -c . <<<"$found")" -ne 5 ] || grep -q good <<<"$found"; then
    printf 'the check misjudges its own fixture; it found:\n%s\n' "$found"
    exit 1
fi

found=$(offences "$root")
[ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
echo "every #include follows the order"
