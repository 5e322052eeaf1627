#!/usr/bin/env bash
# Makes data/glove100-ip: the vectors of data/glove100, as they are and not scaled to length 1, with their exact
# neighbours under inner product.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

begin glove100-ip
for file in base.fbin queries.fbin words.txt query_words.txt; do
    ln "data/glove100/$file" "$NEW/$file" 2>/dev/null || cp "data/glove100/$file" "$NEW/$file"
done
truth base.fbin queries.fbin ip
publish
