# For scripts that source it and have die().

# venv_is_new VENV KEY: makes an empty environment and succeeds, unless one of this key is there. The caller installs
# its packages and writes KEY to VENV/key.
venv_is_new() {
    [ "$(cat "$1/key" 2>/dev/null)" != "$2" ] || return 1
    rm -rf "$1"
    python3 -m venv "$1" || die "python3 cannot make a virtual environment; install python3-venv"
}

# apart_venv VENV NEEDS: the environment of a file of requirements. Fails where pip cannot install it.
apart_venv() {
    local key
    key=$(cat "$2" <(python3 --version) | sha256sum)
    venv_is_new "$1" "$key" || return 0
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir -r "$2" || return 1
    printf '%s' "$key" >"$1/key"
}

# some_peers VENV: hnswlib, Faiss, usearch, numpy and matplotlib of bench/peers/requirements.txt.
some_peers() {
    local needs=$1.txt key
    grep -E '^(--no-binary|hnswlib|faiss-cpu|usearch|numpy|matplotlib)' bench/peers/requirements.txt >"$needs"
    key=$(cat "$needs" <(python3 --version) | sha256sum)
    venv_is_new "$1" "$key" || return 0
    echo "fetching the libraries of bench/peers/requirements.txt"
    # Without the cache, so that hnswlib is compiled here and for this machine.
    env -u HNSWLIB_NO_NATIVE "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir \
        -r "$needs" || die "pip could not install all of $needs"
    printf '%s' "$key" >"$1/key"
}

# our_module VENV: our module, again when a source of it changes. SHORTLIST_MODULE_KEY then names its sources.
our_module() {
    SHORTLIST_MODULE_KEY=$(find bindings/python include base distance storage hnsw ranker recommend cmake \
        CMakeLists.txt -type f -not -name '*.pyc' -not -path '*/tests/*' -print0 | sort -z | xargs -0 sha256sum |
        sha256sum | cut -c 1-16)
    export SHORTLIST_MODULE_KEY
    [ "$(cat "$1/module-key" 2>/dev/null)" = "$SHORTLIST_MODULE_KEY" ] && return 0
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check ./bindings/python || die "our module was not built"
    printf '%s' "$SHORTLIST_MODULE_KEY" >"$1/module-key"
}
