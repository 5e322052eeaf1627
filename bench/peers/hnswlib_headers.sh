# hnswlib's source package, whose headers bench/peers/native needs; to be sourced.
readonly HNSWLIB_VERSION=0.8.0
readonly HNSWLIB_SUM=cb6d037eedebb34a7134e7dc78966441dfd04c9cf5ee93911be911ced951c44c

# hnswlib_headers PYTHON FOLDER: fetches the package by pip into FOLDER and unpacks it; nothing of it is installed.
hnswlib_headers() {
    local package=$2/hnswlib-$HNSWLIB_VERSION.tar.gz
    if [ ! -f "$package" ]; then
        "$1" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary hnswlib \
            --dest "$2" "hnswlib==$HNSWLIB_VERSION" ||
            die "pip could not download the source package of hnswlib $HNSWLIB_VERSION"
    fi
    echo "$HNSWLIB_SUM  $package" | sha256sum --check --quiet || die "$package is not the one these numbers are \
compared with; remove it and run this again"
    [ -f "$2/hnswlib-$HNSWLIB_VERSION/hnswlib/hnswalg.h" ] || tar -xzf "$package" -C "$2"
}
