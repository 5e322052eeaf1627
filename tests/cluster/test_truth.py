"""`shortlist-mpi truth`: the same files as `shortlist truth`, at any number of ranks."""

import random
import unittest

from harness import clustered
from jobs import JobTest


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
