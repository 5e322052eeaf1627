# For scripts that source it and have die().

# venv_is_new VENV KEY: makes an empty environment and succeeds, unless one of this key is there. The caller installs
# its packages and writes KEY to VENV/key.
venv_is_new() {
    [ "$(cat "$1/key" 2>/dev/null)" != "$2" ] || return 1
    rm -rf "$1"
    python3 -m venv "$1" || die "python3 cannot make a virtual environment; install python3-venv"
}

# scann_core_venv PEERS: the environment of bench/peers/scann-core-requirements.txt in the folder PEERS. Fails where pip
# cannot install it.
scann_core_venv() {
    local -r venv=$1/scann-core-venv needs=bench/peers/scann-core-requirements.txt
    local key
    key=$(cat "$needs" <(python3 --version) | sha256sum)
    venv_is_new "$venv" "$key" || return 0
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir -r "$needs" || return 1
    printf '%s' "$key" >"$venv/key"
}
