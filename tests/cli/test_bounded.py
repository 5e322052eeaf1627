"""Builds in bounded memory: the same file, under a limit of the system, and on from where a kill ended them."""

import os
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from harness import COMMAND, SANITIZER, CommandTest, clustered, encode

BUILD = ("build", "base.fbin", "--metric", "l2", "--builder", "leaves", "--threads", "2")
BOUND = ("--max-memory", "6M")
MB = 1 << 20


class Bounded(CommandTest):
    @classmethod
    def setUpClass(cls):
        """The base, and the file of a build without a bound."""
        cls.base = encode(clustered(20000, 32, 3), ".fbin")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "base.fbin"), "wb") as file:
                file.write(cls.base)
            subprocess.run([COMMAND, *BUILD, "-o", "whole.sl"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(folder, "whole.sl"), "rb") as file:
                cls.whole = file.read()

    def setUp(self):
        super().setUp()
        self.write("base.fbin", self.base)

    def files(self):
        return sorted(os.listdir(self.folder))

    def test_every_bound_gives_the_same_file(self):
        for bound, threads in (("7M", 3), ("12M", 1), ("1G", 2)):
            self.run_ok(*BUILD, "-o", "x.sl", "--threads", threads, "--max-memory", bound)
            self.assertEqual(self.read("x.sl"), self.whole, (bound, threads))
        self.assertEqual(self.files(), ["base.fbin", "x.sl"])

    @unittest.skipIf(SANITIZER, "a sanitizer has memory of its own")
    def test_the_system_bounds_the_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (14 * MB, 14 * MB))

        env = {**os.environ, "OMP_STACKSIZE": "512K"}
        self.run_bad(1, *BUILD, "-o", "x.sl", says=["base.fbin", "memory"], env=env, preexec_fn=limit)
        self.run_ok(*BUILD, "-o", "x.sl", *BOUND, env=env, preexec_fn=limit)
        self.assertEqual(self.read("x.sl"), self.whole)

    def test_a_bound_too_small(self):
        said = self.run_bad(1, *BUILD, "-o", "x.sl", "--max-memory", "100K",
                            says=["base.fbin", "--max-memory 100.0 KiB", "102400 are allowed"])
        self.assertRegex(said, r"takes \d{6} bytes of memory or more")

    def end(self, arguments, size, number):
        """Sends a signal once the notes of the work on x.sl or y.sl have this size; what was said."""
        work = self.path(arguments[arguments.index("-o") + 1] + ".work")
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if os.path.exists(work) and os.path.getsize(work) > size:
                break
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, -number, said)
        return said

    def kill(self, size):
        """Kills a build once its notes have this size."""
        self.end((*BUILD, "-o", "x.sl", *BOUND), size, signal.SIGKILL)
        self.assertEqual(self.files(), ["base.fbin", "x.sl.work"])
        return os.path.getsize(self.path("x.sl.work"))

    def test_a_killed_build_goes_on(self):
        first = self.kill(2 * MB)
        kept = self.read("x.sl.work")[:MB]  # behind it a note may be torn
        self.assertGreater(self.kill(first + MB // 2), first)
        self.assertEqual(self.read("x.sl.work")[:MB], kept)
        self.run_ok(*BUILD, "-o", "x.sl", *BOUND)
        self.assertEqual(self.read("x.sl"), self.whole)
        self.assertEqual(self.files(), ["base.fbin", "x.sl"])
        self.assertTrue(self.run_json("check", "x.sl")["ok"])

    def test_interrupted(self):
        said = "interrupted; no index was written, and {}.work lets the same command go on\n"
        build = (*BUILD, "-o", "x.sl", *BOUND)
        self.assertEqual(self.end(build, 2 * MB, signal.SIGINT), "shortlist build: " + said.format("x.sl"))
        self.run_ok(*build)
        self.assertEqual(self.read("x.sl"), self.whole)
        merge = ("merge", "x.sl", "x.sl", "-o", "y.sl", "--clash", "later", "--builder", "leaves",
                 "--max-memory", "8M")
        self.assertEqual(self.end(merge, 2 * MB, signal.SIGINT), "shortlist merge: " + said.format("y.sl"))
        self.assertEqual(self.files(), ["base.fbin", "x.sl", "y.sl.work"])
        self.run_ok(*merge)
        self.assertEqual(self.files(), ["base.fbin", "x.sl", "y.sl"])

    def test_notes_are_told_of_where_there_are_any(self):
        for size in (0, 1, 100):
            said = self.end((*BUILD, "-o", "x.sl", *BOUND), size, signal.SIGINT)
            noted = "x.sl.work" in self.files()
            self.assertEqual("x.sl.work" in said, noted, said)
            if noted:
                os.remove(self.path("x.sl.work"))

    def test_merges_and_rebuilds(self):
        self.run_ok(*BUILD, "-o", "x.sl", *BOUND)
        for bound in ((), ("--max-memory", "7M")):
            self.run_ok("merge", "x.sl", "-o", "y.sl", "--threads", 2, "--builder", "leaves", *bound)
            merged = self.read("y.sl")
            self.run_ok("rebuild", "x.sl", "--threads", 2, "--builder", "leaves", "--output", "z.sl", *bound)
            self.assertEqual(self.read("z.sl"), merged)
        self.assertEqual(self.files(), ["base.fbin", "x.sl", "y.sl", "z.sl"])
        for command in (("merge", "x.sl", "-o", "w.sl"), ("rebuild", "x.sl")):
            self.run_bad(1, *command, "--max-memory", "100K",
                         says=[command[-1] + ":", "--max-memory 100.0 KiB", "are allowed"])

    def test_a_base_that_is_unpacked(self):
        """A .fvecs larger than an eighth of the bound is unpacked into a file."""
        self.write("base.fvecs", encode(clustered(20000, 32, 3), ".fvecs"))
        build = [word.replace(".fbin", ".fvecs") for word in BUILD]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        self.run_bad(1, *build, "-o", "x.sl", *BOUND, preexec_fn=limit,
                     says=["base.fvecs: cannot unpack it into a file of 2560000 bytes beside x.sl", "make room"])
        self.assertEqual(self.files(), ["base.fbin", "base.fvecs"])
        self.run_ok(*build, "-o", "x.sl", *BOUND)
        self.assertEqual(self.read("x.sl"), self.whole)
        self.run_ok(*build, "-o", "x.sl")
        self.assertEqual(self.read("x.sl"), self.whole)
        self.assertEqual(self.files(), ["base.fbin", "base.fvecs", "x.sl"])

    def test_two_at_once(self):
        """One builds; the other waits for a moment, and is refused or builds the same."""
        self.kill(2 * MB)
        first = subprocess.Popen([COMMAND, *BUILD, "-o", "x.sl", *BOUND], cwd=self.folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True)
        second = self.start(*BUILD, "-o", "x.sl", *BOUND)
        said = first.communicate()[1] + second.stderr
        self.assertIn(0, (first.returncode, second.returncode))
        if first.returncode or second.returncode:
            self.assertIn("x.sl.work: is being written by another process", said)
        self.assertEqual(self.read("x.sl"), self.whole)
        self.assertEqual(self.files(), ["base.fbin", "x.sl"])

    def test_other_files_stay(self):
        self.write("x.sl.work", b"letters")
        self.run_bad(1, *BUILD, "-o", "x.sl", *BOUND, says=["x.sl.work", "no work file"])
        self.run_ok(*BUILD, "-o", "x.sl")
        self.assertEqual(self.read("x.sl.work"), b"letters")


if __name__ == "__main__":
    unittest.main()
