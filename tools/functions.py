"""Finds functions in C and Python that are too long, and C functions that take too many parameters. Exits 1 and names
them.

LINES holds for all functions in C and Python; a docstring's lines count. PARAMETERS holds for all functions in C but
those that the public headers declare with SL_API, wherever they are defined. C++ is left out: there the bindings take
what the public functions take.
"""

import ast
import pathlib
import re
import subprocess
import sys

import lizard

LINES, PARAMETERS = 60, 7
ROOT = pathlib.Path(__file__).resolve().parent.parent

FIXTURE_HEADER = """
SL_API SL_MUST_USE sl_status sl_wide(int a, int b, int c, int d,
                                     int e, int f, int g, int h);
#define SL_API __attribute__((visibility("default")))
SL_API void sl_plain(void);
"""
FIXTURE = """
sl_status sl_wide(int a, int b, int c, int d, int e, int f, int g, int h) { return a; }
static int wide(int a, int b, int c, int d, int e, int f, int g, int (*h)(int, int)) { return a; }
static int fits(int a, int b, int c, int d, int e, int f, int (*g)(int, int)) { return a; }
static void sixty(void) {""" + "\n;" * 58 + """
}
void sl_plain(void) {""" + "\n;" * 59 + """
}
"""

PYTHON_FIXTURE = """
class Some:
    @property
    def sixty(self):
        '''A docstring
        of two lines.'''""" + "\n        pass" * 57 + """

    def longer(self):
        def inner():
            pass""" + "\n        pass" * 58


def public_names(header):
    """Names of the functions that a header declares with SL_API."""
    return set(re.findall(r"^SL_API [^;{]*?\b(\w+)\(", header, re.MULTILINE))


def wrong(path, source, public):
    """A line for each function that breaks a rule."""
    found = []
    for function in lizard.analyze_file.analyze_source_code(path, source).function_list:
        where = f"{path}:{function.start_line}: {function.name}"
        if function.length > LINES:
            found.append(f"{where} has {function.length} lines; {LINES} at most")
        if function.parameter_count > PARAMETERS and function.name not in public:
            found.append(f"{where} takes {function.parameter_count} parameters; {PARAMETERS} at most")
    return found


def too_long(path, source):
    """A line for each Python function of too many lines. Decorators don't count."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds))
    lengths = ((node, node.end_lineno - node.lineno + 1) for node in functions)
    return [f"{path}:{node.lineno}: {node.name} has {length} lines; {LINES} at most" for node, length in lengths
            if length > LINES]


def check_itself():
    found = wrong("fixture.c", FIXTURE, public_names(FIXTURE_HEADER))
    found += too_long("fixture.py", PYTHON_FIXTURE)
    if [line.split(": ")[1].split(" ")[0] for line in found] != ["wide", "sl_plain", "longer"]:
        sys.exit("functions.py misjudges its own fixture; it found:\n" + "\n".join(found))


def sources(*patterns):
    """(path, text) of the tree's files of these names."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT,
                            stdout=subprocess.PIPE, text=True, check=True).stdout
    return [(path, (ROOT / path).read_text(encoding="utf-8")) for path in sorted(listed.split("\0"))
            if path and (ROOT / path).is_file()]


def main():
    check_itself()
    public = set().union(*(public_names(header.read_text()) for header in (ROOT / "include").glob("*.h")))
    found = [line for path, source in sources("*.c", "*.h", "*.inc") for line in wrong(path, source, public)]
    found += [line for path, source in sources("*.py") for line in too_long(path, source)]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main()
