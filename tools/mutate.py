#!/usr/bin/env python3
"""Puts known faults into a copy of the tree, one at a time, and shows that the tests named for each catch it.

A fault is tests/mutants/NAME.patch: the lines `# fault: SENTENCE` and `# caught by: REGEX` (of ctest's names, anchored),
then a diff of library sources for `git apply`. The copy is build-mutate/tree, built in build-mutate/build; both are kept,
so that a later run builds only what has changed.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

LIBRARY = ("base/", "distance/", "storage/", "hnsw/", "ranker/", "recommend/", "cluster/", "include/")
# A test that a fault makes hang is stopped after its usual time, so many times over, and a minute.
PATIENCE = 10


class Failure(Exception):
    """An error that ends the run with a message."""


class Fault:
    """A patch, as its file says."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        text = path.read_text()
        self.sentence = self._line(text, "fault")
        self.tests = self._line(text, "caught by")
        if not (self.tests.startswith("^") and self.tests.endswith("$")):
            raise Failure(f"{path}: 'caught by: {self.tests}' is not anchored; write ^NAME$")
        self.files = re.findall(r"^\+\+\+ b/(\S+)$", text, re.M)
        if not self.files:
            raise Failure(f"{path}: no diff of a file b/... follows the two lines")
        for name in self.files:
            if not name.startswith(LIBRARY):
                raise Failure(f"{path}: {name} is no source of the library")

    def _line(self, text, what):
        found = re.match(rf"(?:#.*\n)*?# {what}: (\S.*)\n", text)
        if not found:
            raise Failure(f"{self.path}: the line '# {what}: ...' is missing at its top")
        return found[1].strip()

    def apply(self, tree, *options):
        """git apply, as outside of any repository: in a folder of one it passes over the files of others."""
        environment = dict(os.environ, GIT_CEILING_DIRECTORIES=str(tree.parent))
        done = subprocess.run(["git", "apply", *options, str(self.path)], cwd=tree, env=environment,
                              capture_output=True, text=True)
        return done.returncode == 0, done.stderr.strip().replace("\n", "; ")


def faults_of(root, names):
    folder = root / "tests/mutants"
    paths = {path.stem: path for path in sorted(folder.glob("*.patch"))}
    unknown = [name for name in names if name not in paths]
    if unknown:
        raise Failure(f"no fault '{unknown[0]}' in tests/mutants; --list shows those there are")
    return [Fault(paths[name]) for name in (names or paths)]


def tests_of(build):
    """The programs of each test of a build folder: the files there that its command or environment names."""
    runs = {}
    for path in sorted(build.rglob("CTestTestfile.cmake")):
        for line in path.read_text().splitlines():
            found = re.match(r'(?:add_test|set_tests_properties)\((?:\[=*\[(.+?)\]=*\]|"(.+?)"|(\S+))', line)
            if found:
                name = found[1] or found[2] or found[3]
                runs.setdefault(name, set()).update(re.findall(re.escape(f"{build}/") + r'([^";]+)', line))
    return runs


def matching(tests, fault):
    found = [name for name in tests if re.search(fault.tests, name)]
    if not found:
        raise Failure(f"{fault.path}: no test is named {fault.tests}")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# The copy
# ---------------------------------------------------------------------------------------------------------------------

def copy_tree(root, tree):
    """Makes `tree` hold the files of `root` that git knows or would take. Equal files are left alone. Other files
    become new to the build, whatever their time was."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root, capture_output=True,
                            check=True).stdout
    wanted = {os.fsdecode(name) for name in listed.split(b"\0") if name}
    wanted = {name for name in wanted if (root / name).is_file()}
    for path in [path for path in tree.rglob("*") if path.is_file() and str(path.relative_to(tree)) not in wanted]:
        path.unlink()
    for name in sorted(wanted):
        refresh(root, tree, name)


def refresh(root, tree, name):
    source, target = root / name, tree / name
    if not target.is_file() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    shutil.copymode(source, target)


def keep(tree, fault):
    """The files that a fault changes, as the copy has them: whoever works on the tree meanwhile changes nothing here."""
    return {name: (tree / name).read_bytes() if (tree / name).is_file() else None for name in fault.files}


def revert(tree, kept):
    for name, data in kept.items():
        if data is None:
            (tree / name).unlink(missing_ok=True)
        else:
            (tree / name).write_bytes(data)


# ---------------------------------------------------------------------------------------------------------------------
# Building and testing
# ---------------------------------------------------------------------------------------------------------------------

class Builder:
    """The build folder of the copy."""

    def __init__(self, tree, build, options):
        self.build = build
        self._run(["cmake", "-S", str(tree), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DSHORTLIST_WERROR=OFF", *options],
                  "configuring the copy")
        listed = self._run(["ninja", "-C", str(build), "-t", "targets", "all"], "listing what is built")
        self.outputs = {line.rsplit(": ", 1)[0] for line in listed.splitlines()}
        self.tests = tests_of(build)

    @staticmethod
    def _run(command, what):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Failure(f"{what} failed:\n" + "\n".join(line[:300] for line in done.stdout.splitlines()[-15:]))
        return done.stdout

    def compile(self, tests):
        targets = sorted(set().union(*(self.tests[name] for name in tests)) & self.outputs)
        if targets:
            self._run(["cmake", "--build", str(self.build), "--target", *targets], "building " + ", ".join(tests))

    def test(self, tests, limit=None):
        """[(test, how it went)] in the order they ended; up to the first failure where there is a limit of seconds."""
        names = "^(" + "|".join(re.escape(name) for name in tests) + ")$"
        command = ["ctest", "--test-dir", str(self.build), "-j", str(os.cpu_count() or 1), "-R", names]
        if limit:
            command.append("--stop-on-failure")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        try:
            text = process.communicate(timeout=limit)[0]
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            text = process.communicate()[0]
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return outcomes(text) + [("/".join(tests), "Timeout")]
        return outcomes(text)


def outcomes(text):
    """The results that ctest printed, as (test, result): Passed, Skipped, Failed, Timeout, Exception... or Not Run."""
    found = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.+ *(?:\*\*\*)?(Passed|Skipped|Not Run|\S+)", text, re.M)
    return [(name, how.rstrip(":")) for name, how in found]


def baseline(builder, tests):
    """Seconds that all of them take together without a fault. The tests must pass then, or nothing else
    means anything."""
    builder.compile(tests)
    begun = time.monotonic()
    went = dict(builder.test(tests))
    wrong = [f"{name} ({went.get(name, 'did not run')})" for name in tests if went.get(name) != "Passed"]
    if wrong:
        raise Failure("without a fault these do not pass here: " + ", ".join(wrong))
    return time.monotonic() - begun


def try_fault(builder, tree, fault, seconds):
    """(caught, what to say of it)"""
    tests = matching(builder.tests, fault)
    kept = keep(tree, fault)
    applied, why = fault.apply(tree)
    if not applied:
        return False, "does not apply: " + why
    try:
        builder.compile(tests)
        went = builder.test(tests, seconds * PATIENCE + 60)
    except Failure as failure:
        return False, f"is no fault but an error of the patch: {failure}"
    finally:
        revert(tree, kept)
    by = [f"{name} ({how})" for name, how in went if how not in ("Passed", "Skipped", "Not Run")]
    return bool(by), "by " + ", ".join(by) if by else f"{fault.tests} passes though {fault.sentence}"


def mutate(root, names, options):
    faults = faults_of(root, names)
    if not faults:
        raise Failure("tests/mutants holds no fault")
    tree, build = root / "build-mutate/tree", root / "build-mutate/build"
    copy_tree(root, tree)
    builder = Builder(tree, build, options)
    tests = sorted(set().union(*(matching(builder.tests, fault) for fault in faults)))
    print(f"without a fault: {', '.join(tests)}", flush=True)
    seconds = baseline(builder, tests)
    survived = 0
    for fault in faults:
        begun = time.monotonic()
        caught, say = try_fault(builder, tree, fault, seconds)
        survived += not caught
        print(f"{'caught' if caught else 'NOT CAUGHT':10}  {fault.name:36} {time.monotonic() - begun:6.1f} s  {say}",
              flush=True)
    print(f"faults: {len(faults)}; caught: {len(faults) - survived}; not caught: {survived}")
    return 1 if survived else 0


def check(root, build):
    """Tells whether every patch is well made, applies to the tree, and names a test of the build folder."""
    wrong = []
    tests = tests_of(build)
    paths = sorted((root / "tests/mutants").glob("*.patch"))
    for path in paths:
        try:
            fault = Fault(path)
            matching(tests, fault)
            applied, why = fault.apply(root, "--check")
            if not applied:
                wrong.append(f"{path}: does not apply: {why}")
        except Failure as failure:
            wrong.append(str(failure))
    print("\n".join(wrong) or f"faults that apply to the tree: {len(paths)}")
    return 1 if wrong else 0


def main():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(prog="./dev mutate", description="Shows that tests catch faults put in on purpose.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults of tests/mutants; without one, all")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("--check", metavar="BUILD", help="only see that each applies, and names a test of this build folder")
    parser.add_argument("--root", type=Path, default=root, help="of the tree; that of this script is the default")
    parser.add_argument("--option", action="append", default=[], help="one more for cmake, as --option=-DNAME=VALUE")
    given = parser.parse_args()
    root = given.root.resolve()
    try:
        if given.list:
            for fault in faults_of(root, given.names):
                print(f"{fault.name:36} {fault.sentence} [{fault.tests}]")
            return 0
        if given.check:
            return check(root, Path(given.check).resolve())
        return mutate(root, given.names, given.option)
    except Failure as failure:
        print(f"mutate: {failure}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
