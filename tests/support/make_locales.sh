#!/bin/sh
# make_locales.sh FOLDER: locales whose numbers are written otherwise, for a process with LOCPATH=FOLDER: comma; arabic,
# whose decimal point has two bytes in UTF-8, as that of ps_AF; and wide, whose decimal point has three. Exits 77 where
# the machine cannot make them.
set -eu
mkdir -p "$1"
if ! command -v localedef >/dev/null || ! ls /usr/share/i18n/charmaps/UTF-8* >/dev/null 2>&1; then
    echo "no localedef with the charmap UTF-8 (Debian's package locales)" >&2
    exit 77
fi
make() {
    printf 'LC_NUMERIC\ndecimal_point "%s"\nthousands_sep "%s"\ngrouping 3;3\nEND LC_NUMERIC\n' "$2" "$3" >"$folder/$1.src"
    # 1: other categories are the default ones.
    localedef -c --quiet --no-archive -i "$folder/$1.src" -f UTF-8 "$folder/$1" || [ $? -eq 1 ]
    rm "$folder/$1.src"
}
folder=$(cd "$1" && pwd)
make comma '<U002C>' '<U002E>'
make arabic '<U066B>' '<U066C>'
make wide '<U2396>' '<U002C>'
