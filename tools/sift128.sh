#!/usr/bin/env bash
# Makes data/sift128: 472,309 SIFT descriptors of 128 bytes of 41 photographs that Debian packages ship, 2,000
# descriptors more as queries, and the queries' exact neighbours. The packages are those of Debian 12 (bookworm).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/making.sh

# Each file in the cache is the package and version that apt-get names so.
readonly PACKAGES=(lomiri-wallpapers-16.04=20.04.0-2 mate-backgrounds=1.26.0-1 palapeli-data=4:22.12.3-1
    plasma-workspace-wallpapers=4:5.27.5-2)

# fetch PACKAGE=VERSION DIRECTORY
fetch() {
    (cd "$2" && apt-get download -qq -o APT::Sandbox::User=root "$1") || {
        tell "apt-get has no $1, which is Debian 12's: run apt-get update, or put its .deb file into $CACHE" >&2
        exit 1
    }
}

begin sift128
venv .deps/vectors-venv tools/vectors-requirements.txt --no-deps --require-hashes
mkdir "$NEW/deb"
for package in "${PACKAGES[@]}"; do
    version=${package#*=}
    file=${package%%=*}_${version/:/%3a}_all.deb
    cached "$file" tools/vectors.sha256 "2 to 94 MB" fetch "$package"
    dpkg-deb -x "$CACHE/$file" "$NEW/deb"
done
tell "finding descriptors"
.deps/vectors-venv/bin/python -B tools/sift128.py "$NEW" "$NEW/deb"
rm -r "$NEW/deb"
truth base.u8bin queries.u8bin l2
publish
