"""The tests that tools/check.py chooses for changed files, on a tree of a few files and tests."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import check  # noqa: E402


def test(name, folder, cost=1, words=()):
    return check.Test(name, folder, cost, {name, *words}, {"tests/" + name})


TESTS = [
    test("layers", "tests/house"), test("pages", "tests/house"), test("dev_check", "tests/house"),
    test("symbols", "tests/house"), test("synth", "tests/house", words=["test_synth", "synth"]),
    test("limit_arithmetic", "tests/house", words=["test_arithmetic"]),
    test("peers_arithmetic", "tests/house", words=["test_arithmetic"]),
    test("example_films", "tests/house"),
    test("test_golden", "tests/golden"),
    test("test_pages", "tests/base"), test("test_proc", "tests/base", 3),
    test("test_redo", "tests/storage"), test("test_redo_pmem", "tests/storage", 4, ["test_redo"]),
    test("test_save", "tests/storage", 2), test("test_storage", "tests/storage", 90),
    test("test_walk", "tests/hnsw/search", 2), test("test_filter", "tests/hnsw/search", 200),
    test("cli_eval", "tests/cli", 4, ["test_eval"]), test("cli_damage", "tests/cli", 18, ["test_damage"]),
]
INCLUDES = {
    "base/proc.c": {"base/proc.h"},
    "storage/redo.h": {"base/proc.h"},
    "hnsw/search/walk.c": {"storage/redo.h"},
    "tests/hnsw/search/test_walk.c": {"tests/support/builders.h"},
    "tests/support/builders.h": {"tests/support/vectors.h"},
}
BUDGET = 100


def chosen(*paths):
    """Returns the tests that run, and the tests left out, without the tests that always run."""
    return [[name for name in names if name not in check.ALWAYS]
            for names in check.choose(paths, TESTS, INCLUDES).split(BUDGET)]


class Choice(unittest.TestCase):
    def run_of(self, path, *expected):
        self.assertEqual(chosen(path)[0], list(expected), path)

    def test_nothing_changed(self):
        self.assertEqual(check.choose([], TESTS, INCLUDES).split(BUDGET), (["layers", "pages"], []))

    def test_a_source_runs_its_room_and_its_own_test_first(self):
        self.assertEqual(chosen("storage/save.c"),
                         [["test_golden", "test_save", "test_redo", "test_redo_pmem", "test_storage"], []])

    def test_what_no_test_here_covers_is_told(self):
        self.assertEqual([left.split(":")[0] for left in check.left_out(["bindings/python/src/core/index.cpp"])],
                         ["./dev test -R '^python$'"])
        self.assertEqual([left.split(":")[0] for left in check.left_out(["fuzz/fuzz_open.c"])], ["./dev fuzz"])
        self.assertEqual([left.split(":")[0] for left in check.left_out(["examples/ray_recommend.py"])], ["./dev engines"])
        self.assertEqual(check.left_out(["examples/films.py"]), [])
        self.assertEqual(check.left_out(["hnsw/search/walk.c", "bindings/python/src/shortlist/_index.py"]), [])

    def test_a_test_of_its_name_runs_whatever_it_costs(self):
        self.assertEqual(chosen("hnsw/search/filter.c"), [["test_golden", "test_filter"], ["test_walk"]])

    def test_a_folder_without_tests_has_those_of_the_folder_above(self):
        self.run_of("base/deep/er.c", "test_golden", "test_pages", "test_proc")

    def test_a_header_runs_its_room_then_the_rooms_that_include_it(self):
        self.assertEqual(chosen("base/proc.h"),
                         [["test_golden", "test_proc", "test_pages", "test_redo", "test_save", "test_walk", "test_redo_pmem"],
                          ["test_storage", "test_filter"]])

    def test_a_changed_test_runs_itself_in_every_form(self):
        self.run_of("tests/storage/test_redo.c", "test_redo", "test_redo_pmem")
        self.run_of("tests/cli/test_eval.py", "cli_eval")

    def test_a_helper_runs_the_tests_that_include_its_header(self):
        self.run_of("tests/support/vectors.c", "test_walk")

    def test_the_list_of_a_rooms_tests_runs_them(self):
        self.run_of("tests/base/CMakeLists.txt", "test_pages", "test_proc")

    def test_the_command_runs_its_suites(self):
        self.run_of("cli/search/cmd_eval.c", "cli_eval", "cli_damage")

    def test_files_outside_the_library(self):
        self.run_of("bench/limit/report.py", "limit_arithmetic")
        self.run_of("tools/synth.c", "synth")
        self.run_of("examples/films.c", "example_films")
        self.run_of("include/shortlist.h", "symbols", "test_golden")
        self.run_of("dev", "dev_check")
        self.run_of("docs/GUIDE.md")
        self.run_of("LICENSE")

    def test_benchmarks_are_built_when_a_header_of_theirs_changes(self):
        includes = {**INCLUDES, "bench/limit/trace.c": {"hnsw/search/walk.h"}}
        self.assertTrue(check.touches_bench(["hnsw/search/walk.h"], includes))
        self.assertTrue(check.touches_bench(["bench/limit/trace.c"], includes))
        self.assertFalse(check.touches_bench(["hnsw/search/walk.c", "bench/limit/report.py"], includes))

    def test_the_python_module(self):
        tests = check.MODULE_TESTS
        self.assertEqual(check.pytest_files([tests + "test_tags.py", "docs/GUIDE.md"]), [tests + "test_tags.py"])
        self.assertEqual(check.pytest_files([tests + "test_tags.py", tests + "conftest.py"]), [tests])
        self.assertEqual(check.pytest_files([check.MODULE + "_index.py"]), [tests])
        self.assertEqual(check.pytest_files(["tools/check.py"]), [])


@unittest.skipUnless(shutil.which("git"), "needs git")
class Tree(unittest.TestCase):
    """Reading from git and from sources."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.git("init", "-q", "-b", "main")
        for name in ("kept.c", "edited.c", "gone.c", "committed.c"):
            (self.root / name).write_text("int one;\n")
        self.commit()
        self.git("checkout", "-q", "-b", "other")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments], cwd=self.root,
                       check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "one")

    def test_committed_edited_new_and_missing_files_are_changed(self):
        (self.root / "committed.c").write_text("int two;\n")
        self.commit()
        (self.root / "edited.c").write_text("int two;\n")
        (self.root / "new.c").write_text('#include "edited.h"\n')
        (self.root / "gone.c").unlink()
        base, name = check.base_of(self.root, None)
        self.assertEqual(name, "main")
        self.assertEqual(check.changed(self.root, base), ["committed.c", "edited.c", "gone.c", "new.c"])
        self.assertEqual(check.changed(self.root, check.base_of(self.root, "HEAD")[0]), ["edited.c", "gone.c", "new.c"])
        self.assertIn("edited.h", check.read_includes(self.root)["new.c"])


class Unbuilt(unittest.TestCase):
    """A build folder in which nothing was built yet, as after ./dev build in a fresh clone."""

    def test_programs_that_are_not_built_are_known(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            build = root / "build"
            place = build / "tests/base"
            place.mkdir(parents=True)
            (build / "CTestTestfile.cmake").write_text('subdirs("tests/base")\n')
            (place / "CTestTestfile.cmake").write_text(
                f'add_test([=[test_proc]=] "{build}/tests/test_proc")\n'
                f'set_tests_properties([=[test_proc]=] PROPERTIES COST "3" WORKING_DIRECTORY "{place}")\n'
                f'add_test([=[test_proc_scalar]=] "{build}/tests/test_proc")\n'
                f'set_tests_properties([=[test_proc_scalar]=] PROPERTIES WORKING_DIRECTORY "{place}")\n')
            tests = check.read_tests(root, build)
            self.assertEqual([(one.name, one.folder, one.cost, one.words, one.programs) for one in tests],
                             [("test_proc", "tests/base", 3, {"test_proc"}, {"tests/test_proc"}),
                              ("test_proc_scalar", "tests/base", 1, {"test_proc"}, {"tests/test_proc"})])


if __name__ == "__main__":
    unittest.main()
