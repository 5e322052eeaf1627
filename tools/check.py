#!/usr/bin/env python3
"""Builds and runs the tests of what changed, in about two minutes on two cores. `./dev check` calls it after the format.

A change is what differs from the merge base with main: commits, working tree and files that git doesn't know. Its tests
come in this order, each rank the cheapest first, until their COST fills SECONDS on each core:

    0  the checks of the whole project that take seconds
    1  tests that changed, and tests named after a changed file. These always run
    2  the other tests of the changed file's room: tests/ has the folders of the sources
    3  what a changed header reaches by #include: tests that include it, and the tests of rooms that do
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ALWAYS = ("layers", "pages", "format", "mutants")
GOLDEN = ("test_golden", "test_golden_rank")
LIBRARY = ("include/", "base/", "distance/", "storage/", "hnsw/", "ranker/", "recommend/")
MODULE, MODULE_TESTS = "bindings/python/src/shortlist/", "bindings/python/tests/"
SECONDS = 50

Test = collections.namedtuple("Test", "name folder cost words programs")
Test.__doc__ = """A test of ctest. folder: of tests/; cost: processor seconds; words: the stems of its program and
arguments; programs: the files of the build folder that it runs."""


class Chosen:
    """The tests to run: {name: (rank, reason)}, where the best rank counts."""

    def __init__(self, tests):
        self.tests = {test.name: test for test in tests}
        self.why = {}

    def add(self, tests, rank, reason):
        for test in tests:
            if test.name not in self.why or rank < self.why[test.name][0]:
                self.why[test.name] = (rank, reason)

    def split(self, budget):
        """The names that run and those left out. Ranks 0 and 1 run whatever they cost."""
        run, left = [], []
        for name in sorted(self.why, key=lambda name: (self.why[name][0], self.tests[name].cost, name)):
            rank, cost = self.why[name][0], self.tests[name].cost
            if rank <= 1 or cost <= budget:
                run.append(name)
                budget -= cost
            else:
                left.append(name)
        return run, left


# ---------------------------------------------------------------------------------------------------------------------
# From paths to tests
# ---------------------------------------------------------------------------------------------------------------------

def includers(path, includes):
    """The files that include a file, directly or through others. includes: {file: the files that it includes}"""
    users = collections.defaultdict(set)
    for user, used in includes.items():
        for name in used:
            users[name].add(user)
    found, waiting = set(), [path]
    while waiting:
        for user in users[waiting.pop()] - found:
            found.add(user)
            waiting.append(user)
    return found


def room_of(folder, folders):
    """The folder of tests/ for a folder of sources: the one of that name, or of the nearest folder above that has one."""
    while folder and "tests/" + folder not in folders:
        folder = os.path.dirname(folder)
    return "tests/" + folder if folder else None


# Tests of files that no test is named after, by the start of the path.
OTHERS = {"dev": {"dev_check"}, "tools/check.py": {"dev_check"}, "include/": {"symbols"},
          "cmake/": {"plain", "install", "symbols"}, "CMakeLists.txt": {"plain", "install", "symbols"}}


def named_after(path, tests):
    """The tests that a file is, or that are named after it, among those of its folder at the top."""
    top, stem = path.split("/")[0], Path(path).stem
    if top == "tests":
        return [test for test in tests if stem in test.words and path.startswith(test.folder + "/")]
    if top == "bench":
        name = path.split("/")[1]
        return [test for test in tests if test.name in (name + "_arithmetic", stem.removeprefix("test_"))]
    others = set().union(*(names for start, names in OTHERS.items() if path.startswith(start)))
    if others:
        return [test for test in tests if test.name in others]
    short = re.sub("^cmd_", "", stem)
    within = "tests/house" if top in ("tools", "examples") else "tests/" + top
    return [test for test in tests if test.words & {stem, "test_" + short, "example_" + short}
            and (test.folder + "/").startswith(within + "/")]


def choose(paths, tests, includes):
    """The tests for changed paths."""
    chosen = Chosen(tests)
    chosen.add([test for test in tests if test.name in ALWAYS], 0, "always")
    folders = {test.folder for test in tests}
    for path in paths:
        folder, ending = os.path.dirname(path), os.path.splitext(path)[1]
        chosen.add(named_after(path, tests), 1, path)
        if path.startswith(LIBRARY):
            chosen.add([test for test in tests if test.name in GOLDEN], 1, "any change of the library")
        if path.startswith((*LIBRARY, "cli/", "cluster/")):
            room = room_of(folder, folders)
            chosen.add([test for test in tests if test.folder == room], 2, path)
        if path.startswith("tests/") and os.path.basename(path) == "CMakeLists.txt" and folder != "tests/house":
            chosen.add([test for test in tests if test.folder == folder], 2, path)
        header = path if ending in (".h", ".def", ".inc") else path[:-2] + ".h" if path.startswith("tests/") else None
        reached = includers(header, includes) if header else set()
        rooms = {room_of(os.path.dirname(name), folders) for name in reached if not name.startswith("tests/")}
        for name in reached:
            chosen.add(named_after(name, tests) if name.startswith("tests/") else [], 3, f"include {header}")
        chosen.add([test for test in tests if test.folder in rooms], 3, f"rooms that include {header}")
    return chosen


def touches_bench(paths, includes):
    """Returns True if programs of bench/ change: their sources do, or a header that these include."""
    reached = set(paths).union(*(includers(path, includes) for path in paths))
    return any(path.startswith("bench/") and path.endswith((".c", ".h")) for path in reached)


def pytest_files(paths):
    """Returns the files for pytest: the changed tests of the Python module, or all of them if another file of it changed."""
    tests = [path for path in paths if re.match(MODULE_TESTS + r"test_\w+\.py$", path)]
    others = [path for path in paths if path.endswith(".py") and path.startswith((MODULE, MODULE_TESTS))]
    return [MODULE_TESTS] if set(others) - set(tests) else tests


def left_out(paths):
    """Lists the commands that this one leaves out though they would test the changed paths."""
    found = []
    if any(path.startswith("bindings/") and path.endswith((".cpp", ".hpp", ".pyi")) or path.startswith("include/")
           for path in paths):
        found.append("./dev test -R '^python$': the Python module's compiled part")
    if any(path.startswith("fuzz/") for path in paths):
        found.append("./dev fuzz: the fuzz targets")
    if any(re.match(r"tests/engines/|examples/(\w+_recommend|recommend_table)\.py$", path) for path in paths):
        found.append("./dev engines: the examples on Spark and Ray")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Reading git, the sources and the build folder
# ---------------------------------------------------------------------------------------------------------------------

def git(root, *arguments):
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    return done.stdout.strip("\n") if done.returncode == 0 else None


def base_of(root, revision):
    """The commit that the tree is compared with, and its name."""
    if revision:
        names = [revision]
    elif git(root, "branch", "--show-current") == "main":
        names = ["origin/main", "main"]
    else:
        names = ["main", "origin/main"]
    for name in names:
        commit = git(root, "merge-base", "HEAD", name)
        if commit:
            return commit, name
    if revision:
        sys.exit(f"check: there is no commit {revision}")
    return "HEAD", "HEAD"


def changed(root, base):
    """The paths that differ from a commit, those that are gone included."""
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", base) or ""
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return sorted({path for path in (listed + "\0" + untracked).split("\0") if path})


def read_includes(root):
    """{file: the files of the tree that it includes}, of all C and C++ files."""
    listed = git(root, "ls-files", "-z", "-co", "--exclude-standard", "--", "*.c", "*.h", "*.inc", "*.def", "*.cpp")
    found = {}
    for name in filter(None, (listed or "").split("\0")):
        if (root / name).is_file():
            quoted = re.findall(r'^#\s*include "([^"]+)"', (root / name).read_text(errors="replace"), re.M)
            beside = os.path.dirname(name)
            found[name] = {os.path.normpath(place) for one in quoted
                           for place in (one, f"include/{one}", f"tests/support/{one}", f"{beside}/{one}")}
    return found


def read_commands(build):
    """{test: the words of its command}, from the files that cmake writes. ctest tells no command whose program is not
    built yet."""
    commands = {}
    for path in build.rglob("CTestTestfile.cmake"):
        for line in path.read_text().splitlines():
            found = re.match(r'add_test\((?:\[=*\[(.+?)\]=*\]|"(.+?)"|(\S+)) (.*)\)$', line)
            if found:
                commands[found[1] or found[2] or found[3]] = re.findall(r'"((?:[^"\\]|\\.)*)"', found[4])
    return commands


def read_tests(root, build):
    """The tests that ctest knows in a build folder."""
    commands = read_commands(build)
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True,
                            check=True).stdout
    tests = []
    for one in json.loads(listed)["tests"]:
        given = {entry["name"]: entry["value"] for entry in one["properties"]}
        place = Path(given["WORKING_DIRECTORY"])
        folder = place.relative_to(build if place.is_relative_to(build) else root)
        command = one.get("command") or commands.get(one["name"], [])
        files = [word.split("=", 1)[-1] for word in command + given.get("ENVIRONMENT", [])]
        programs = {os.path.relpath(name, build) for name in files if name.startswith(f"{build}/")}
        tests.append(Test(one["name"], str(folder), given.get("COST") or 1, {Path(word).stem for word in command},
                          programs))
    return tests


# ---------------------------------------------------------------------------------------------------------------------
# Building and running
# ---------------------------------------------------------------------------------------------------------------------

def targets_of(names, tests, build):
    """Returns the targets to build: the product, and all that the tests run."""
    listed = subprocess.run(["cmake", "--build", str(build), "--target", "help"], capture_output=True, text=True,
                            check=True).stdout
    known = set(re.findall(r"^(?:\.\.\. )?([^\s:]+)", listed, re.M))
    stems = {re.sub(r"^lib|\.so$", "", os.path.basename(name)) for one in names for name in tests[one].programs}
    stems |= {name + "_built" for name in stems} | {"example_" + name for name in stems}
    return ["shortlist", "shortlist_cli", *sorted(stems & known - {"shortlist"})]


def run_pytest(root, files):
    """The tests of the installed module, which gets the tree's Python files first. Its compiled part stays."""
    python, key = root / ".venv/bin/python", root / ".venv/module-key"
    if not key.is_file():
        print(f"left to ./dev test: {' '.join(files)}, since the Python module isn't built")
        return 0
    for package in root.glob(".venv/lib/python3*/site-packages/shortlist"):
        for source in (root / MODULE).glob("*.py*"):
            shutil.copyfile(source, package / source.name)
    key.write_text("Python files of ./dev check")
    return subprocess.run([python, "-m", "pytest", "-q", *files], cwd=root).returncode


def tell(chosen, run, left):
    """Says which tests run for which reason, and which are left out."""
    reasons = {}
    for name in run:
        reasons.setdefault(chosen.why[name][1], []).append(name)
    for reason, names in reasons.items():
        print(textwrap.fill(f"{reason}: {', '.join(names)}", 120, subsequent_indent="    ", break_on_hyphens=False))
    if left:
        seconds = sum(chosen.tests[name].cost for name in left)
        print(textwrap.fill(f"left to ./dev test, about {seconds:.0f} seconds of a processor: {', '.join(sorted(left))}",
                            120, subsequent_indent="    ", break_on_hyphens=False))


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(prog="./dev check", description="Checks the format, builds, and tests what changed.")
    parser.add_argument("revision", nargs="?", metavar="REV", help="compare with the merge base with REV, not with main")
    parser.add_argument("--list", action="store_true", help="only say which tests would run")
    given = parser.parse_args()
    build, cores = root / "build", os.cpu_count() or 1
    base, name = base_of(root, given.revision)
    paths = changed(root, base)
    includes = read_includes(root)
    chosen = choose(paths, read_tests(root, build), includes)
    run, left = chosen.split(SECONDS * cores)
    print(f"\n== files that differ from {base[:12]} ({name}): {len(paths)}; tests: {len(run)}")
    tell(chosen, run, left)
    files = pytest_files(paths)
    if files:
        print(f"pytest: {' '.join(files)}")
    for what in left_out(paths):
        print(f"left to {what}")
    if given.list:
        return 0
    sys.stdout.flush()
    benches = ["benches"] if touches_bench(paths, includes) else []
    built = subprocess.run(["cmake", "--build", str(build), "-j", str(cores), "--target",
                            *targets_of(run, chosen.tests, build), *benches])
    if built.returncode:
        return 1
    failed = run_pytest(root, files) if files else 0
    names = "^(" + "|".join(re.escape(name) for name in run) + ")$"
    tested = subprocess.run(["ctest", "--test-dir", str(build), "-j", str(cores + 2), "--output-on-failure", "-R", names],
                            env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    return 1 if failed or tested.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
