#!/usr/bin/env bash
# Folders depend one way, in what they include and in what they call: see `may`. So do the files of a folder: no ring of
# files exists anywhere. The arguments are folders of object files, each with the folder of the tree that it mirrors:
# OBJECTS=FOLDER, without a name for the whole tree. The symbols in the files tell the calls. Files of other projects come
# in angle brackets.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
: "${2:?give folders of object files: those of the library, of the command, of shortlist-mpi}"

# The rooms that each room may include and call besides itself. cli/, bindings/ and examples/ also see the public
# headers. A header alone can be a room: the loops of ranker/net use the lanes of floats, and nothing else of distance/.
lanes=distance/float_lanes.h
floor="base distance distance/codec storage"
ranked="base storage"
indexed="$floor hnsw/graph hnsw/place hnsw/search hnsw/construct hnsw/tune hnsw/index"
declare -A may=(
    [include]="" [base]="" ["$lanes"]="base" [distance]="base $lanes" [distance/codec]="base distance" [storage]="base"
    [ranker]="base" [ranker/features]="base" [ranker/net]="base $lanes ranker/features"
    [ranker/model]="$ranked ranker/features ranker/net"
    [ranker/train]="$ranked ranker/features ranker/net ranker/model"
    [ranker/prune]="$ranked ranker/features ranker/net ranker/model ranker/train"
    [ranker/quantise]="$ranked ranker/features ranker/net ranker/model ranker/train"
    [hnsw/graph]="$floor"
    [hnsw/place]="$floor hnsw/graph"
    [hnsw/search]="$floor hnsw/graph hnsw/place"
    [hnsw/construct]="$floor hnsw/graph hnsw/place hnsw/search"
    [hnsw/tune]="$floor hnsw/graph hnsw/place hnsw/search hnsw/construct"
    [hnsw/index]="$floor hnsw/graph hnsw/place hnsw/search hnsw/construct"
    [hnsw/foreign]="$floor hnsw/graph hnsw/place hnsw/search hnsw/construct hnsw/index"
    [recommend]="$floor ranker/features ranker/net ranker/model hnsw/graph hnsw/search hnsw/index"
    [cli/common]="" [cli/files]="cli/common" [cli/index]="cli/common cli/files"
    [cli/search]="cli/common cli/files cli/index" [cli/ranker]="cli/common cli/files cli/index"
    [cli/recommend]="cli/common cli/files cli/index cli/ranker"
    [cli/inspect]="cli/common cli/files cli/index cli/ranker"
    [cli]="cli/common cli/files cli/index cli/search cli/ranker cli/recommend cli/inspect"
    [cluster/comm]="base" [cluster/allreduce]="base cluster/comm"
    [cluster/train]="$ranked ranker/features ranker/net ranker/model ranker/train cluster/comm cluster/allreduce"
    [cluster/construct]="$indexed cluster/comm"
    [cluster/search]="$indexed cluster/comm"
    [cluster/commands]="base storage cli/common cli/files cli/index cli/search cli/ranker hnsw/search hnsw/construct hnsw/index \
ranker/model cluster/comm cluster/allreduce cluster/train cluster/construct cluster/search"
    [bindings]="" [examples]=""
)

# Rooms of hnsw/ that a room may include, where these are fewer than the rooms that it may call.
declare -A sees=([recommend]="hnsw/search/accessors.h hnsw/search/topk.h")

# room_of FILE: sets `room` to the longest name in `may` that the path begins with; to nothing for a file outside of all.
# No subshell: thousands of calls ask.
room_of() {
    room=$1
    until [ -n "${may[$room]+x}" ]; do
        [[ $room == */* ]] || { room= && return 0; }
        room=${room%/*}
    done
}

# allowed FROM TO: whether a room may use another.
allowed() { [ "$1" = "$2" ] || [[ " ${may[$1]} " == *" $2 "* ]]; }

# seen FROM HEADER: whether a room may include a header of a room that it may use.
seen() { [[ $2 != hnsw/* || -z "${sees[$1]+x}" || " ${sees[$1]} " == *" $2 "* ]]; }

# wrong_includes TREE: one line for each #include against the order, and for each file in no room.
wrong_includes() {
    local tree=$1 line file name from target room
    while IFS= read -r line; do
        file=${line%%:*}
        name=${line#*\"}
        name=${name%%\"*}
        room_of "$file"
        from=$room
        [ -n "$from" ] || { echo "$file: lies on no floor" && continue; }
        case $name in
        *..*) echo "$file: \"$name\" climbs out of its folder" && continue ;;
        shortlist.h | shortlist_import.h | shortlist_rank.h | shortlist_mpi.h) continue ;;
        esac
        # A folder inside the file's own room, as bindings/python/src has.
        [ -e "$tree/${file%/*}/$name" ] && continue
        room_of "$name"
        target=$room
        [[ $name == */* ]] || target=$from
        [ -n "$target" ] && allowed "$from" "$target" && seen "$from" "$name" ||
            echo "$file: $from may not include \"$name\""
    done < <(cd "$tree" && grep -rHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' base distance storage hnsw ranker \
        recommend cluster cli bindings examples include \
        --include='*.c' --include='*.h' --include='*.inc' --include='*.cpp' --include='*.hpp' 2>/dev/null || true)
}

# calls: reads `nm -A` of object files, named from the root of the tree; one line for each call between two files: the
# caller, the symbol, the file that has it.
calls() {
    awk '
        { at = index($0, ":"); file = substr($0, 1, at - 1); kind = $(NF - 1); symbol = $NF }
        kind ~ /^[TDBRVWC]$/ { home[symbol] = file }
        kind == "U" { needs[++count] = file; need[count] = symbol }
        END { for (i = 1; i <= count; i++) if (need[i] in home && home[need[i]] != needs[i])
                  print needs[i], need[i], home[need[i]] }' | sort -u
}

# wrong_calls: reads what `calls` writes; one line for each call against the order.
wrong_calls() {
    local from to file symbol other room
    while read -r file symbol other; do
        room_of "$file"
        from=$room
        room_of "$other"
        to=$room
        [ -n "$from" ] && [ -n "$to" ] || { echo "$file or $other: lies on no floor" && continue; }
        allowed "$from" "$to" || echo "$file: $from may not use $symbol of $other"
    done
}

# included TREE: one line for each #include, and each import of a Python module, of a file of the same folder: both files,
# without their endings. A header and the source of its name are one.
included() {
    (cd "$1" && grep -rHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' base distance storage hnsw ranker recommend \
        cluster cli bindings --include='*.c' --include='*.h' --include='*.cpp' --include='*.hpp' 2>/dev/null || true) |
        sed -E 's/^([^:]*):[^"]*"([^"]*)".*/\1 \2/' |
        awk '{ folder = $1; sub("/[^/]*$", "", folder)
               print $1, index($2, "/") ? $2 : folder "/" $2 }'
    (cd "$1" && grep -rHE '^[[:space:]]*from \.[a-z_]* import ' bindings --include='*.py' 2>/dev/null || true) |
        sed -E 's/^([^:]*):[[:space:]]*from \.([a-z_]*) import (.*)/\1 \2 \3/' |
        awk '{ folder = $1; sub("/[^/]*$", "", folder)
               if ($2 ~ /^[a-z_]+$/ && $1 !~ /__init__/) print $1, folder "/" $2 }'
}

# rings: reads what `calls` and `included` write; the files of rings within a folder.
rings() {
    awk 'function stem(file) { sub(/\.o$/, "", file); sub(/\.[a-z]+$/, "", file); return file }
         function folder(file) { sub("/[^/]*$", "", file); return file }
         { from = stem($1); to = stem($NF) }
         from != to && folder(from) == folder(to) { print from, to }' | sort -u | tsort 2>&1 >/dev/null | sed 's/^tsort: *//' || true
}

# The checks are checked first: a tree with one arrow the wrong way, and one the right way, in each room.
fixture=$(mktemp -d)
trap 'rm -rf "$fixture"' EXIT
mkdir -p "$fixture"/{base,storage,ranker/net,ranker/model,distance/codec,hnsw/graph,hnsw/search,recommend,cli,examples} \
    "$fixture"/{bindings/python/src,cluster/comm,cluster/commands}
printf '#include "cli/common/report.h"\n#include "cluster/comm/comm.h"\n' >"$fixture/cluster/commands/good.c"
printf '#include "ranker/model/model.h"\n' >"$fixture/cluster/comm/bad.c"
printf '#include "cluster/comm/comm.h"\n' >"$fixture/storage/bad.c"
printf '#include "base/status.h"\n#include "storage/store.h"\n' >"$fixture/hnsw/graph/good.c"
printf '#  include "shortlist.h"\n#include "own.h"\n' >"$fixture/cli/good.c"
printf '#include "hnsw/graph/index.h"\n' >"$fixture/hnsw/search/good.c"
printf '#include "hnsw/search/topk.h"\n' >"$fixture/recommend/good.c"
printf '#include "distance/kernels.h"\n' >"$fixture/distance/codec/good.c"
printf '#include "distance/codec/codec.h"\n' >"$fixture/distance/bad.c"
printf '#include "distance/float_lanes.h"\n' >"$fixture/ranker/net/good.c"
printf '#include "distance/kernels.h"\n' >"$fixture/ranker/net/bad.c"
printf '#include "ranker/net/net.h"\n' >"$fixture/ranker/model/good.c"
printf '#include "ranker/train/train.h"\n' >"$fixture/ranker/model/bad.c"
printf '#include "hnsw/search/walk.h"\n' >"$fixture/hnsw/graph/bad.c"
printf '#include "hnsw/graph/index.h"\n' >"$fixture/recommend/bad.c"
printf '#include "hnsw/graph/index.h"\n' >"$fixture/hnsw/bad.c"
printf '#include "hnsw/graph/index.h"\n' >"$fixture/base/bad.c"
printf ' # include "distance/kernels.h"\n' >"$fixture/storage/bad.h"
printf '#include "base/memory.h"\n' >"$fixture/cli/bad.c"
printf '#include "../base/memory.h"\n' >"$fixture/examples/bad.c"
printf '#include "hnsw/graph/index.h"\n' >"$fixture/bindings/python/src/bad.cpp"
found=$(wrong_includes "$fixture")
if [ "$(grep -c . <<<"$found")" -ne 13 ] || grep -q good <<<"$found"; then
    printf 'the check of includes misjudges its own fixture; it found:\n%s\n' "$found"
    exit 1
fi
# A ring: search calls graph, as it may, and graph calls back.
found=$(calls <<'END' | wrong_calls
hnsw/graph/ids.c.o:0000000000000010 T sl_id_find
hnsw/graph/ids.c.o:                 U sl_walk_run
hnsw/graph/ids.c.o:                 U memcpy
hnsw/search/walk.c.o:0000000000000020 T sl_walk_run
hnsw/search/walk.c.o:                 U sl_id_find
END
)
if [ "$found" != "hnsw/graph/ids.c.o: hnsw/graph may not use sl_walk_run of hnsw/search/walk.c.o" ]; then
    printf 'the check of calls misjudges its own fixture; it found:\n%s\n' "$found"
    exit 1
fi
# A ring of calls, one of an include and a call, and one of imports. Other files use each other one way.
mkdir -p "$fixture/ring"/{base,bindings}
printf '#include "base/low.h"\n#include "base/f.h"\n' >"$fixture/ring/base/e.c"
printf '#include "base/e.h"\n' >"$fixture/ring/base/f.h"
printf 'from ._b import x\n' >"$fixture/ring/bindings/_a.py"
printf 'def f():\n    from ._a import y\n' >"$fixture/ring/bindings/_b.py"
printf 'from ._a import z\n' >"$fixture/ring/bindings/_c.py"
ring=$(printf '%s\n' 'base/a.c.o sl_b base/b.c.o' 'base/b.c.o sl_a base/a.c.o' 'base/c.c.o sl_a base/a.c.o')
found=$({ included "$fixture/ring" && echo "$ring"; } | rings)
for file in base/a base/b base/e base/f bindings/_a bindings/_b; do
    grep -qx "$file" <<<"$found" || { printf 'the check of rings misses %s:\n%s\n' "$file" "$found" && exit 1; }
done
if grep -qE 'base/(c|low)|_c' <<<"$found" || [ -n "$(sed 1d <<<"$ring" | rings)" ]; then
    printf 'the check of rings finds more than its fixture has:\n%s\n' "$found"
    exit 1
fi

found=$(wrong_includes "$root")
[ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
# A build folder keeps the objects of sources that were moved or removed: those count no more.
# symbols_of OBJECTS FOLDER: `nm -A` of the object files, named from the root of the tree, where OBJECTS mirrors FOLDER.
symbols_of() {
    local folder=${2:+$2/} object
    (cd "$1" && find . -name '*.c.o' -printf '%P\n') | sort | while IFS= read -r object; do
        [ ! -f "$root/$folder${object%.o}" ] || echo "$object"
    done | (cd "$1" && xargs nm -A) | sed "s|^|$folder|"
}
symbols=$(for pair; do symbols_of "${pair%=*}" "${pair##*=}"; done)
for folder in hnsw $(printf '%s\n' "${@##*=}" | sort -u); do
    [ "$(grep "^$folder/" <<<"$symbols" | cut -d: -f1 | sort -u | wc -l)" -ge \
        "$(cd "$root" && find "$folder" -name '*.c' | wc -l)" ] ||
        { echo "$* have fewer object files than $folder/ has sources; build all" && exit 1; }
done
# The command sees the library's public functions, as the linker has checked: so its calls of the library are left out.
grep -v '^cluster/' <<<"$symbols" | grep -v '^cli/' | calls >"$fixture/calls"
grep '^cli/' <<<"$symbols" | calls >>"$fixture/calls"
if grep -q '^cluster/' <<<"$symbols"; then calls <<<"$symbols" | grep '^cluster/' >>"$fixture/calls"; fi
found=$(wrong_calls <"$fixture/calls")
[ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
found=$({ cat "$fixture/calls" && included "$root"; } | rings)
[ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
echo "every #include and every call follows the order"
