"""`shortlist-mpi split`, and searches of its parts."""

import os
import shutil
import struct
import unittest

from harness import clustered, decode
from jobs import JobTest

ROWS, DIM, QUERIES, K = 2400, 12, 37, 10


class SplitTest(JobTest):
    def setUp(self):
        super().setUp()
        rows = clustered(ROWS + QUERIES, DIM, 1, spread=0.8)
        self.vectors("base.fbin", rows[:ROWS])
        self.vectors("queries.fbin", rows[ROWS:])
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", K, "--metric", "cosine", "-o", "truth.ibin")
        self.truth, _ = decode(self.path("truth.ibin"))

    def split(self, ranks, folder, *options):
        return self.job_json(ranks, "split", "base.fbin", "-o", folder, "--metric", "cosine", "--codes", "f32",
                             "--threads", 1, *options)

    def files(self, folder):
        return {name: self.read(os.path.join(folder, name)) for name in os.listdir(self.path(folder))}

    def recall(self, name):
        found, _ = decode(self.path(name))
        hits = sum(len(set(mine) & set(true)) for mine, true in zip(found, self.truth))
        for row in found:
            self.assertEqual(len(set(row)), len(row), "an id came twice")
        return hits / (QUERIES * K)

    def search(self, ranks, folder, *options):
        done = self.job_json(ranks, "search", folder, "queries.fbin", "-k", K, "-o", "found.ibin", *options)
        return done, self.recall("found.ibin")


class SlicesTest(SplitTest):
    def test_finds_what_all_parts_hold(self):
        made = self.split(3, "slices", "--split", "slices")
        self.assertEqual((made["parts"], made["stored"]), ([800, 800, 800], ROWS))
        results = []
        for ranks in (1, 2, 3, 4):
            done, recall = self.search(ranks, "slices", "--ef", 800, "--batch", 5)
            self.assertEqual((done["asked"], recall), (3, 1), ranks)
            results.append(self.read("found.ibin"))
        self.assertEqual(len(set(results)), 1)
        self.assertIn("800 vectors", self.run_ok("info", "slices/part-1.sl"))
        self.run_ok("check", "slices/part-2.sl")

    def test_more_parts_than_vectors(self):
        rows = clustered(3, DIM, 4)
        self.vectors("base.fbin", rows)
        made = self.split(2, "few", "--split", "slices", "--parts", 4)
        self.assertEqual(sum(made["parts"]), 3)
        self.assertIn(0, made["parts"])
        self.job_ok(3, "search", "few", "base.fbin", "-k", 3, "-o", "found.ibin")
        self.assertEqual([sorted(row) for row in decode(self.path("found.ibin"))[0]], [[0, 1, 2]] * 3)


class NeighbourhoodsTest(SplitTest):
    def test_the_same_files_at_any_number_of_ranks(self):
        made = [self.split(ranks, f"x{ranks}", "--parts", 3) for ranks in (1, 2, 3, 4)]
        for ranks in (2, 3, 4):
            self.assertEqual(self.files("x1"), self.files(f"x{ranks}"), ranks)
        self.assertEqual(made[0]["parts"], made[3]["parts"])

    def test_every_vector_is_in_one_part_or_two(self):
        made = self.split(3, "near", "--replicate", "0.2")
        self.assertEqual(sum(made["parts"]), made["stored"])
        self.assertLessEqual(made["stored"], 1.2 * ROWS)
        self.assertGreater(made["stored"], 1.1 * ROWS)
        self.assertLess(max(made["parts"]), 1.6 * ROWS / 3)
        none = self.split(3, "apart", "--replicate", "0")
        self.assertEqual((none["stored"], sum(none["parts"])), (ROWS, ROWS))

    def test_asks_few_parts_and_finds_most(self):
        self.split(4, "near")
        few, low = self.search(4, "near", "--ef", 100, "--cover", "0.8")
        many, high = self.search(4, "near", "--ef", 100, "--cover", "0.99")
        every, all_found = self.search(3, "near", "--ef", 700, "--cover", "1")
        self.assertLess(few["asked"], many["asked"])
        self.assertLess(many["asked"], 3)
        self.assertLess(few["evaluations"], every["evaluations"])
        self.assertGreater(low, 0.7)
        self.assertGreater(high, 0.93)
        self.assertGreaterEqual(all_found, high)

    def test_batches_and_ranks_do_not_matter(self):
        self.split(3, "near")
        results = set()
        for ranks, batch in ((1, 256), (2, 1), (3, 7), (4, 100)):
            self.search(ranks, "near", "--ef", 50, "--batch", batch)
            results.add(self.read("found.ibin"))
        self.assertEqual(len(results), 1)

    def test_a_bound_spares_evaluations(self):
        made = self.split(2, "near", "--split", "neighbourhoods")
        self.split(2, "slices", "--split", "slices")
        asked = ("queries.fbin", "truth.ibin", "-k", K, "--ef", 100, "--repeat", 1)
        near = self.job_json(2, "eval", "near", *asked, "--cover", "1")
        slices = self.job_json(2, "eval", "slices", *asked)
        self.assertEqual((near["split"], near["parts"], slices["split"]), ("neighbourhoods", 2, "slices"))
        self.assertAlmostEqual(near["replication"], made["replication"])
        near, slices = near["points"][0], slices["points"][0]
        self.assertEqual(slices["asked"], 2)
        self.assertLess(near["evaluations"], 0.8 * slices["evaluations"])
        self.assertGreater(near["recall"], 0.95)
        self.assertGreater(near["messages"], 0)

    def test_names_vectors_by_ids(self):
        self.vectors("ids.npy", [[i * 7 + 5] for i in range(ROWS)], "u64")
        self.split(2, "named", "--ids", "ids.npy")
        self.job_ok(2, "search", "named", "base.fbin", "-k", 1, "--cover", "1", "-o", "self.npy")
        found = [row[0] for row in decode(self.path("self.npy"))[0]]
        self.assertGreater(sum(found[i] == i * 7 + 5 for i in range(ROWS)), 0.99 * ROWS)

    def test_l2_and_bytes(self):
        rows = [[max(0, min(255, int(128 + 40 * x))) for x in row] for row in clustered(1500, DIM, 3)]
        self.vectors("bytes.u8bin", rows[:1480])
        self.vectors("asked.u8bin", rows[1480:])
        self.job_ok(3, "split", "bytes.u8bin", "-o", "bytes", "--metric", "l2")
        self.job_ok(3, "search", "bytes", "asked.u8bin", "-k", 5, "--cover", "1", "--ef", 400, "-o", "found.ibin")
        self.run_ok("truth", "bytes.u8bin", "asked.u8bin", "-k", 5, "--metric", "l2", "-o", "true.ibin")
        found, true = decode(self.path("found.ibin"))[0], decode(self.path("true.ibin"))[0]
        self.assertGreater(sum(len(set(a) & set(b)) for a, b in zip(found, true)), 0.95 * 100)


class BadInputTest(SplitTest):
    def setUp(self):
        super().setUp()
        self.split(2, "x")
        self.asked = ("search", "x", "queries.fbin", "-k", K, "-o", "found.ibin")

    def refused(self, *says, ranks=2):
        self.job_bad(ranks, 1, *self.asked, says=says)

    def damage(self, name, change):
        data = self.read(name)
        self.write(name, change(data))
        self.refused(os.path.basename(name))
        self.write(name, data)

    def test_parts(self):
        os.rename(self.path("x/part-1.sl"), self.path("kept.sl"))
        self.refused("rank 1", "part-1.sl", "No such file")
        shutil.copy(self.path("x/part-0.sl"), self.path("x/part-1.sl"))
        self.refused("rank 1", "part-1.sl", "another split")
        os.rename(self.path("kept.sl"), self.path("x/part-1.sl"))
        self.split(2, "y", "--ef-build", 100)
        shutil.copy(self.path("y/part-0.sl"), self.path("x/part-0.sl"))
        self.refused("rank 0", "part-0.sl", "another split")

    def test_routing_file(self):
        self.damage("x/routing.sls", lambda data: data[:len(data) // 2])
        self.damage("x/routing.sls", lambda data: data[:4096 + 8] + b"\xff" + data[4096 + 9:])
        self.damage("x/routing.sls", lambda data: data[:8] + struct.pack("<I", 9) + data[12:])
        for at in range(4096, len(self.read("x/routing.sls")), 3 * 4096):
            self.damage("x/routing.sls", lambda data, at=at: data[:at + 3] + bytes([data[at + 3] ^ 1]) + data[at + 4:])
        os.remove(self.path("x/routing.sls"))
        self.refused("routing.sls", "No such file")

    def test_inputs(self):
        self.vectors("wide.fbin", clustered(3, DIM + 1, 1))
        self.job_bad(2, 1, "search", "x", "wide.fbin", "-k", K, "-o", "f.ibin", says=("13", "12"))
        rows = clustered(20, DIM, 1)
        rows[17] = [0.0] * DIM
        self.vectors("zero.fbin", rows)
        self.job_bad(3, 1, "search", "x", "zero.fbin", "-k", K, "-o", "f.ibin", says=("zero.fbin", "row 17"))
        self.job_bad(2, 1, *self.asked, "--batch", 0, says=("--batch",))
        self.job_bad(2, 1, *self.asked, "--cover", 2, says=("--cover",))
        self.job_bad(2, 1, *self.asked, "--recall", "0.9", says=("--ef",))
        self.run_bad(1, "search", "x/routing.sls", "queries.fbin", "-k", 3, says=("routing file",))

    def test_output(self):
        split = ("split", "base.fbin", "--metric", "cosine", "--threads", 1)
        self.job_bad(2, 1, *split, "-o", "no/such", says=("no/such",))
        os.makedirs(self.path("z/part-1.sl"))
        self.write("z/part-1.sl/taken", b"")
        done = self.job(2, *split, "-o", "z")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 1", done.stderr)
        self.assertIn("part-1.sl", done.stderr)
        self.assertNotIn("routing.sls", os.listdir(self.path("z")))
        self.job_bad(2, 1, *split, "-o", "w", "--parts", 2000, says=("2000",))


if __name__ == "__main__":
    unittest.main()
