#!/usr/bin/env bash
# docs/FORMAT.md and storage/format.h give every field of the header and of the section table the same offset.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# STRUCT.FIELD OFFSET of each line, sorted. The page's first two tables are the header's and the section table's.
in_code() { sed -nE 's/^SL_AT\((sl_file_[a-z]+), ([a-z0-9_]+), ([0-9]+)\);$/\1.\2 \3/p' "$root/storage/format.h" | sort; }
in_page() {
    awk -F'|' '/^\| Offset \| Type \| Field/ { table++ }
        table <= 2 && $2 ~ /^ *[0-9]+ *$/ && $4 ~ /^ [a-z0-9_]+ $/ {
            gsub(/ /, "", $2); gsub(/ /, "", $4)
            print (table == 1 ? "sl_file_header." : "sl_file_section.") $4, $2
        }' "$root/docs/FORMAT.md" | sort
}

in_code | grep -q '^sl_file_header.crc32c 4092$' || { echo "storage/format.h was not understood" && exit 1; }
# The magic, at 0, and the entry's reserved word need no assertion: nothing could be before, or after, them.
differences=$(diff <(in_code) <(in_page | grep -v -e '^sl_file_header.magic 0$' -e '^sl_file_section.reserved 28$')) ||
    { printf 'storage/format.h (<) and docs/FORMAT.md (>) differ:\n%s\n' "$differences" && exit 1; }
echo "docs/FORMAT.md and storage/format.h agree"
