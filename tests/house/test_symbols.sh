#!/usr/bin/env bash
# test_symbols.sh LIBRARY.so CC: the shared library exports exactly what the public headers declare, and never prints,
# aborts, exits, takes signals or changes the environment.
set -euo pipefail
library=$1 cc=$2
root=$(cd "$(dirname "$0")/../.." && pwd)

banned='(v?f?printf|v?dprintf|__(v|f|vf)?printf_chk|puts|fputs|putchar|putc|fputc|perror|stdout|stderr'
banned+='|abort|_?exit|_Exit|quick_exit|__assert_fail|atexit|signal|sigaction|setenv|putenv|unsetenv|srand'
banned+='|system|setlocale)'

exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
called() { nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u; }
declared() { cat "$@" | tr '\n' ' ' | grep -oE 'SL_API [^;{(]*\(' | grep -oE 'sl_[a-z0-9_]+ *\($' | tr -d ' (' | sort -u; }

# faults LIBRARY HEADER...: what is wrong with a library, one line each.
faults() {
    comm -13 <(declared "${@:2}") <(exported "$1") | sed 's/^/exported but not in the header: /'
    comm -23 <(declared "${@:2}") <(exported "$1") | sed 's/^/in the header but not exported: /'
    called "$1" | grep -xE "$banned" | sed 's/^/a library must not use: /' || true
}

# The check itself is checked first.
fixture=$(mktemp -d)
trap 'rm -rf "$fixture"' EXIT
printf 'SL_API int sl_kept(void);\nSL_API int\nsl_missing(int a,\n int b);\n' >"$fixture/bad.h"
printf '#include <stdio.h>\n#include <stdlib.h>\nint sl_kept(void) { printf("%%d", 1); return 0; }\n%s\n' \
    'int leak(void) { abort(); }' >"$fixture/bad.c"
"$cc" -shared -fPIC -o "$fixture/bad.so" "$fixture/bad.c"
found=$(faults "$fixture/bad.so" "$fixture/bad.h")
if [ "$(grep -c . <<<"$found")" -ne 4 ]; then
    printf 'the check misjudges its own fixture; it found:\n%s\n' "$found"
    exit 1
fi

found=$(faults "$library" "$root"/include/*.h)
[ -z "$found" ] || { printf '%s\n' "$found" && exit 1; }
readelf -d "$library" | grep 'SONAME.*libshortlist\.so\.0\]' >/dev/null || { echo "wrong SONAME" && exit 1; }
nm -D "$library" | grep 'sl_version@@SHORTLIST_0' >/dev/null || { echo "symbols carry no version" && exit 1; }
echo "$(exported "$library" | wc -l) symbols, those of the headers"
