"""Tries tools/mutate.py on a project of one function, then sees that each fault in tests/mutants applies to the tree.

    test_mutate.py BUILD    BUILD: the build folder whose tests the faults may name
"""
import difflib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MUTATE = [sys.executable, "-B", str(ROOT / "tools/mutate.py")]
BUILD = sys.argv.pop() if len(sys.argv) > 1 else None

FILES = {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.20)\nproject(one C)\nenable_testing()\n"
                      "add_executable(test_sum base/sum.c)\nadd_test(NAME test_sum COMMAND test_sum)\n"
                      "add_test(NAME test_sum_again COMMAND test_sum again)\n",
    "base/sum.c": "static int sum(int a, int b) {\n    int unused = 5;\n    (void)unused;\n    return a + b;\n}\n"
                  "int main(void) {\n    return sum(2, 3) != 5;\n}\n",
}


def patch(old, new, file="base/sum.c", tests="^test_sum$"):
    """A patch that puts the line `new` for `old`."""
    before = FILES["base/sum.c"] if old in FILES["base/sum.c"] else old + "\n"
    diff = difflib.unified_diff(before.splitlines(True), before.replace(old, new).splitlines(True), f"a/{file}", f"b/{file}")
    return f"# fault: it is {new.strip()}\n# caught by: {tests}\ndiff --git a/{file} b/{file}\n" + "".join(diff)


SUM = "    return a + b;"
CAUGHT = patch(SUM, "    return a - b;")
PATCHES = {
    "caught": CAUGHT,
    "caught_again": patch(SUM, "    return a * b;", tests="^test_sum.*$"),
    "crashes": patch(SUM, "    __builtin_trap();"),
    "harmless": patch("    int unused = 5;", "    int unused = 6;"),
    "no_c": patch(SUM, "    return a +;"),
    "stale": patch("    return b + a;", "    return 0;"),
}
MALFORMED = {
    "no_sentence": CAUGHT.split("\n", 1)[1],
    "no_test": CAUGHT.replace("# caught by: ^test_sum$\n", ""),
    "not_anchored": CAUGHT.replace("^test_sum$", "test_sum"),
    "no_such_test": CAUGHT.replace("^test_sum$", "^test_product$"),
    "no_diff": "# fault: none\n# caught by: ^test_sum$\n",
    "no_library": patch(SUM, "    return 0;", "tests/sum.c"),
}


def run(root, *arguments):
    done = subprocess.run([*MUTATE, "--root", str(root), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(shutil.which("git") and shutil.which("ninja"), "needs git and ninja")
class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)
        self.write(".gitignore", "build-*/\n")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def put(self, patches):
        for name, text in patches.items():
            self.write(f"tests/mutants/{name}.patch", text)

    def told(self, out, name):
        found = [line for line in out.splitlines() if f" {name} " in line]
        self.assertEqual(len(found), 1, out)
        return found[0]

    def test_what_is_caught(self):
        self.put(PATCHES)
        code, out = run(self.root)
        self.assertEqual(code, 1, out)
        self.assertRegex(self.told(out, "caught"), "^caught .*by test_sum .Failed.")
        self.assertRegex(self.told(out, "caught_again"), "^caught .*by test_sum(_again)? .Failed.")
        self.assertRegex(self.told(out, "crashes"), "^caught .*by test_sum .(Exception|Subprocess|Failed)")
        self.assertRegex(self.told(out, "harmless"), "^NOT CAUGHT .*test_sum.*passes though it is int unused = 6;")
        self.assertRegex(self.told(out, "no_c"), "^NOT CAUGHT .*error of the patch")
        self.assertRegex(self.told(out, "stale"), "^NOT CAUGHT .*does not apply")
        self.assertIn("faults: 6; caught: 3; not caught: 3", out)

    def test_some_and_again(self):
        self.put(PATCHES)
        for _ in range(2):
            code, out = run(self.root, "caught", "crashes")
            self.assertEqual(code, 0, out)
            self.assertIn("faults: 2; caught: 2; not caught: 0", out)
        self.write("base/sum.c", FILES["base/sum.c"].replace("a + b", "a + b + 1"))
        code, out = run(self.root, "harmless")
        self.assertEqual(code, 1, out)
        self.assertIn("without a fault these do not pass here: test_sum (Failed)", out)

    def test_listing(self):
        self.put({"caught": CAUGHT})
        code, out = run(self.root, "--list")
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"^caught +it is return a - b; \[\^test_sum\$\]\n$")
        self.assertEqual(run(self.root, "--list", "other")[0], 1)

    def test_the_check(self):
        build = self.root / "build-x"
        subprocess.run(["cmake", "-S", self.root, "-B", build, "-G", "Ninja"], check=True, capture_output=True)
        self.put({"caught": CAUGHT})
        code, out = run(self.root, "--check", str(build))
        self.assertEqual((code, out), (0, "faults that apply to the tree: 1\n"))
        self.put(MALFORMED)
        self.put({"stale": PATCHES["stale"]})
        code, out = run(self.root, "--check", str(build))
        self.assertEqual(code, 1, out)
        for name in [*MALFORMED, "stale"]:
            self.assertIn(f"/{name}.patch: ", out)
        self.assertEqual(len(out.splitlines()), len(MALFORMED) + 1, out)


class Tree(unittest.TestCase):
    @unittest.skipUnless(BUILD, "no build folder named")
    def test_each_fault_applies(self):
        code, out = run(ROOT, "--check", BUILD)
        self.assertEqual(code, 0, out)


if __name__ == "__main__":
    unittest.main()
