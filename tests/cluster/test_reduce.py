"""`shortlist-mpi allreduce` and `tune`: sums, their cost, and tables of the fastest."""

import os
import unittest

from jobs import JobTest

TABLE = """shortlist-mpi tuning 1
ranks {ranks}
machines 1
machine_ranks {ranks}
wire f32
mpi {mpi}
up_to 4096 ring 0x0 halving fence 0 shared 0 seconds 1e-05
up_to 65536 torus 1x{ranks} ring fence 0 shared 0 seconds 2e-05
up_to 1048576 mpi 0x0 halving fence 0 shared 1 seconds 3e-05
"""


class ReduceTest(JobTest):
    def sums(self, ranks, *options):
        return self.job_json(ranks, "allreduce", "--rounds", 2, "--verify", *options)["algorithms"]

    def test_measures_and_verifies_all(self):
        done = self.job_json(3, "allreduce", "--count", 20011, "--rounds", 3, "--verify")
        self.assertEqual([done["ranks"], done["count"], done["type"], done["rounds"]], [3, 20011, "f32", 3])
        names = [racer["algorithm"] for racer in done["algorithms"]]
        self.assertEqual(names, ["mpi", "ring", "rabenseifner", "torus", "torus-put", "bine"])
        for racer in done["algorithms"]:
            self.assertLessEqual(racer["error"], racer["bound"])
            self.assertEqual([racer["messages"], racer["bytes"]], [racer["formula_messages"], racer["formula_bytes"]])
            self.assertTrue(0 < racer["least_s"] <= racer["median_s"] <= racer["most_s"])
        ring = done["algorithms"][1]
        self.assertEqual(ring["messages"], 4)
        self.assertEqual(ring["bytes"], 4 * (2 * 20011 - 6671 - 6670))

    def test_options_reach_the_algorithm(self):
        (torus,) = self.sums(4, "--algorithm", "torus", "--shape", "2x2", "--count", 1000, "--type", "bf16")
        for racer in self.sums(2, "--count", 0):
            self.assertEqual([racer["bytes"], racer["formula_bytes"]], [0, 0])
        self.assertEqual([torus["rows"], torus["columns"], torus["bytes"]], [2, 2, 2 * 1500])
        (put,) = self.sums(4, "--algorithm", "torus-put", "--shape", "1x4", "--count", 1000, "--put-reduces",
                           "--sync", "pscw", "--chunk", 300)
        self.assertEqual([put["algorithm"], put["messages"]], ["torus-put", 4 * 5])
        (ring,) = self.sums(4, "--algorithm", "torus", "--shape", "1x4", "--lane", "ring", "--count", 1000)
        self.assertEqual(ring["messages"], 6)
        (shared,) = self.sums(3, "--algorithm", "ring", "--shared", "--count", 999)
        self.assertEqual([shared["shared"], shared["bytes"]], [True, 0])
        (pairs,) = self.sums(4, "--algorithm", "ring", "--shared", "--machine-ranks", 2, "--count", 1000)
        self.assertEqual([pairs["shared"], pairs["bytes"]], [True, 4000])

    def test_text_has_a_line_for_each(self):
        out = self.job_ok(2, "allreduce", "--count", 1000, "--rounds", 1, "--shape", "1x2").splitlines()
        self.assertEqual([line.split()[0] for line in out[1:]],
                         ["algorithm", "mpi", "ring", "rabenseifner", "torus", "torus-put", "bine"])
        self.assertIn("1x2", out[5])

    def test_tune_makes_a_table_that_auto_reads(self):
        done = self.job_json(2, "tune", "-o", "table", "--largest", "64K", "--time", 1)
        self.assertEqual(done["ranks"], 2)
        self.assertEqual(done["entries"][-1]["bytes"], 2 * 65536)
        (auto,) = self.sums(2, "--algorithm", "auto", "--tuning", "table", "--count", 4)
        self.assertEqual(auto["algorithm"], done["entries"][0]["algorithm"])
        self.write("mine", TABLE.format(ranks=2, mpi=done["mpi"]).encode())
        for count, name, shared in ((1024, "ring", False), (16385, "mpi", True)):
            (auto,) = self.sums(2, "--algorithm", "auto", "--tuning", "mine", "--count", count)
            self.assertEqual([auto["asked"], auto["algorithm"], auto["shared"]], ["auto", name, shared])
        # A table of another job is left alone, with a word.
        other = self.job(3, "allreduce", "--algorithm", "auto", "--tuning", "mine", "--count", 9, "--rounds", 1,
                         env={**os.environ, "SHORTLIST_LOG": "warn"})
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertEqual(other.stderr.count("it is of 2 ranks, and the job has 3"), 1, other.stderr)

    def test_refuses_bad_input(self):
        self.job_bad(2, 1, "allreduce", "--algorithm", "torus", "--shape", "3x2", says=("3 rows", "2 ranks"))
        self.job_bad(2, 2, "allreduce", "--algorithm", "torus", "--shape", "2y2", says=("--shape", "4x8"))
        self.job_bad(2, 2, "allreduce", "--tuning", "x", says=("--algorithm auto",))
        for words in (("auto", "--shape", "1x2"), ("ring", "--sync", "pscw"), ("torus", "--put-reduces"),
                      ("bine", "--lane", "ring"), ("ring", "--chunk", 9), ("ring", "--machine-ranks", 2)):
            self.job_bad(2, 2, "allreduce", "--algorithm", *words, says=(words[1],))
        for patience in ("1", "-1", "soon"):
            self.job_bad(2, 1, "ranks", says=("SHORTLIST_MPI_PATIENCE", patience),
                         env={**os.environ, "SHORTLIST_MPI_PATIENCE": patience})
        self.write("bad", TABLE.format(ranks="two", mpi="x").encode())
        self.job_bad(2, 1, "allreduce", "--algorithm", "auto", "--tuning", "bad", says=("bad: line 2 ",))
        os.mkfifo(self.path("pipe"))
        self.job_bad(2, 1, "allreduce", "--algorithm", "auto", "--tuning", "pipe", says=("pipe: not a regular file",))
        self.job_bad(2, 2, "allreduce", "--algorithm", "torus", "--shape", "-1x3", says=("--shape is '-1x3'",))
        self.job_bad(2, 1, "tune", "-o", "no/table", says=("no/table",))
        self.job_bad(2, 2, "tune", "-o", "table", "--least", "1M", "--largest", "1K", says=("--least",))

    def test_a_signal_to_one_rank_ends_all(self):
        self.interrupted("allreduce", "--count", 4000000, "--rounds", 1000)
        self.interrupted("tune", "-o", "table")
        self.assertNotIn("table", os.listdir(self.folder))


if __name__ == "__main__":
    unittest.main()
