#!/usr/bin/env bash
# Speed beside another commit of this repository, by turns: searches, builds, ids, bytes (REV [SET...] --rounds N).
# Builds REV in build/old/ with the compiler and the options of build/; bench/old/run.py takes the turns.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
    printf 'bench old: %s\n' "$*" >&2
    exit 1
}

# The settings of build/ that decide what the compiler makes, as options of cmake.
carried() {
    sed -nE 's/^(CMAKE_(C|CXX)_(COMPILER|COMPILER_LAUNCHER|FLAGS|FLAGS_RELEASE)|CMAKE_BUILD_TYPE|BUILD_SHARED_LIBS|'\
'dnnl_ROOT|SHORTLIST_(NUMA|RANKER|ONEDNN)):[^=]*=(.*)$/-D\1=\5/p' build/CMakeCache.txt
}

# build_old COMMIT: its command in build/old/COMMIT/build. The sources are taken once: a commit does not change.
build_old() {
    local folder=build/old/$1 options
    if [ ! -d "$folder/tree" ]; then
        mkdir -p "$folder/tree.new"
        git archive "$1" | tar -x -C "$folder/tree.new"
        mv "$folder/tree.new" "$folder/tree"
    fi
    mapfile -t options < <(carried)
    cmake -S "$folder/tree" -B "$folder/build" -G Ninja "${options[@]}" \
        -DSHORTLIST_BUILD_{TESTS,EXAMPLES,BENCH}=OFF >"$folder/configure.log" 2>&1 ||
        die "$1 could not be configured; $folder/configure.log says why"
    cmake --build "$folder/build" --target shortlist_cli >"$folder/build.log" 2>&1 ||
        die "$1 could not be built; $folder/build.log says why"
}

main() {
    local commit word sets=()
    for word in "$@"; do
        [[ $word != -h && $word != --help ]] || exec python3 bench/old/run.py --help
    done
    [ $# -gt 0 ] && [[ $1 != -* ]] || die "give the commit to compare with: ./dev bench old REV [SET...]"
    commit=$(git rev-parse --verify --quiet "$1^{commit}") || die "this repository has no commit '$1'"
    shift
    while [ $# -gt 0 ] && [[ $1 != -* ]]; do sets+=("$1") && shift; done
    [ ${#sets[@]} -gt 0 ] || sets=(glove100 gloss384)
    grep -q '^CMAKE_BUILD_TYPE:[^=]*=Release$' build/CMakeCache.txt || die "build/ is no Release build; ./dev build"
    cmake --build build --target shortlist_cli >/dev/null
    echo "bench old: building $commit"
    build_old "$commit"
    for word in "${sets[@]}"; do
        [ -f "data/${word//:/-}/truth.ibin" ] || ./dev data "$word"
    done
    python3 bench/old/run.py "$commit" "${sets[@]}" "$@"
}

main "$@"
