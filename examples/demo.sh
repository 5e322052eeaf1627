#!/usr/bin/env bash
# Recall on real word vectors, by the commands a user would type. ./dev demo makes ready what it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly DATA=data/glove100 INDEX=build/glove100.sl
PATH=$PWD/build:$PATH

step() {
    printf '\n$ %s\n' "$*"
    "$@"
}

cat <<'END'
339,479 English words, each a vector of 100 numbers (GloVe). First an index over their 8-bit codes, with a bfloat16
copy of each vector that re-ranks the best of what the graph finds:
END
step shortlist build $DATA/base.fbin -o $INDEX --metric cosine --codes i8 --refine bf16

printf '\nWhat it holds:\n'
step shortlist info $INDEX

printf '\nOpened by mapping the file, nothing is loaded before it is asked for. The nearest words, by cosine:\n'
step build/examples/example_words $INDEX $DATA/words.txt king coffee python berlin guitar quickly

printf '\nRecall and speed on 2,000 words held out, one thread, against their exact neighbours:\n'
step shortlist eval $INDEX $DATA/queries.fbin $DATA/truth.ibin -k 10 --ef 32,64,128,256,512,1024 --threads 1

printf '\nThe same by exact search, which compares each query with every word:\n'
exact=$(step shortlist truth $DATA/base.fbin $DATA/queries.fbin -k 10 --metric cosine --threads 1 --json \
    -o build/glove100.ibin)
sed '$d' <<<"$exact" # the command; its JSON is the last line
seconds=$(sed -nE 's/.*"scan_s": *([0-9.e+-]+).*/\1/p' <<<"$exact")
awk -v seconds="$seconds" 'BEGIN { printf "recall 1.0000 at %.0f queries/s (2,000 queries over scan_s)\n", 2000 / seconds }'
