"""Training, predicting and evaluating, and what each of them must refuse."""

import csv
import json
import math
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import time
import unittest

from harness import COMMAND, CommandTest, decode
from ranking import (CLICKS, DEEP, DIM, IDS, ITEMS, JOBS, RANKS, SPEC, VECTORS, RankingTest, click_rows, cpu,
                     limit_files, table)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

import coded_model  # noqa: E402

MAKE_LOCALES = pathlib.Path(coded_model.__file__).with_name("make_locales.sh")


class Train(RankingTest):
    def test_fields(self):
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 2)
        self.assertEqual((told["rows"] + told["valid_rows"], told["epochs"], told["threads"], told["output"]),
                         (3000, 4, 2, "m.slr"))
        self.assertGreater(told["valid_rows"], 100)
        self.assertTrue(1 <= told["best_epoch"] <= 4)
        self.assertGreater(told["auc"], 0.7)
        self.assertLess(told["logloss"], 0.62)
        self.assertEqual(told["isa"], cpu()["isa"])
        info = self.run_json("info", "m.slr")
        self.assertEqual(told["parameters"], info["parameters"])
        self.assertTrue(0 < told["wide_nonzero"] <= info["wide_size"])
        for key in ("epoch_s", "rows_per_s", "train_loss", "valid_loss"):
            self.assertGreater(told[key], 0)

    def test_validation_rows_of_their_own(self):
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr", "--valid", "test.csv")
        self.assertEqual((told["rows"], told["valid_rows"]), (3000, 700))
        measured = self.run_json("evaluate", "m.slr", "test.csv")
        self.assertAlmostEqual(told["auc"], measured["auc"], places=5)
        self.assertAlmostEqual(told["logloss"], measured["logloss"], places=5)

    def test_options_go_before_the_spec(self):
        files = []
        for options in ((), ("--seed", 3), ("--seed", 4), ("--epochs", 4), ("--epochs", 1)):
            self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1, *options)
            files.append(self.read("m.slr"))
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])
        self.assertNotEqual(files[0], files[4])
        self.assertEqual(self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr", "--epochs", 2)["epochs"], 2)

    def test_precisions(self):
        seen = {}
        for precision in ("f32", "bf16", "fp16", "auto"):
            told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1, "--precision", precision)
            self.assertIn(told["precision"], ("f32", "bf16") if precision == "auto" else (precision,))
            self.assertGreater(told["auc"], 0.7)
            self.assertEqual(told["loss_scale"], 65536 if precision == "fp16" else None)
            self.assertEqual(told["skipped_steps"], 0)
            self.assertFalse(told["emulated"] and precision in ("f32", "auto"))
            seen[precision] = told["auc"]
        self.assertEqual(len({seen["f32"], seen["bf16"], seen["fp16"]}), 3)
        self.assertIn(seen["auto"], (seen["f32"], seen["bf16"]))
        plain = self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1)
        self.assertNotIn("precision", plain)
        static = self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", "--precision", "fp16", "--loss-scale", 512)
        self.assertRegex(static, r"precision fp16(, emulated: .*)?; loss scale 512 at the end, 0 steps skipped\n")

    def test_precisions_that_cannot_be(self):
        def refuse(status, says, *options):
            done = self.start("train", "spec.json", "clicks.csv", "-o", "m.slr", *options)
            self.assertEqual((done.returncode, done.stdout), (status, ""))
            self.assertIn(says, done.stderr)
            self.assertFalse(os.path.exists(self.path("m.slr")))

        refuse(2, "it takes f32|bf16|fp16|auto", "--precision", "int8")
        refuse(2, "--loss-scale needs --precision fp16", "--loss-scale", 8)
        refuse(2, "--loss-scale needs --precision fp16", "--precision", "bf16", "--loss-scale", 8)
        refuse(1, "loss_scale is 0.5", "--precision", "fp16", "--loss-scale", 0.5)

    def test_resuming_keeps_the_precision(self):
        state = ("--threads", 1, "--checkpoint", "state.slr")
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", *state, "--precision", "bf16", "--epochs", 2)
        done = self.start("train", "spec.json", "clicks.csv", "-o", "n.slr", *state, "--resume", "--precision", "fp16")
        self.assertEqual(done.returncode, 1)
        self.assertIn("a training in bf16, and fp16 is asked for", done.stderr)
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "n.slr", *state, "--resume")
        self.assertEqual(told["precision"], "bf16")
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1, "--precision", "bf16")
        self.assertEqual(self.read("m.slr"), self.read("n.slr"))

    def test_progress_tells_each_epoch(self):
        done = self.start("train", "spec.json", "clicks.csv", "-o", "m.slr", "--progress")
        self.assertEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if line.startswith("epoch ")]
        self.assertEqual(len(lines), 4)
        for line in lines:
            self.assertRegex(line, r"^epoch \d: loss 0\.\d+, validation loss 0\.\d+, AUC 0\.\d+, \d+ rows/s")
        self.assertIn("best so far", lines[0])
        self.assertIn("parameters, trained on", done.stdout)

    def test_other_losses(self):
        self.spec(label={"column": "price", "loss": "squared"}, features=SPEC["features"][:3])
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr")
        self.assertIsNone(told["auc"])
        self.assertIsNone(told["logloss"])
        self.assertGreater(told["valid_loss"], 0)
        measured = self.run_json("evaluate", "m.slr", "test.csv")
        self.assertIsNone(measured["logloss"])
        self.assertGreater(measured["rmse"], 0)
        self.spec(label={"column": "job", "loss": "multiclass"}, features=SPEC["features"][:1])
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr")
        self.assertGreater(told["logloss"], 0)
        self.assertEqual(self.run_json("info", "m.slr")["classes"], sorted(JOBS))
        self.run_ok("predict", "m.slr", "test.csv", "-o", "p.npy")
        scores = decode(self.path("p.npy"))[0]
        self.assertEqual((len(scores), len(scores[0])), (700, 4))
        for row in scores:
            self.assertAlmostEqual(sum(row), 1, places=4)
        self.run_ok("predict", "m.slr", "test.csv", "-o", "p.csv")
        self.assertEqual(self.lines("p.csv"), [[f"{x:.9g}" for x in row] for row in scores])

    def test_weights_of_zero(self):
        self.spec(weight="w")
        for weight in ("0", "1e-300"):
            self.write("weighed.csv", table([*CLICKS, "w"], [[*row, weight] for row in click_rows(300, 1)]))
            self.run_bad(1, "train", "spec.json", "weighed.csv", "-o", "m.slr",
                         says=["rows to train on have the weight 0 in column 'w'"])

    @unittest.skipUnless(DEEP, "vectors enter the deep part")
    def test_vectors_by_id(self):
        """The column holds ids; --index lends their vectors, in training, prediction and evaluation."""
        with_ids = [[1, IDS[i % ITEMS], int(VECTORS[i % ITEMS][0] > 0)] for i in range(1500)]
        self.write("v.csv", table(["user", "film", "liked"], with_ids))
        self.write("x.sl", self.make("x.sl", "build", "base.fbin", "--metric", "l2", "--ids", "ids.npy", "--codes",
                                     "f32"))
        feature = {"name": "film", "type": "vector", "dim": DIM, "source": "index", "side": "item"}
        self.spec(features=[feature], wide=None)
        told = self.run_json("train", "spec.json", "v.csv", "-o", "m.slr", "--index", "x.sl")
        self.assertGreater(told["auc"], 0.95)
        self.run_ok("predict", "m.slr", "v.csv", "-o", "p.npy", "--index", "x.sl")
        self.assertGreater(self.run_json("evaluate", "m.slr", "v.csv", "--index", "x.sl")["auc"], 0.95)
        train = ("train", "spec.json", "v.csv", "-o", "n.slr")
        self.run_bad(1, *train, says=["film", "--index"])
        self.run_bad(1, "predict", "m.slr", "v.csv", "-o", "q.npy", says=["film", "--index"])
        self.vectors("short.fbin", [row[:4] for row in VECTORS])
        self.run_ok("build", "short.fbin", "-o", "short.sl", "--metric", "l2", "--ids", "ids.npy")
        self.run_bad(1, *train, "--index", "short.sl", says=["short.sl", "4 elements", "'film' takes 6"])
        self.run_bad(1, "predict", "m.slr", "v.csv", "-o", "q.npy", "--index", "short.sl", says=["short.sl", "takes 6"])
        self.run_bad(1, "evaluate", "m.slr", "v.csv", "--index", "short.sl", says=["short.sl", "takes 6"])
        self.write("v.csv", table(["user", "film", "liked"], with_ids + [[1, 4, 1]]))
        self.run_bad(1, *train, "--index", "x.sl", says=["v.csv", "1502", "4"])


@unittest.skipUnless(DEEP, "layers are cut and distilled")
class Smaller(RankingTest):
    """Models that begin with others, learn from others, or are cut."""

    def setUp(self):
        super().setUp()
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "large.slr", "--threads", 1)
        self.large = self.run_json("info", "large.slr")

    def test_distil_without_labels(self):
        rows = list(csv.reader(self.read("clicks.csv").decode().splitlines()))
        gone = rows[0].index("liked")
        self.write("bare.csv", table(rows[0][:gone] + rows[0][gone + 1:], [row[:gone] + row[gone + 1:] for row in rows[1:]]))
        self.spec(deep={"hidden": [4]}, train={"epochs": 12, "batch": 32})
        told = self.run_json("train", "spec.json", "bare.csv", "-o", "small.slr", "--teacher", "large.slr",
                             "--temperature", 2, "--soft", 1)
        self.assertIsNone(told["auc"])
        self.assertLess(told["multiply_adds"], self.large["multiply_adds"])
        self.assertEqual(told["bytes"], self.run_json("info", "small.slr")["bytes"])
        theirs, ours = (self.run_json("evaluate", model, "test.csv")["auc"] for model in ("large.slr", "small.slr"))
        self.assertGreater(ours, theirs - 0.05)
        train = ("train", "spec.json", "bare.csv", "-o", "n.slr")
        self.run_bad(1, *train, "--teacher", "large.slr", says=["liked"])
        self.run_bad(1, *train, "--teacher", "large.slr", "--soft", 2, says=["soft"])
        self.run_bad(1, *train, "--teacher", "nowhere.slr", says=["nowhere.slr"])
        self.run_bad(2, *train, "--soft", 1, says=["--teacher"])
        self.run_bad(2, *train, "--temperature", 2, says=["--teacher"])

    def test_begin_with_a_model(self):
        told = self.run_json("train", "spec.json", "clicks.csv", "-o", "m.slr", "--init", "large.slr", "--rate-scale",
                             0.1, "--threads", 1)
        self.assertGreater(told["auc"], 0.7)
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "m.slr", "--rate-scale", 0, says=["rate_scale"])
        self.spec(deep={"hidden": [4]})
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "n.slr", "--init", "large.slr", says=["other layers"])

    def test_prune_units(self):
        told = self.run_json("prune", "large.slr", "--data", "clicks.csv", "--eval", "test.csv", "-o", "small.slr",
                             "--multiply-adds", 0.5, "--teacher", "large.slr", "--rate-scale", 0.3, "--threads", 1)
        info = self.run_json("info", "small.slr")
        self.assertEqual(told["hidden_before"], [16, 8])
        self.assertEqual((told["multiply_adds"], told["parameters"], told["bytes"]),
                         (info["multiply_adds"], info["parameters"], info["bytes"]))
        self.assertLessEqual(told["multiply_adds"], self.large["multiply_adds"] / 2)
        self.assertEqual(told["rows"] + told["valid_rows"], 3000)
        measured = self.run_json("evaluate", "small.slr", "test.csv")
        self.assertAlmostEqual(told["eval"]["auc"], measured["auc"], places=6)
        self.assertGreater(told["eval"]["auc"], told["eval_before"]["auc"] - 0.03)
        self.assertTrue(0 < told["eval"]["row_us"] < 1e4 and 0 < told["eval_before"]["row_us"] < 1e4)
        said = self.run_ok("prune", "large.slr", "-o", "norm.slr", "--units", 0.25, "--criterion", "norm")
        self.assertRegex(said, r"norm\.slr: hidden layers of \d+ \d+ units; before, of 16 8")
        self.assertEqual(self.run_json("info", "norm.slr")["features"], info["features"])

    def test_prune_weights(self):
        told = self.run_json("prune", "large.slr", "--data", "clicks.csv", "-o", "sparse.slr", "--weights", 0.8,
                             "--checkpoint", "state.slr", "--threads", 1)
        self.assertEqual(told["dense_zeros"], int(0.8 * told["dense_weights"]))
        self.assertEqual(told["multiply_adds"], self.large["multiply_adds"])
        self.assertGreaterEqual(told["best_epoch"], 2)
        self.run_ok("prune", "large.slr", "--data", "clicks.csv", "-o", "again.slr", "--weights", 0.8, "--checkpoint",
                    "state.slr", "--resume", "--threads", 1)
        self.assertEqual(self.read("again.slr"), self.read("sparse.slr"))
        self.run_bad(1, "prune", "large.slr", "--data", "clicks.csv", "-o", "n.slr", "--weights", 0.7, "--checkpoint",
                     "state.slr", "--resume", "--threads", 1, says=["state.slr", "pruning"])

    def test_prune_refuses(self):
        prune = ("prune", "large.slr", "-o", "n.slr")
        self.run_bad(2, *prune, says=["nothing is to be cut"])
        self.run_bad(2, *prune, "--weights", 0.5, "--valid", "test.csv", says=["--valid needs --data"])
        self.run_bad(2, *prune, "--weights", 0.5, "--epochs", 2, says=["--epochs needs --data"])
        self.run_bad(2, *prune, "--units", 0.5, "--weights-end", 0.2, says=["--weights-end needs --weights"])
        self.run_bad(2, *prune, "--weights", 0.5, "--data", "clicks.csv", "--resume", says=["--checkpoint"])
        self.run_bad(1, *prune, "--units", 0.5, says=["Taylor", "rows"])
        self.run_bad(1, *prune, "--units", 1, "--data", "clicks.csv", says=["units is 1"])
        self.run_bad(1, *prune, "--units", 0.99, "--criterion", "norm", says=["cannot be cut"])
        self.run_bad(1, "prune", "large.slr", "-o", "large.slr", "--weights", 0.5, says=["large.slr"])
        self.run_bad(1, "prune", "clicks.csv", "-o", "n.slr", "--weights", 0.5, says=["clicks.csv"])


class Resume(RankingTest):
    """Trainings that are ended go on to the same bytes."""

    def setUp(self):
        super().setUp()
        self.spec(deep={"hidden": [32, 16], "dropout": 0.1} if DEEP else None,
                  train={"batch": 8, "patience": 0, "seed": 5})

    def command(self, epochs, *options):
        return ["train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", "1", "--epochs", str(epochs),
                "--checkpoint", "state.slr", "--checkpoint-steps", "50", *options]

    def end_by(self, number):
        """A training ended by a signal once it has kept something; its epochs, and what it said."""
        epochs = 50
        while True:
            process = subprocess.Popen([COMMAND, *self.command(epochs)], cwd=self.folder, stderr=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 120
            while not os.path.exists(self.path("state.slr")) and process.poll() is None:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.001)
            process.send_signal(number)
            out, err = process.communicate(timeout=120)
            if process.returncode != 0:
                return epochs, process.returncode, out, err
            # The training was through before the signal came.
            os.remove(self.path("m.slr"))
            os.remove(self.path("state.slr"))
            epochs *= 4

    def goes_on(self, epochs):
        self.assertFalse(os.path.exists(self.path("m.slr")))
        told = self.run_json(*self.command(epochs, "--resume"))
        self.assertEqual(told["epochs"], epochs)
        resumed = self.read("m.slr")
        plain = self.run_json("train", "spec.json", "clicks.csv", "-o", "n.slr", "--threads", 1, "--epochs", epochs)
        self.assertEqual(resumed, self.read("n.slr"))
        for key in ("auc", "logloss", "train_loss", "best_epoch", "wide_nonzero"):
            self.assertEqual(told[key], plain[key], key)

    def test_kill(self):
        epochs, status, _, _ = self.end_by(signal.SIGKILL)
        self.assertEqual(status, -signal.SIGKILL)
        self.goes_on(epochs)

    def test_interrupt(self):
        epochs, status, out, err = self.end_by(signal.SIGINT)
        self.assertEqual((status, out), (-signal.SIGINT, ""))
        self.assertEqual(err, "shortlist train: interrupted; state.slr holds how far the training was: go on with "
                              "--checkpoint state.slr --resume\n")
        self.assertFalse([name for name in os.listdir(self.folder) if ".tmp" in name])
        self.goes_on(epochs)

    def test_interrupt_without_a_checkpoint(self):
        self.write("m.slr", b"what was here")
        before = self.snapshot()
        process = subprocess.Popen([COMMAND, "train", "spec.json", "clicks.csv", "-o", "m.slr", "--epochs", "1000000",
                                    "--progress"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        while not process.stderr.readline().startswith("epoch 2"):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1)
        self.assertEqual(err.splitlines()[-1], "shortlist train: interrupted; nothing was written")
        self.assertEqual(self.snapshot(), before)

    def test_checkpoint_of_another_training(self):
        self.run_ok(*self.command(1))
        self.spec(train={"batch": 9, "patience": 0, "seed": 5})
        self.run_bad(1, *self.command(2, "--resume"), says=["state.slr"])
        self.write("state.slr", self.read("state.slr")[:-100])
        self.run_bad(1, *self.command(2, "--resume"), says=["state.slr"])
        self.write("state.slr", b"a letter")
        self.run_bad(1, *self.command(2, "--resume"), says=["state.slr"])


class TrainRefuses(RankingTest):
    def refuse(self, *says, data="clicks.csv", **changes):
        self.spec(**changes)
        self.write("x.slr", b"what was here")
        return self.run_bad(1, "train", "spec.json", data, "-o", "x.slr", says=says)

    def test_specs(self):
        self.refuse("clicks.csv", "'nobody'", label={"column": "nobody"})
        self.refuse("clicks.csv", "'nobody'", features=[{"name": "nobody", "type": "numeric"}])
        self.refuse("spec.json", "frobnicate", frobnicate=1)
        self.refuse("spec.json", "features[0].frob", features=[{"name": "age", "type": "numeric", "frob": 1}])
        self.refuse("spec.json", "batch", train={"batch": -3})
        self.write("spec.json", b'{"label": ')
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "x.slr", says=["spec.json", "JSON"])
        self.write("spec.json", b"{}\0")
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "x.slr", says=["spec.json", "not a text"])

    def test_values(self):
        self.refuse("clicks.csv", "line 2", "'job'", features=[{"name": "job", "type": "numeric"}])
        self.refuse("clicks.csv", "line 2", "'job'", label={"column": "job"})
        self.refuse("clicks.csv", "'job'", "more than 3", features=[{"name": "job", "type": "categorical", "limit": 3}])

    def test_rows(self):
        rows = click_rows(50, 3)
        whole = table(CLICKS, rows)
        self.write("short.csv", whole + b"1,30\n")
        self.refuse("short.csv", "line 52", data="short.csv")
        self.write("long.csv", whole + b"1,30,nurse,drama,1,1,1\n")
        self.refuse("long.csv", "line 52", data="long.csv")
        self.write("open.csv", whole + b'1,30,"nurse,drama,1,1\n')
        self.refuse("open.csv", "line 52", data="open.csv")
        self.write("label.csv", whole + b"1,30,nurse,drama,1,2\n")
        self.refuse("label.csv", "line 52", "'liked'", data="label.csv")
        self.write("none.csv", b"")
        self.refuse("none.csv", data="none.csv")
        self.write("head.csv", table(CLICKS, []))
        self.refuse("head.csv", data="head.csv")
        self.write("one.csv", table(CLICKS, rows[:1]))
        self.refuse("1 row is left to train on", data="one.csv", train={"validation": 0})
        self.write("same.csv", table(CLICKS, [row[:5] + [0] for row in rows]))
        self.refuse("same.csv", "the label 0", "positive", data="same.csv")

    @unittest.skipUnless(DEEP, "the wide part's loss stays finite")
    def test_loss_that_is_not_finite(self):
        """The training stops, and the last good checkpoint stays."""
        self.spec(label={"column": "price", "loss": "squared"}, features=SPEC["features"][:1],
                  deep={"hidden": [8, 8, 8], "optimizer": "adam", "rate": 1e6, "activation": "none"})
        done = self.start("train", "spec.json", "clicks.csv", "-o", "x.slr", "--threads", 1, "--checkpoint", "s.slr",
                          "--checkpoint-steps", 1)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1))
        self.assertIn("not finite", done.stderr)
        self.assertFalse(os.path.exists(self.path("x.slr")))
        self.assertEqual(self.run_json("info", "s.slr")["loss"], "squared")

    def test_files(self):
        train = ("train", "spec.json", "clicks.csv", "-o")
        self.run_bad(1, "train", "none.json", "clicks.csv", "-o", "x.slr", says=["none.json", "No such file"])
        self.run_bad(1, "train", "spec.json", "none.csv", "-o", "x.slr", says=["none.csv", "No such file"])
        self.run_bad(1, *train, "none/x.slr", says=["none/x.slr"])
        self.run_bad(1, *train, "clicks.csv", says=["input clicks.csv"])
        self.run_bad(1, *train, "x.slr", "--checkpoint", "x.slr", says=["x.slr", "checkpoint"])
        self.run_bad(1, *train, "x.slr", "--checkpoint", "clicks.csv", says=["input clicks.csv"])
        self.run_bad(1, *train, "x.slr", "--valid", "none.csv", says=["none.csv"])
        self.run_bad(1, *train, "x.slr", "--index", "clicks.csv", says=["clicks.csv", "not a Shortlist index"])
        self.run_bad(2, *train, "x.slr", "--resume", says=["--checkpoint"])
        self.run_bad(2, *train, "x.slr", "--checkpoint-steps", 5, says=["--checkpoint"])

    @unittest.skipIf(DEEP, "this build has oneDNN")
    def test_without_onednn(self):
        self.spec(deep={"hidden": [8]})
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "x.slr", says=["oneDNN"])


@unittest.skipUnless(DEEP, "this build trains no embeddings")
class Coded(RankingTest):
    """Models with embedding tables in codes, written from docs/FORMAT.md alone."""

    def code(self, name, *types):
        shapes = [(table["size"], table["dim"]) for table in self.run_json("info", "m.slr")["embeddings"]]
        self.write(name, coded_model.code_tables(self.read("m.slr"), shapes, types))
        return shapes

    def setUp(self):
        super().setUp()
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr")

    def test_codes_predict_and_are_told(self):
        auc = self.run_json("evaluate", "m.slr", "test.csv")["auc"]
        for types in (("i8", "i8"), ("i4", "i4"), ("f32", "i4")):
            shapes = self.code("c.slr", *types)
            told = self.run_json("info", "c.slr")
            self.assertEqual([table["type"] for table in told["embeddings"]], list(types))
            for table, (size, dim), kind in zip(told["embeddings"], shapes, types):
                row = {"f32": 4 * dim, "i8": dim + 4, "i4": (dim + 1) // 2 + 2}[kind]
                self.assertEqual(table["bytes"], size * row + (0 if kind == "f32" else 16))
                self.assertRegex(self.run_ok("info", "c.slr"), rf"{table['name']} +{kind} +{size} +{dim} ")
            self.assertLess(told["bytes"], self.run_json("info", "m.slr")["bytes"])
            self.assertIn("sound", self.run_ok("check", "c.slr"))
            self.assertAlmostEqual(self.run_json("evaluate", "c.slr", "test.csv")["auc"], auc, delta=0.01)

    def test_damaged_codes_are_told(self):
        self.code("c.slr", "i8", "i4")
        whole = self.read("c.slr")
        sections = coded_model.sections_of(whole)
        for at, value, says in ((20, float("nan"), "not finite"), (4, -1.0, "negative"), (24, float("inf"), "not finite")):
            changed = [(kind, flags, content[:at] + struct.pack("<f", value) + content[at + 4:])
                       if kind == coded_model.TABLE_CODES else (kind, flags, content)
                       for kind, flags, content in sections]
            self.write("bad.slr", coded_model.file_of(whole, changed))
            for command in (("info", "bad.slr"), ("predict", "bad.slr", "test.csv", "-o", "p.npy")):
                self.run_bad(1, *command, says=["bad.slr", "embedding of feature", says])
            checked = self.start("check", "bad.slr")
            self.assertEqual(checked.returncode, 1)
            self.assertIn(says, checked.stdout + checked.stderr)


class Absent(CommandTest):
    @unittest.skipIf(RANKS, "this build ranks")
    def test_every_command_says_so(self):
        self.write("a.csv", b"id\n1\n")
        self.write("s.json", b"{}")
        for command in (("train", "s.json", "a.csv", "-o", "m.slr"), ("predict", "m.slr", "a.csv", "-o", "p.npy"),
                        ("evaluate", "m.slr", "a.csv"), ("items", "a.csv", "-o", "a.sli")):
            self.run_bad(1, *command, says=["cannot rank", "cJSON"])


class Locales(RankingTest):
    def test_change_nothing(self):
        """Numbers have a dot in files, in options and in what is printed, whatever the locale says."""
        self.with_model()
        made = subprocess.run([MAKE_LOCALES, self.path("locales")], capture_output=True, text=True)
        if made.returncode == 77:
            self.skipTest(made.stderr)
        self.assertEqual(made.returncode, 0, made.stderr)
        wanted = None
        for name in ("C", "comma", "arabic", "wide"):
            env = os.environ | {"LOCPATH": self.path("locales"), "LC_ALL": name}
            self.run_ok("predict", "m.slr", "test.csv", "-o", "p.csv", env=env)
            told = [self.read("p.csv"), self.run_ok("info", "m.slr", "--json", env=env)]
            if DEEP:
                self.run_ok("prune", "m.slr", "-o", "n.slr", "--units", "0.25", "--criterion", "norm", env=env)
                told.append(self.read("n.slr"))
            wanted = wanted or told
            self.assertEqual(told, wanted, name)


class Predict(RankingTest):
    def setUp(self):
        super().setUp()
        self.with_model()

    def labels(self):
        return [int(row[-1]) for row in self.lines("test.csv")[1:]]

    def test_formats_and_threads_agree(self):
        told = self.run_json("predict", "m.slr", "test.csv", "-o", "p.npy")
        self.assertEqual((told["rows"], told["outputs"], told["output"]), (700, 1, "p.npy"))
        data = self.read("p.npy")
        self.assertIn(b"'shape': (700,)", data[:128])
        self.assertEqual(len(data), 128 + 4 * 700)
        scores = list(struct.unpack("<700f", data[128:]))
        self.assertTrue(all(0 < x < 1 for x in scores))
        self.run_ok("predict", "m.slr", "test.csv", "-o", "p.csv", "--threads", 2)
        self.assertEqual(self.lines("p.csv"), [[f"{x:.9g}"] for x in scores])

    def test_many_blocks(self):
        """More rows than are held at a time, and a label that is not there."""
        rows = click_rows(20000, 6)
        self.write("many.csv", table(CLICKS[:-1], [row[:-1] for row in rows]))
        self.run_ok("predict", "m.slr", "many.csv", "-o", "p.npy")
        data = self.read("p.npy")
        self.assertEqual(len(data), 128 + 4 * 20000)
        self.write("last.csv", table(CLICKS[:-1], [row[:-1] for row in rows[-5:]]))
        self.run_ok("predict", "m.slr", "last.csv", "-o", "q.npy")
        for got, want in zip(struct.unpack("<5f", data[-20:]), struct.unpack("<5f", self.read("q.npy")[-20:])):
            self.assertAlmostEqual(got, want, places=6)
        self.write("none.csv", table(CLICKS, []))
        self.run_ok("predict", "m.slr", "none.csv", "-o", "p.npy")
        self.assertIn(b"'shape': (0,)", self.read("p.npy"))

    def test_evaluate_measures_these_scores(self):
        self.run_ok("predict", "m.slr", "test.csv", "-o", "p.csv")
        scores, labels = [float(row[0]) for row in self.lines("p.csv")], self.labels()
        told = self.run_json("evaluate", "m.slr", "test.csv")
        n = len(labels)
        base = sum(labels) / n
        loss = -sum(math.log(s if y else 1 - s) for s, y in zip(scores, labels)) / n
        pairs = [(a > b) + 0.5 * (a == b) for a, y in zip(scores, labels) if y for b, z in zip(scores, labels) if not z]
        entropy = -base * math.log(base) - (1 - base) * math.log(1 - base)
        want = {"logloss": loss, "auc": sum(pairs) / len(pairs), "base_rate": base,
                "accuracy": sum((s >= 0.5) == bool(y) for s, y in zip(scores, labels)) / n,
                "rmse": math.sqrt(sum((s - y) ** 2 for s, y in zip(scores, labels)) / n),
                "calibration": sum(scores) / sum(labels), "normalized_entropy": loss / entropy}
        for key, value in want.items():
            self.assertAlmostEqual(told[key], value, places=5, msg=key)
        self.assertEqual(told["rows"], n)
        order = sorted(zip(scores, labels))
        self.assertEqual([d["rows"] for d in told["deciles"]], [70] * 10)
        for i, decile in enumerate(told["deciles"]):
            part = order[70 * i:70 * i + 70]
            self.assertAlmostEqual(decile["score"], sum(s for s, _ in part) / 70, places=5)
        self.assertIsNone(told["group_auc"])

    def test_groups(self):
        told = self.run_json("evaluate", "m.slr", "test.csv", "--group", "user", "-k", 3)
        self.assertEqual((told["groups"], told["k"]), (30, 3))
        self.assertGreater(told["group_auc"], 0.6)
        self.assertTrue(0 < told["ndcg"] <= 1)
        self.assertNotEqual(told["ndcg"], self.run_json("evaluate", "m.slr", "test.csv", "--group", "user")["ndcg"])

    def test_gains(self):
        """NDCG of values: grades gain 2^label - 1, other labels what they are; below 0 they have no NDCG."""
        self.spec(label={"column": "price", "loss": "squared"}, features=SPEC["features"][:3])
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "v.slr")
        rows = self.lines("test.csv")
        found = {}
        for name, change in (("grades", lambda x: round(float(x))), ("prices", float), ("large", lambda x: 1e6 * float(x)),
                             ("debts", lambda x: float(x) - 4)):
            self.write(f"{name}.csv", table(rows[0], [row[:4] + [change(row[4])] + row[5:] for row in rows[1:]]))
            evaluate = ("evaluate", "v.slr", f"{name}.csv", "--group", "user")
            if name == "debts":
                self.run_bad(1, *evaluate, says=["debts.csv", "the label is -", "at least 0"])
                self.assertIsNone(self.run_json(*evaluate[:3])["ndcg"])
                continue
            found[name] = self.run_json(*evaluate)
            self.assertTrue(0 < found[name]["ndcg"] < 1)
            self.assertIn(f"gain {found[name]['gain']}\n", self.run_ok(*evaluate))
        self.assertEqual([found[name]["gain"] for name in found], ["2^label - 1", "label", "label"])
        self.assertAlmostEqual(found["prices"]["ndcg"], found["large"]["ndcg"], places=6)

    def test_text(self):
        out = self.run_ok("evaluate", "m.slr", "test.csv")
        for word in ("logloss", "AUC", "accuracy", "RMSE", "normalised entropy"):
            self.assertIn(word, out)
        self.assertRegex(out, r"decile +rows +mean score +mean label\n +1 +70 +0\.\d+ +0\.\d+\n")
        self.assertRegex(self.run_ok("predict", "m.slr", "test.csv", "-o", "p.npy"), r"^p\.npy: 700 rows of 1 scores")

    def test_info(self):
        told = self.run_json("info", "m.slr")
        self.assertEqual((told["loss"], told["outputs"]), ("logistic", 1))
        features = {f["name"]: f for f in told["features"]}
        self.assertEqual(list(features), [f["name"] for f in SPEC["features"]])
        self.assertEqual((features["age"]["form"], features["age"]["size"], features["age"]["side"]),
                         ("dense", 1, "user"))
        self.assertEqual((features["job"]["form"], features["job"]["dim"], features["job"]["wide"]),
                         ("id", 4 if DEEP else 0, True))
        self.assertEqual((features["genres"]["form"], features["genres"]["side"]), ("bag", "item"))
        self.assertEqual((features["taste"]["side"], features["taste"]["size"], features["taste"]["deep"]),
                         ("pair", 200, False))
        self.assertEqual(json.loads(told["spec"]), SPEC)
        tables = {t["name"]: t for t in told["embeddings"]}
        self.assertEqual("embedding.job" in tables, bool(DEEP))
        for table in tables.values():
            self.assertEqual((table["type"], table["bytes"]), ("f32", 4 * table["size"] * table["dim"]))
            self.assertRegex(self.run_ok("info", "m.slr"), rf"{table['name']} +f32 +{table['size']} ")
        self.assertEqual(json.loads(self.run_ok("info", "m.slr", "--spec")), SPEC)
        self.assertRegex(self.run_ok("info", "m.slr"), r"taste +bag +pair +200 +0 +wide\n")

    def test_columns(self):
        rows = self.lines("test.csv")
        self.write("fewer.csv", table([c for c in rows[0] if c != "job"], [row[:2] + row[3:] for row in rows[1:]]))
        self.run_bad(1, "predict", "m.slr", "fewer.csv", "-o", "p.npy", says=["fewer.csv", "'job'"])
        self.run_bad(1, "evaluate", "m.slr", "fewer.csv", says=["fewer.csv", "'job'"])
        self.run_bad(1, "evaluate", "m.slr", "test.csv", "--group", "nobody", says=["test.csv", "'nobody'"])
        self.run_bad(1, "evaluate", "m.slr", "test.csv", "-k", 0, says=["-k is 0"])
        self.write("unlabelled.csv", table(rows[0][:-1], [row[:-1] for row in rows[1:]]))
        self.run_bad(1, "evaluate", "m.slr", "unlabelled.csv", says=["unlabelled.csv", "'liked'"])
        self.write("short.csv", table(rows[0], rows[1:40]) + b"1,2\n")
        self.run_bad(1, "predict", "m.slr", "short.csv", "-o", "p.npy", says=["short.csv", "line 41"])
        self.run_bad(1, "evaluate", "m.slr", "short.csv", says=["short.csv", "line 41"])
        self.write("words.csv", table(rows[0], rows[1:40] + [["1", "old", "nurse", "drama", "1", "1"]]))
        self.run_bad(1, "predict", "m.slr", "words.csv", "-o", "p.npy", says=["words.csv", "line 41", "'age'"])

    def test_files(self):
        self.run_bad(1, "predict", "none.slr", "test.csv", "-o", "p.npy", says=["none.slr", "No such file"])
        self.run_bad(1, "predict", "m.slr", "none.csv", "-o", "p.npy", says=["none.csv", "No such file"])
        self.run_bad(1, "predict", "m.slr", "test.csv", "-o", "p.txt", says=["p.txt", ".npy or .csv"])
        self.run_bad(1, "predict", "m.slr", "test.csv", "-o", "none/p.npy", says=["none/p.npy"])
        self.run_bad(1, "predict", "m.slr", "test.csv", "-o", "test.csv", says=["input test.csv"])
        self.run_bad(1, "predict", "test.csv", "test.csv", "-o", "p.npy", says=["test.csv", "not a Shortlist ranker"])

    def test_corrupt_model(self):
        whole = self.read("m.slr")
        for data in (whole[:100], whole[:-10], whole + b"x", b""):
            self.write("bad.slr", data)
            self.run_bad(1, "predict", "bad.slr", "test.csv", "-o", "p.npy", says=["bad.slr"])
            self.run_bad(1, "info", "bad.slr", says=["bad.slr"])
        source = random.Random(8)
        refused = 0
        for _ in range(60):
            data = bytearray(whole)
            data[source.randrange(len(data))] ^= 1 << source.randrange(8)
            self.write("bad.slr", bytes(data))
            done = self.start("predict", "bad.slr", "test.csv", "-o", "p.npy")
            self.assertIn(done.returncode, (0, 1))  # 0: the slack between two sections
            refused += done.returncode
        self.assertGreater(refused, 10)

    def test_interrupt(self):
        """A signal while scores are written: nothing of them is left."""
        self.write("many.csv", table(CLICKS, click_rows(2000, 9) * 300))
        self.write("p.csv", b"what was here")
        err = self.interrupt_writing("predict", "m.slr", "many.csv", "-o", "p.csv")
        self.assertEqual(err, "shortlist predict: interrupted; nothing was written\n")

    @unittest.skipIf(os.environ.get("SANITIZER") == "thread", "the sanitizer's runtime itself dies of the limit")
    def test_disk_full(self):
        self.write("many.csv", table(CLICKS, click_rows(3000, 9)))
        self.write("p.npy", b"what was here")
        for command, name in ((("predict", "m.slr", "many.csv", "-o", "p.npy"), "p.npy"),
                              (("train", "spec.json", "clicks.csv", "-o", "n.slr"), "n.slr"),
                              (("items", "items.csv", "-o", "items.sli"), "items.sli")):
            self.run_bad(1, *command, says=[name, "File too large"], preexec_fn=limit_files)
