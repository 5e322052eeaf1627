# making.sh: sourced by the scripts that make data sets. A set is made in data/NAME.new. A whole set
# takes the place of data/NAME, and has a file `complete` in it.
readonly CACHE=data/cache

# begin NAME: goes on only where the set is not there yet.
begin() {
    SET=$1 OUT=data/$1 NEW=data/$1.new
    [ ! -f "$OUT/complete" ] || exit 0
    trap 'rm -rf "$NEW"' EXIT
    rm -rf "$NEW"
    mkdir -p "$CACHE" "$NEW"
}

tell() { echo "$SET: $*"; }

# verify DIRECTORY COMPLAINT: checks the files in DIRECTORY against the sums on stdin.
verify() { (cd "$1" && sha256sum --status -c -) || { tell "$2" >&2 && exit 1; }; }

# cached FILE SUMS SIZE COMMAND...: COMMAND writes FILE into the directory that its last argument, added here, names,
# unless it is in the cache; then it is checked.
cached() {
    local file=$1 sums=$2 size=$3
    shift 3
    if [ ! -f "$CACHE/$file" ]; then
        tell "fetching $file ($size)"
        "$@" "$PWD/$NEW" >/dev/null
        mv "$NEW/$file" "$CACHE/$file"
    fi
    grep " $file\$" "$sums" |
        verify "$CACHE" "$CACHE/$file is not the package this was written for; remove it and run this again"
}

# venv DIRECTORY REQUIREMENTS PIP_OPTION...: a Python environment, made again when what it is made of changes.
venv() {
    local directory=$1 requirements=$2 key
    shift 2
    key=$(cat "$requirements" <(python3 --version) | sha256sum)
    [ "$(cat "$directory/key" 2>/dev/null)" != "$key" ] || return 0
    tell "making $directory"
    rm -rf "$directory"
    python3 -m venv "$directory"
    "$directory/bin/pip" install --quiet --disable-pip-version-check "$@" -r "$requirements"
    printf '%s' "$key" >"$directory/key"
}

# truth BASE QUERIES METRIC: the exact neighbours of the queries, in truth.ibin.
truth() {
    tell "exact neighbours of the queries"
    build/shortlist truth "$NEW/$1" "$NEW/$2" -k 100 --metric "$3" -o "$NEW/truth.ibin"
}

publish() {
    touch "$NEW/complete"
    rm -rf "$OUT"
    mv "$NEW" "$OUT"
    tell "ready in $OUT"
}
