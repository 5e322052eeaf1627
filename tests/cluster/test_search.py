"""`shortlist-mpi search` and `eval` over one index that every rank opens."""

import os
import struct
import unittest

from harness import clustered
from jobs import JobTest
from test_mounts import MOUNTS


class SearchTest(JobTest):
    def setUp(self):
        super().setUp()
        rows = clustered(900, 12, 1)
        self.vectors("base.fbin", rows[:879])
        self.vectors("queries.fbin", rows[879:])
        self.run_ok("build", "base.fbin", "-o", "x.sl", "--metric", "cosine", "--threads", 1)
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 10, "--metric", "cosine", "-o", "truth.ibin")

    def test_gives_the_rows_of_one_process(self):
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 7, "--ef", 20, "-o", "one.ibin", "--scores", "one.fbin")
        for ranks in (1, 2, 3, 4):
            done = self.job_json(ranks, "search", "x.sl", "queries.fbin", "-k", 7, "--ef", 20, "-o", "many.ibin",
                                 "--scores", "many.fbin")
            self.assertEqual((done["ranks"], done["queries"], done["results"]), (ranks, 21, 147))
            self.assertEqual(self.read("many.ibin"), self.read("one.ibin"), ranks)
            self.assertEqual(self.read("many.fbin"), self.read("one.fbin"), ranks)

    def test_more_ranks_than_queries(self):
        self.vectors("few.fbin", clustered(2, 12, 5))
        self.run_ok("search", "x.sl", "few.fbin", "-k", 3, "-o", "one.npy")
        self.job_ok(4, "search", "x.sl", "few.fbin", "-k", 3, "-o", "many.npy")
        self.assertEqual(self.read("many.npy"), self.read("one.npy"))
        self.run_ok("truth", "base.fbin", "few.fbin", "-k", 3, "--metric", "cosine", "-o", "few.ibin")
        asked = ("eval", "x.sl", "few.fbin", "few.ibin", "-k", 3, "--ef", 400)
        self.assertEqual(self.run_json(*asked)["points"][0]["recall"], self.job_json(4, *asked)["points"][0]["recall"])

    def test_eval_agrees_with_one_process(self):
        asked = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", "10,40", "--repeat", 2)
        one, many = self.run_json(*asked), self.job_json(3, *asked)
        for mine, theirs in zip(one["points"], many["points"]):
            self.assertEqual(set(mine), set(theirs))
            for name in ("ef", "recall", "batch_recall", "evaluations", "results"):
                self.assertAlmostEqual(mine[name], theirs[name], 9, name)
            self.assertGreater(theirs["qps"], 0)
            self.assertGreaterEqual(theirs["p99_us"], theirs["p50_us"])
        self.assertLess(many["points"][0]["recall"], 1)

    def test_eval_finds_the_ef_of_a_recall(self):
        asked = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--recall", "0.97")
        one, many = self.run_json(*asked)["at"][0], self.job_json(2, *asked)["at"][0]
        self.assertEqual((one["ef"], one["recall"], one["reached"]), (many["ef"], many["recall"], many["reached"]))

    def test_takes_tuned_settings(self):
        rows = clustered(900, 12, 9)
        self.vectors("tune.fbin", rows[:60])
        self.run_ok("truth", "base.fbin", "tune.fbin", "-k", 10, "--metric", "cosine", "-o", "tune.ibin")
        self.run_ok("tune", "x.sl", "tune.fbin", "tune.ibin", "-k", 10, "--recall", "0.9")
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 10, "--recall", "0.9", "-o", "one.ibin")
        self.job_ok(3, "search", "x.sl", "queries.fbin", "-k", 10, "--recall", "0.9", "-o", "many.ibin")
        self.assertEqual(self.read("many.ibin"), self.read("one.ibin"))

    def test_ranks_that_differ(self):
        search = ("search", "x.sl", "queries.fbin", "-k", 7, "-o", "y.ibin")
        os.mkdir(self.path("other"))
        for name in ("x.sl", "queries.fbin", "truth.ibin"):
            self.write(f"other/{name}", self.read(name))
        queries, truth = self.read("queries.fbin"), self.read("truth.ibin")
        self.vectors("other/queries.fbin", clustered(20, 12, 5))
        self.elsewhere_bad(*search, says=("rows of the queries: 20 here, 21 on rank 0",))
        self.write("other/queries.fbin", queries[:-4] + bytes(4))
        self.elsewhere_bad(*search, says=("checksum of the queries: ", "on rank 0"))
        self.write("other/queries.fbin", queries)
        self.write("other/truth.ibin", truth[:-4] + bytes(4))
        self.elsewhere_bad("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, says=("truth is not that of rank 0",))
        # The same vectors in another order give another index of the same size.
        rows = clustered(900, 12, 1)[:879]
        self.vectors("other/base.fbin", rows[::-1])
        self.run_ok("build", "other/base.fbin", "-o", "other/x.sl", "--metric", "cosine", "--threads", 1)
        self.elsewhere_bad(*search, says=("checksum of the index: ", "on rank 0"))

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_full_disk(self):
        self.full_bad(2, "search", "x.sl", "queries.fbin", "-k", 300, "--ef", 300, "-o", "small/y.ibin",
                      says=("rank 0 (", "small/y.ibin", "No space left"))

    def test_a_signal_to_one_rank_ends_all(self):
        queries = self.read("queries.fbin")
        self.write("many.fbin", struct.pack("<II", 21 * 20000, 12) + 20000 * queries[8:])
        self.interrupted("search", "x.sl", "many.fbin", "-k", 10, "--ef", 400, "-o", "y.npy", "--threads", 1)
        self.assertNotIn("y.npy", os.listdir(self.folder))
        self.interrupted("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", "10,20,40,80,160,320", "--repeat", 1000)

    def test_refuses_bad_input(self):
        search = ("search", "x.sl", "queries.fbin", "-o", "y.ibin")
        self.job_bad(2, 1, *search, "-k", 0, says=("-k is 0",))
        self.job_bad(2, 1, *search, "-k", 5, "--recall", "0.9", says=("0.9",))
        self.job_bad(2, 1, "search", "no.sl", "queries.fbin", "-k", 5, "-o", "y.ibin", says=("no.sl",))
        self.job_bad(2, 2, *search, "-k", 5, "--ef", 9, "--recall", "0.9", says=("exclude",))
        self.vectors("wide.fbin", clustered(3, 13, 1))
        self.job_bad(2, 1, "search", "x.sl", "wide.fbin", "-k", 5, "-o", "y.ibin", says=("13", "12"))
        self.job_bad(2, 1, "eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 11, says=("truth.ibin",))
        self.vectors("wrong.ibin", [[880 + i for i in range(10)]] * 21)
        self.job_bad(2, 1, "eval", "x.sl", "queries.fbin", "wrong.ibin", "-k", 10, says=("wrong.ibin", "880"))


if __name__ == "__main__":
    unittest.main()
