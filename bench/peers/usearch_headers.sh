# usearch's npm package, whose C++ headers and kernels bench/peers/native needs; to be sourced. No package for Python has
# them.
readonly USEARCH_VERSION=2.26.2
readonly USEARCH_SUM=cb4ed21906924412cb928ac50bc3bdf24b75f6f5840d44101c8d54bfbb424c81

# usearch_headers FOLDER: fetches the package by npm into FOLDER and unpacks it; nothing of it is installed.
usearch_headers() {
    local package=$1/usearch-$USEARCH_VERSION.tgz unpacked=$1/usearch-$USEARCH_VERSION
    if [ ! -f "$package" ]; then
        (cd "$1" && npm pack --silent "usearch@$USEARCH_VERSION" >/dev/null) ||
            die "npm could not fetch the package of usearch $USEARCH_VERSION"
    fi
    echo "$USEARCH_SUM  $package" | sha256sum --check --quiet || die "$package is not the one these numbers are \
compared with; remove it and run this again"
    [ -f "$unpacked/include/usearch/index_dense.hpp" ] && return 0
    mkdir -p "$unpacked"
    tar -xzf "$package" -C "$unpacked" --strip-components=1
}
