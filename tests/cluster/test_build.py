"""`shortlist-mpi build`, as its users run it: the file of `shortlist build`, killed and gone on with, and refused."""

import errno
import os
import random
import signal
import struct
import time
import unittest

from harness import PRELOAD, SANITIZER
from jobs import MPI_COMMAND, JobTest
from test_mounts import MOUNTS

DIM = 16


class BuildTest(JobTest):
    def base(self, n, name="base.i8bin", dim=DIM):
        """A file of n small numbers, made at once."""
        self.write(name, struct.pack("<II", n, dim) + random.Random(n).randbytes(n * dim).translate(
            bytes((x & 31) for x in range(256))))
        return name

    def same(self, ranks, *options, base="base.i8bin"):
        self.run_ok("build", base, "-o", "one.sl", "--metric", "l2", *options)
        told = self.job_json(ranks, "build", base, "-o", "many.sl", "--metric", "l2", "--threads", 1, *options)
        self.assertEqual(self.read("one.sl"), self.read("many.sl"), (ranks, options))
        self.assertEqual(sorted(os.listdir(self.folder)), sorted({"one.sl", "many.sl", *self.inputs()}))
        return told

    def inputs(self):
        return {name for name in os.listdir(self.folder) if not name.startswith(("one.", "many."))}

    def test_gives_the_bytes_of_one_process(self):
        self.base(6001)
        for ranks in (1, 2, 3, 4, 6):
            told = self.same(ranks)
            self.assertEqual((told["ranks"], told["ranks_building"], len(told["peak_memory"])), (ranks, ranks, ranks))
            self.assertEqual((told["n"], told["threads"], told["leaves_noted"]), (6001, 1, 0))
            self.assertTrue(all(1 << 20 < peak < 1 << 30 for peak in told["peak_memory"]), told["peak_memory"])
            self.assertGreater(told["leaves"], 40)
            self.assertGreater(told["bytes_sent"], 100000)

    def test_other_options(self):
        n = 5000
        self.base(n)
        self.vectors("ids.npy", [[3 * i + 5] for i in range(n)], "u64")
        self.vectors("keys.npy", [[i * i] for i in range(n)], "u64")
        self.same(3, "--ids", "ids.npy", "--keys", "keys.npy", "--layout", "records")
        self.same(2, "--max-memory", "8M")
        self.run_ok("convert", "base.i8bin", "base.fvecs")  # unpacked by each rank
        self.same(2, "--codes", "i4", "--m", 20, "--ef-build", 250, base="base.fvecs")

    def test_rank_0_inserts_alone(self):
        self.base(900)
        told = self.same(3)
        self.assertEqual((told["ranks"], told["ranks_building"]), (3, 1))
        self.base(2)
        self.same(4)
        said = self.job_ok(2, "build", "base.i8bin", "-o", "many.sl", "--metric", "l2")
        self.assertIn("rank 0 inserted all vectors alone", said)
        self.base(4200)
        done = self.job(2, "build", "base.i8bin", "-o", "many.sl", "--metric", "l2", "--m", 32)
        self.assertIn("give --builder leaves to share the work", done.stderr)
        self.assertEqual(self.same(2, "--m", 32, "--builder", "leaves")["ranks_building"], 2)

    def test_room(self):
        self.base(5000)
        self.job_ok(2, "build", "base.i8bin", "-o", "many.sl", "--metric", "l2", "--room", 6000)
        self.run_ok("check", "many.sl")
        self.base(900, "more.i8bin")
        self.run_ok("add", "many.sl", "more.i8bin")

    def notes(self):
        return sum(os.path.getsize(self.path(name)) for name in os.listdir(self.folder) if ".work." in name)

    def killed(self, ranks, *arguments):
        """Kills a rank once the leaves of the build have notes."""
        job, pids = self.started(ranks, "build", *map(str, arguments))
        while self.notes() < 6_000_000:
            self.assertIsNone(job.poll(), "the build ended before it was killed")
            time.sleep(0.002)
        begin = time.monotonic()
        os.kill(pids[-1], signal.SIGKILL)
        job.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertNotEqual(job.returncode, 0)
        self.assertNotIn("many.sl", os.listdir(self.folder))

    def test_goes_on_after_a_kill(self):
        self.base(40000, dim=64)
        options = ["base.i8bin", "-o", "many.sl", "--metric", "l2", "--threads", 1, "--ef-build", 400]
        self.killed(3, *options)
        told = self.job_json(2, "build", *options)
        self.assertGreater(told["leaves_noted"], 10)
        self.assertGreater(told["leaves"], told["leaves_noted"])
        self.run_ok("build", *options[:2], "one.sl", *options[3:])
        self.assertEqual(self.read("one.sl"), self.read("many.sl"))
        self.assertEqual(self.notes(), 0)

    def test_an_interrupted_build_goes_on(self):
        self.base(40000, dim=64)
        options = ["base.i8bin", "-o", "many.sl", "--metric", "l2", "--threads", "1", "--ef-build", "1000"]
        job, pids = self.started(2, "build", *options)
        while self.notes() < 6_000_000:
            self.assertIsNone(job.poll(), "the build ended before it was interrupted")
            time.sleep(0.002)
        # To the ranks: mpirun would pass it on when it may be too late.
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        said = job.communicate(timeout=60)[1]
        self.assertEqual(job.returncode, 1)
        self.assertIn("let the same command go on", said)
        self.assertGreater(self.notes(), 6_000_000)
        self.assertFalse([name for name in os.listdir(self.folder) if ".tmp." in name], said)
        self.assertGreater(self.job_json(2, "build", *options)["leaves_noted"], 10)

    def test_ranks_that_differ(self):
        """One command line, but rank 1 sees other files."""
        self.base(5000)
        os.mkdir(self.path("other"))
        build = ("build", "base.i8bin", "-o", self.path("many.sl"), "--metric", "l2")
        self.elsewhere_bad(*build, says=("base.i8bin",))
        self.write("other/base.i8bin", self.read("base.i8bin")[:-DIM * 160] + bytes(DIM * 160))
        self.elsewhere_bad(*build, says=("checksum of the base: ", "on rank 0"))
        self.write("other/base.i8bin", struct.pack("<II", 5000, DIM - 1) + bytes(5000 * (DIM - 1)))
        self.elsewhere_bad(*build, says=("dimensions of the base: 15 here, 16 on rank 0",))
        own = [MPI_COMMAND, *build]
        self.fails(self.mixed(own, [*own, "--m", "17"]), 1, ("rank 1 (", "command line"))

    @unittest.skipUnless(PRELOAD and not SANITIZER, "nothing to load before the C library")
    def test_a_file_system_without_locks(self):
        self.base(5000)
        build = ["build", "base.i8bin", "-o", "many.sl", "--metric", "l2"]
        own = [MPI_COMMAND, *build]
        unlocked = ["env", f"LD_PRELOAD={PRELOAD}", f"REFUSE_LOCKS={errno.ENOLCK}", *own]
        done = self.mixed(own, unlocked)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the build keeps no notes", done.stderr)
        self.run_ok(*build[:3], "one.sl", *build[4:])
        self.assertEqual(self.read("one.sl"), self.read("many.sl"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["base.i8bin", "many.sl", "one.sl"])

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_full_disk(self):
        self.base(5000)
        self.full_bad(3, "build", "base.i8bin", "-o", "small/many.sl", "--metric", "l2", size="1m",
                      says=("rank ", "small/many.sl", "No space left"))

    def test_refuses_bad_input(self):
        rows = [[1.0, float(i)] for i in range(5000)]
        rows[4700][1] = float("nan")
        self.vectors("bad.fbin", rows)
        self.job_bad(3, 1, "build", "bad.fbin", "-o", "x.sl", "--metric", "l2", says=("rank 2", "row 4700"))
        self.base(5000)
        self.job_bad(2, 1, "build", "base.i8bin", "-o", "no/x.sl", "--metric", "l2", says=("no",))
        self.job_bad(2, 1, "build", "base.i8bin", "-o", "x.sl", "--metric", "l2", "--max-memory", "100K",
                     says=("--max-memory",))
        self.job_bad(2, 2, "build", "base.i8bin", "-o", "x.sl", says=("--metric",))
        self.job_bad(2, 2, "build", "base.i8bin", "-o", "x.sl", "--metric", "l2", "--dry-run", says=("--dry-run",))


if __name__ == "__main__":
    unittest.main()
