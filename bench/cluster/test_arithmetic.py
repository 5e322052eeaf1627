"""The arithmetic of ./dev bench cluster: the pipeline of a step, curves, ratios of rounds, distances of AUC."""

import pathlib
import sys
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
# PyTorch's side needs packages that only the benchmark installs.
sys.modules["beside_torch"] = types.SimpleNamespace(Training=None)

import simulate  # noqa: E402
import train  # noqa: E402
from pipeline import Curve, Step, buckets  # noqa: E402

SHAPE = {"layers": [100, 60, 10], "tables": [[50, 1], [20, 4]], "bucket": 64}
# Layers are complete at 3, 5 and 9 s; the last one comes first.
TIMES = {"layers_s": [3.0, 5.0, 9.0], "collected_s": 10.0, "end_s": 12.0, "table_s": 0.5, "sum_s": 0.25,
         "touched": [10, 20]}


class Simulation(unittest.TestCase):
    def test_platforms(self):
        self.assertEqual([simulate.side(ranks) for ranks in (1, 4, 7, 240, 256, 1024)], [1, 2, 7, 16, 16, 32])
        self.assertEqual(simulate.topology("tree", 240), ' topology="FAT_TREE" topo_parameters="2;16,15;1,16;1,1"')
        self.assertEqual(simulate.topology("tapered", 240), ' topology="FAT_TREE" topo_parameters="2;16,15;1,4;1,1"')
        self.assertEqual(simulate.topology("torus", 240), ' topology="TORUS" topo_parameters="15,16"')
        self.assertIn('radical="0-3" speed="10Gf" bw="1250000000Bps" lat="500ns"/>',
                      simulate.platform("switch", 4, 1.25e9, 5e-7))

    def test_sums(self):
        put = simulate.Sum("torus-put", 15, 16, 0, 1, 1)
        self.assertEqual(put.name(), "torus-put 15x16 pscw put-reduces")
        self.assertEqual(put.line(1024), "1024 torus-put 15 16 0 1 1 0\n")
        self.assertEqual(put.line(64 << 20), f"{64 << 20} torus-put 15 16 0 1 1 {1 << 20}\n")
        run = {"experiment": "x", **simulate.setting("tree", 4),
               "sizes": [{"bytes": 8, "seconds": {"Open MPI": 3.0, "Intel MPI": 1.0, "ring": 2.0, "bine": 1.5}}]}
        row = simulate.summary([run])[0]
        self.assertEqual([row["best"], row["of_open_mpi"]], ["bine", 2.0])


class Pipeline(unittest.TestCase):
    def test_buckets_are_those_of_the_trainer(self):
        """Ten floats wait for layer 1; 70 are more than a bucket; the rest comes with layer 0."""
        self.assertEqual(buckets([100, 60, 10], 64), [(1, 64), (1, 6), (0, 64), (0, 36)])
        self.assertEqual(buckets([100, 60, 10], 1000), [(0, 170)])
        self.assertEqual(buckets([100, 60, 10], 10), [(2, 10)] + [(1, 10)] * 6 + [(0, 10)] * 10)
        self.assertEqual(buckets([100, 60, 10], 64, overlap=False), [(0, 64), (0, 64), (0, 42)])

    def test_curves(self):
        curve = Curve([100, 300], [1.0, 2.0])
        self.assertEqual([curve(100), curve(200), curve(300), curve(500)], [1.0, 1.5, 2.0, 3.0])
        self.assertEqual(curve(0), 0.5)

    def test_sparse_goes_the_cheaper_way(self):
        """Wide: 10 rows of 8 bytes a rank, or 2 x 200. Table: 20 rows of 20 bytes a rank, or 2 x 320."""
        step = Step(SHAPE, TIMES)
        self.assertEqual(step.sparse(1), (80 + 400, []))
        self.assertEqual(step.sparse(2), (160, [320]))
        self.assertEqual(step.sparse(6), (0, [200, 320]))

    def test_a_step(self):
        """Sums of one second: with overlap two of four begin before the backward pass ends."""
        step, curve, wide = Step(SHAPE, TIMES), Curve([1], [1.0]), float("inf")
        sparse = 1 + 1  # records, and the tables in one sum
        self.assertEqual(step.sparse_seconds(6, curve, wide), sparse)
        self.assertEqual(step.sparse_seconds(6, curve, wide, apart=True), 3)
        # Sums run at 5-6, 6-7, 9-10, 10-11.
        self.assertEqual(step.seconds(6, curve, wide), 11 + sparse + 0.75 + 2)
        # Three sums after 10.
        self.assertEqual(step.seconds(6, curve, wide, overlap=False), 13 + sparse + 0.75 + 2)
        self.assertEqual(step.efficiency(6, curve, wide), 12 / 15.75)
        # Rows alone are gathered: no table is copied.
        self.assertEqual(step.seconds(1, Curve([1], [0.0]), wide), 12.25)

    def test_faster_computing_changes_no_sum(self):
        step = Step(SHAPE, TIMES, 10)
        self.assertAlmostEqual(step.alone, 1.2)
        self.assertAlmostEqual(step.seconds(6, Curve([1], [0.0]), float("inf")), 1.2 + 0.075)


def rate(number, who, rows_per_s):
    return {"event": "rate", "data": "adult", "batch": 4, "round": number, "who": who, "rows_per_s": rows_per_s}


class Rates(unittest.TestCase):
    def test_ratios_are_of_one_round(self):
        events = []
        for number, slow in enumerate((1, 10, 2)):
            for who, rows in (("1 rank x 2 threads", 100), ("2 ranks", 90), ("PyTorch DDP, f32", 30),
                              ("1 rank x 2 threads, bf16", 200), ("2 ranks, mpi, bf16", 100), ("PyTorch DDP, bf16", 50)):
                events.append(rate(number, who, rows / slow))
        found = {row["who"]: row for row in train.rates(events)}
        self.assertAlmostEqual(found["2 ranks"]["ratio"]["min"], 0.9)
        self.assertAlmostEqual(found["2 ranks"]["over_peer"]["max"], 3)
        self.assertAlmostEqual(found["2 ranks, mpi, bf16"]["ratio"]["median"], 0.5)
        self.assertAlmostEqual(found["2 ranks, mpi, bf16"]["over_peer"]["median"], 2)
        self.assertEqual(found["2 ranks"]["rows_per_s"]["median"], 45)
        missed = [fact["met"] for fact in train.summarise(events)["targets"]]
        self.assertEqual(missed, [True, True, False, True])

    def test_sparse_bytes(self):
        """The last mini-batch is judged; a byte more than the cheaper way is a miss."""
        event = {"event": "sparse", "spec": "s", "steps": 2, "least_bytes": 100, "dense_bytes": 400,
                 "raw_rows_bytes": 300}
        events = [{**event, "batch": 512, "bytes": 101}, {**event, "batch": 8192, "bytes": 100}]
        found = train.summarise(events)
        self.assertEqual([row["step_bytes"] for row in found["sparse"]], [50.5, 50])
        self.assertEqual([fact["met"] for fact in found["targets"]], [False, True, True])

    def test_distance_of_auc(self):
        events = [{"event": "auc", "ranks": ranks, "auc": auc}
                  for ranks, values in ((0, (0.90, 0.92)), (2, (0.91, 0.93)), (4, (0.94, 0.96))) for auc in values]
        found = {row["ranks"]: row for row in train.accuracy(events)}
        # Both variances are 0.0002, so the difference has a standard error of sqrt(0.0002).
        self.assertAlmostEqual(found[2]["distance"], 0.01 / 0.0002**0.5)
        self.assertEqual([fact["met"] for fact in train.summarise(events)["targets"]], [True, False])


if __name__ == "__main__":
    unittest.main()
