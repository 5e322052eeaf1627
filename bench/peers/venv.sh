# For scripts that source it and have die().

# venv_is_new VENV KEY: makes an empty environment and succeeds, unless one of this key is there. The caller installs
# its packages and writes KEY to VENV/key.
venv_is_new() {
    [ "$(cat "$1/key" 2>/dev/null)" != "$2" ] || return 1
    rm -rf "$1"
    python3 -m venv "$1" || die "python3 cannot make a virtual environment; install python3-venv"
}
