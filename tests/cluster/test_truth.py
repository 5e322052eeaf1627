"""`shortlist-mpi truth`: the same files as `shortlist truth`, at any number of ranks."""

import os
import random
import signal
import unittest

from harness import clustered
from jobs import JobTest
from test_mounts import MOUNTS


class TruthTest(JobTest):
    def setUp(self):
        super().setUp()
        rows = clustered(300, 12, 1)
        self.vectors("base.fbin", rows + rows[:40])
        self.vectors("queries.fbin", rows[:8] + clustered(13, 12, 2))

    def same(self, ranks, *options):
        self.run_ok("truth", "base.fbin", "queries.fbin", "-o", "one.npy", "--scores", "one.fbin", *options)
        self.job_ok(ranks, "truth", "base.fbin", "queries.fbin", "-o", "many.npy", "--scores", "many.fbin", *options)
        self.assertEqual(self.read("one.npy"), self.read("many.npy"), (ranks, options))
        self.assertEqual(self.read("one.fbin"), self.read("many.fbin"), (ranks, options))

    def test_gives_the_bytes_of_one_process(self):
        for ranks, metric in ((1, "cosine"), (2, "ip"), (3, "l2"), (4, "cosine")):
            self.same(ranks, "-k", 45, "--metric", metric)

    def test_names_rows_by_ids(self):
        self.vectors("ids.npy", [[i] for i in random.Random(3).sample(range(1 << 40), 340)], "u64")
        self.same(3, "-k", 9, "--metric", "l2", "--ids", "ids.npy")

    def test_more_ranks_than_rows(self):
        self.vectors("base.fbin", clustered(3, 12, 4))
        self.same(4, "-k", 3, "--metric", "cosine")

    def test_little_memory_takes_batches(self):
        done = self.job_json(2, "truth", "base.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "few.ibin",
                             "--max-memory", "8K")
        self.assertLess(done["batch"], 21)
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "all.ibin")
        self.assertEqual(self.read("few.ibin"), self.read("all.ibin"))

    def test_ranks_that_differ(self):
        truth = ("truth", "base.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "x.ibin")
        os.mkdir(self.path("other"))
        base, queries = self.read("base.fbin"), self.read("queries.fbin")
        self.write("other/queries.fbin", queries)
        self.vectors("other/base.fbin", clustered(339, 12, 1))
        self.elsewhere_bad(*truth, says=("rows of the base: 339 here, 340 on rank 0",))
        self.write("other/base.fbin", base[:-4800] + bytes(4800))
        self.elsewhere_bad(*truth, says=("checksum of the base: ", "on rank 0"))
        self.write("other/base.fbin", base)
        self.write("other/queries.fbin", queries[:-4] + bytes(4))
        self.elsewhere_bad(*truth, says=("checksum of the queries: ", "on rank 0"))

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_full_disk(self):
        self.full_bad(2, "truth", "base.fbin", "queries.fbin", "-k", 200, "--metric", "l2", "-o", "small/x.npy",
                      says=("rank 0 (", "small/x.npy", "No space left"))

    def test_goes_anew_after_a_kill(self):
        truth = ("truth", "base.fbin", "queries.fbin", "-k", "90", "--metric", "l2", "-o", "x.npy")
        self.vectors("queries.fbin", clustered(6000, 12, 2))
        job, pids = self.started(2, *truth, "--threads", "1", "--max-memory", "200K")
        while not [name for name in os.listdir(self.folder) if name.startswith("x.npy")]:
            self.assertIsNone(job.poll(), "the job ended before it was killed")
        os.kill(pids[1], signal.SIGKILL)
        job.communicate(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        self.assertNotIn("x.npy", os.listdir(self.folder))
        self.job_ok(2, *truth)
        self.run_ok("truth", *truth[1:-1], "one.npy")
        self.assertEqual(self.read("x.npy"), self.read("one.npy"))
        left = sorted(name for name in os.listdir(self.folder) if ".tmp-" not in name)
        self.assertEqual(left, ["base.fbin", "one.npy", "queries.fbin", "x.npy"])

    def test_refuses_bad_input(self):
        self.job_bad(2, 1, "truth", "base.fbin", "queries.fbin", "-k", 400, "--metric", "l2", "-o", "x.ibin",
                     says=("-k is 400", "340"))
        self.job_bad(2, 1, "truth", "base.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "no/x.ibin",
                     says=("rank 0", "no/x.ibin"))
        self.job_bad(2, 1, "truth", "base.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "x.ibin",
                     "--max-memory", "900", says=("--max-memory 900", "give at least"))
        rows = clustered(300, 12, 1)
        rows[251][3] = float("nan")
        self.vectors("bad.fbin", rows)
        self.job_bad(3, 1, "truth", "bad.fbin", "queries.fbin", "-k", 4, "--metric", "l2", "-o", "x.ibin",
                     says=("rank 2", "bad.fbin", "row 251"))
        self.job_bad(2, 2, "truth", "base.fbin", "queries.fbin", "-k", 4, "-o", "x.ibin", says=("--metric",))


if __name__ == "__main__":
    unittest.main()
