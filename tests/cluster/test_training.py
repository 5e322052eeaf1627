"""Training on several ranks, as its users run it: as good as on one, killed and gone on with, and refused."""

import json
import os
import signal
import subprocess
import time
import unittest

from jobs import MPI_COMMAND, MPIRUN, JobTest
from ranking import CLICKS, DEEP, RANKS, SPEC, click_rows, table
from test_mounts import MOUNTS

MPIRUN_SAYS = subprocess.run([MPIRUN[0], "--version"], capture_output=True, text=True).stdout
ROWS = click_rows(3000, 1)
MORE = click_rows(700, 2)


@unittest.skipUnless(RANKS, "this build cannot rank")
class TrainingTest(JobTest):
    def setUp(self):
        super().setUp()
        self.write("clicks.csv", table(CLICKS, ROWS))
        self.write("later.csv", table(CLICKS, MORE))
        self.spec()

    def spec(self, **changes):
        self.write("spec.json", json.dumps({**SPEC, **changes}).encode())

    def train(self, ranks, *arguments, **options):
        return self.job_json(ranks, "train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", "1", *arguments,
                             **options)

    def auc(self, model="m.slr"):
        return self.run_json("evaluate", model, "later.csv")["auc"]

    def long_training(self, ranks, *options, **environment):
        """A training of minutes, once it has kept its first steps."""
        self.spec(train={**SPEC["train"], "epochs": 5000, "patience": 0})
        job, pids = self.started(ranks, "train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", "1",
                                 "--checkpoint", "state.slr", "--checkpoint-steps", "5", *options, **environment)
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("state.slr")):
            self.assertIsNone(job.poll(), job.stderr.read() if job.poll() is not None else "")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        time.sleep(0.5)
        return job, pids

    def test_one_rank_writes_the_bytes_of_one_process(self):
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "one.slr", "--threads", "1")
        self.train(1)
        self.assertEqual(self.read("m.slr"), self.read("one.slr"))

    def test_ranks_learn_as_well_as_one_process(self):
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "one.slr", "--threads", "1")
        alone = self.auc("one.slr")
        for ranks in (2, 4):
            told = self.train(ranks)
            self.assertEqual((told["ranks"], told["rows"] + told["valid_rows"]), (ranks, len(ROWS)))
            self.assertAlmostEqual(self.auc(), alone, delta=0.02)

    def test_the_same_ranks_write_the_same_bytes(self):
        first = self.train(3)
        model = self.read("m.slr")
        self.assertEqual(self.train(3)["weights"], first["weights"])
        self.assertEqual(self.read("m.slr"), model)

    def test_files_of_a_list(self):
        """The rows of several files are those of one file; each rank reads parts of some of them."""
        third = len(ROWS) // 3
        for i in range(3):
            self.write(f"part{i}.csv", table(CLICKS, ROWS[i * third:(i + 1) * third]))
        train = ["train", "spec.json", "part0.csv", "part1.csv", "part2.csv", "-o", "m.slr", "--checkpoint", "state.slr"]
        told = self.job_json(3, *train)
        self.assertEqual(told["rows"] + told["valid_rows"], len(ROWS))
        self.assertGreater(self.auc(), 0.7)
        # The rows that validate are the same at any number of ranks, as in one file.
        self.assertEqual(self.job_json(2, *train, "--resume", "--epochs", "5")["epochs"], 5)
        self.assertEqual(self.train(2)["valid_rows"], told["valid_rows"])

    def test_validation_rows_of_their_own(self):
        told = self.train(3, "--valid", "later.csv")
        self.assertEqual((told["rows"], told["valid_rows"]), (len(ROWS), len(MORE)))
        self.assertAlmostEqual(told["auc"], self.auc(), places=6)

    def test_more_ranks_than_rows(self):
        self.write("clicks.csv", table(CLICKS, ROWS[:40])[:-1])
        self.spec(train={**SPEC["train"], "batch": 8, "epochs": 30, "patience": 1, "validation": 0.1})
        for ranks in (6, 4):
            told = self.train(ranks, "--checkpoint", "state.slr", "--resume")
            self.assertEqual(told["rows"] + told["valid_rows"], 40)
            self.assertGreater(told["valid_rows"], 0)
        self.write("clicks.csv", table(CLICKS, ROWS[:400]))
        self.write("later.csv", table(CLICKS, MORE[:2]))
        self.assertEqual(self.train(4, "--valid", "later.csv")["valid_rows"], 2)
        self.spec(train={**SPEC["train"], "batch": 8, "validation": 0})
        self.write("clicks.csv", table(CLICKS, [ROWS[0], [*ROWS[1][:5], 1 - ROWS[0][5]]]))
        self.assertEqual(self.train(4)["rows"], 2)

    @unittest.skipUnless(DEEP, "no oneDNN")
    def test_each_way_to_train(self):
        """Each option works over ranks, and the ranks agree on the model."""
        self.train(1)
        os.rename(self.path("m.slr"), self.path("teacher.slr"))
        weights = set()
        for options in ([], ["--precision", "bf16"], ["--precision", "fp16"], ["--layers", "int8"],
                        ["--layers", "int8", "--ranges", "learned"], ["--teacher", "teacher.slr"],
                        ["--teacher", "teacher.slr", "--soft", "1"], ["--init", "teacher.slr", "--rate-scale", "0.1"],
                        ["--batch", "128", "--scale-rates", "linear", "--warm-up", "20"],
                        ["--algorithm", "ring", "--wire", "bf16", "--bucket", "1K"]):
            told = self.train(2, *options)
            weights.add(told["weights"])
            self.assertGreater(self.auc(), 0.7, options)
        self.assertEqual(len(weights), 10, "an option changes nothing")

    @unittest.skipUnless(DEEP, "no oneDNN")
    def test_overlapping_changes_no_bit(self):
        first = self.train(2, "--algorithm", "ring")["weights"]
        self.assertEqual(self.train(2, "--algorithm", "ring", "--no-overlap")["weights"], first)

    @unittest.skipUnless(DEEP, "no oneDNN")
    def test_a_table_chooses_the_sums(self):
        self.job_json(2, "tune", "-o", "table", "--largest", "1K", "--time", 1)
        facts = self.read("table").decode().splitlines()[:6]
        self.write("table", "\n".join(facts + ["up_to 4096 ring 0x0 halving fence 0 shared 0 seconds 1e-05"]).encode())
        self.assertEqual(self.train(2, "--tuning", "table")["algorithm"], "ring")
        other = self.job(3, "train", "spec.json", "clicks.csv", "-o", "m.slr", "--tuning", "table", "--json")
        self.assertIn("warning: table: it is of 2 ranks, and the job has 3", other.stderr)
        self.assertEqual(json.loads(other.stdout)["algorithm"], "mpi")
        self.assertEqual(self.train(2)["algorithm"], "mpi")
        self.job_bad(2, 2, "train", "spec.json", "clicks.csv", "-o", "x.slr", "--algorithm", "mpi", "--tuning", "table",
                     says=("--tuning is for",))

    @unittest.skipUnless(DEEP, "no oneDNN")
    def test_sharded_tables(self):
        """The model is as good, ranks share it, and a training goes on from its checkpoint, with other ranks or shards."""
        self.spec(deep={**SPEC["deep"], "optimizer": "adam", "rate": 0.003})
        told = self.train(3, "--shard", "1", "--checkpoint", "state.slr")
        self.assertGreater(self.auc(), 0.7)
        self.assertEqual(self.train(3, "--shard", "1")["weights"], told["weights"])
        self.assertAlmostEqual(self.train(3)["auc"], told["auc"], delta=0.005)
        state = self.read("state.slr")
        for ranks, shard in ((2, "1"), (2, "0"), (1, "1")):
            self.write("state.slr", state)
            on = self.train(ranks, "--shard", shard, "--checkpoint", "state.slr", "--resume", "--epochs", "6")
            self.assertEqual(on["epochs"], 6)
            self.assertGreater(self.auc(), 0.7)

    def sparse_bytes(self, first, second, repeats, hidden=4, dim=8):
        """Trains 2 ranks, one on rows of the values `first` and one on those of `second`, in whole epochs. Returns
        "sparse" of the report and the bytes a step of unique rows, whole tables and raw rows, by the formulas."""
        parts = [[value, i % 2] for part in (first, second) for i, value in enumerate(part * repeats)]
        self.write("clicks.csv", table(["v", "y"], parts))
        rows = repeats * (len(first) + len(second))
        self.spec(label={"column": "y"}, features=[{"name": "v", "type": "categorical", "dim": dim}],
                  deep={"hidden": [hidden]} if DEEP else None,
                  train={"epochs": 3, "batch": rows, "validation": 0, "forget": 0})
        told = self.train(2)
        self.assertEqual(told["sparse"]["steps"], 3)
        layers = hidden * dim + hidden + hidden + 1 if DEEP else 1
        widths = [1, dim] if DEEP else [1]
        size = (told["parameters"] - layers) // sum(widths)
        unique = [(len(first) + len(second)) * (4 + 4 * width) for width in widths]
        dense = [2 * size * 4 * width for width in widths]
        raw = sum(rows * (4 + 4 * width) for width in widths)
        return told["sparse"], unique, dense, raw

    def test_sparse_bytes_are_those_of_the_cheaper_way(self):
        """Each table goes as unique rows or as a whole. With 2 ranks, one sends half of the bytes that pass."""
        values = [f"a{i:02}" for i in range(60)]
        chosen = set()
        for first, second in ((values[:30], values[30:]), (values, values), (values[:5], values[:5])):
            sparse, unique, dense, raw = self.sparse_bytes(first, second, 6)
            least = [min(pair) for pair in zip(unique, dense)]
            self.assertEqual(sparse, {"steps": 3, "bytes": 3 * sum(least) // 2, "least_bytes": 3 * sum(least) // 2,
                                      "unique_rows_bytes": 3 * sum(unique) // 2, "dense_bytes": 3 * sum(dense) // 2,
                                      "raw_rows_bytes": 3 * raw // 2})
            chosen |= {u <= d for u, d in zip(unique, dense)}
        self.assertEqual(chosen, {True, False}, "one of the ways was never the cheaper one")

    def test_weights_multiclass_and_values(self):
        weighted = [[*row, 1 + row[0] % 3] for row in ROWS]
        self.write("clicks.csv", table([*CLICKS, "weight"], weighted))
        self.spec(weight="weight")
        self.train(2)
        self.spec(label={"column": "job", "loss": "multiclass"}, features=[f for f in SPEC["features"]
                                                                           if f["name"] not in ("job", "taste")])
        self.train(2)
        self.spec(label={"column": "price", "loss": "squared"}, features=[f for f in SPEC["features"]
                                                                          if f["name"] != "price"])
        self.train(2)

    def test_a_killed_rank_ends_the_job_and_others_go_on(self):
        job, pids = self.long_training(2)
        begin = time.monotonic()
        os.kill(pids[1], signal.SIGKILL)
        _, said = job.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("signal 9" if "OpenRTE" in MPIRUN_SAYS else "", said)
        self.assertNotIn("m.slr", os.listdir(self.folder))
        self.run_ok("check", "state.slr")
        self.spec(train={**SPEC["train"], "epochs": 5000, "patience": 0})
        # How many epochs the killed job had done depends on the machine.
        done = self.train(3, "--checkpoint", "state.slr", "--resume", "--epochs", "40")["epochs"]
        self.assertGreaterEqual(done, 40)
        told = self.train(3, "--checkpoint", "state.slr", "--resume", "--epochs", str(done + 1))
        self.assertEqual(told["epochs"], done + 1)
        self.assertGreater(self.auc(), 0.7)

    def test_a_pipe_is_no_data(self):
        os.mkfifo(self.path("pipe.csv"))
        self.job_bad(2, 1, "train", "spec.json", "pipe.csv", "-o", "x.slr", says=("pipe.csv: not a regular file",))

    def test_a_rank_that_stands_still_ends_the_job(self):
        job, pids = self.long_training(3, SHORTLIST_MPI_PATIENCE="3")
        said = self.stands_still(job, pids[1])
        lines = [line for line in said.splitlines() if line.startswith("shortlist-mpi")]
        self.assertEqual(len(lines), 1, said)
        self.assertRegex(lines[0], r"rank 1 \(.*\) has not answered for 3 s")

    def test_a_rank_that_stands_still_in_a_window_ends_the_job(self):
        # The others may wait for it inside of MPI, where they cannot listen to each other.
        job, pids = self.long_training(3, "--algorithm", "torus-put", SHORTLIST_MPI_PATIENCE="3")
        said = self.stands_still(job, pids[1])
        self.assertRegex(said, "shortlist-mpi: rank [0-2] .* (has not answered|has waited inside MPI) for 3 s")

    def test_a_signal_ends_all_ranks_and_keeps_the_checkpoint(self):
        job, pids = self.long_training(2)
        os.kill(pids[1], signal.SIGTERM)
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 1, said)
        self.assertIn("interrupted; state.slr holds how far the training was", said)

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_full_disk(self):
        train = ["train", "spec.json", "clicks.csv", "--threads", "1", "-o"]
        self.full_bad(2, *train, "small/m.slr", says=("rank 0", "small/m.slr", "No space left"))
        self.full_bad(2, *train, "m.slr", "--checkpoint", "small/state.slr", says=("rank 0", "small/state.slr"))

    def test_bad_input(self):
        train = ["train", "spec.json", "clicks.csv", "-o", "m.slr"]
        self.job_bad(2, 2, *train, "--algorithm", "loud", says=["--algorithm is 'loud'"])
        self.job_bad(2, 2, *train, "--scale-rates", "linear", says=["--scale-rates needs --batch"])
        self.job_bad(2, 2, *train, "--warm-up", "5", says=["--warm-up needs --scale-rates"])
        self.job_bad(2, 1, "train", "spec.json", "clicks.csv", "later.csv", "-o", "later.csv", says=["later.csv"])
        self.job_bad(2, 1, "train", "spec.json", "none.csv", "-o", "m.slr", says=["rank 0", "none.csv"])
        self.job_bad(2, 1, "train", "none.json", "clicks.csv", "-o", "m.slr", says=["rank 0", "none.json"])
        self.write("bad.csv", table(CLICKS, [*ROWS[:200], [1, "old", *ROWS[0][2:]]]))
        # The row is in the part of the last rank, and has its line in the whole file.
        self.job_bad(3, 1, "train", "spec.json", "bad.csv", "-o", "m.slr", says=["rank 2", "bad.csv: line 202", "age"])

    def test_ranks_with_other_command_lines(self):
        self.write("other.csv", table(CLICKS, ROWS[:1000]))
        done = subprocess.run([*MPIRUN, "1", MPI_COMMAND, "train", "spec.json", "clicks.csv", "-o", "m.slr", ":", "-np",
                               "1", MPI_COMMAND, "train", "spec.json", "other.csv", "-o", "m.slr"], cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("shortlist-mpi: rank 1", done.stderr)
        self.assertIn("its command line is not that of rank 0", done.stderr)


if __name__ == "__main__":
    unittest.main()
