"""shortlist quantize: the fastest INT8 layers within a bound, and models with such layers in the other commands."""

import json
import os
import unittest

from ranking import DEEP, RankingTest, table


@unittest.skipUnless(DEEP, "a build without oneDNN trains no deep part")
class Quantize(RankingTest):
    def setUp(self):
        super().setUp()
        self.with_model()

    def quantize(self, *options, out="q.slr"):
        return self.run_json("quantize", "m.slr", "--data", "clicks.csv", "--eval", "test.csv", "-o", out, "--threads",
                             2, *options)

    def test_finds_the_fastest_within_the_bound(self):
        told = self.quantize("--max-drop", 0.01)
        self.assertTrue(told["within"] and told["proved"])
        self.assertEqual((told["rows"], told["output"]), (700, "q.slr"))
        self.assertEqual(told["trials"], len(told["table"]))
        self.assertEqual([row["cost"] for row in told["table"]], sorted(row["cost"] for row in told["table"]))
        self.assertEqual(min(row["cost"] for row in told["table"] if row["within"]), told["cost"])
        for name, value in (("m.slr", "base_value"), ("q.slr", "value")):
            auc = self.run_json("evaluate", name, "test.csv")["auc"]
            self.assertAlmostEqual(auc, told[value], delta=2e-3)
        self.assertEqual((told["bytes_before"], told["bytes"]),
                         tuple(os.path.getsize(self.path(name)) for name in ("m.slr", "q.slr")))
        self.assertEqual([layer["precision"] for layer in told["dense_layers"]], ["int8"] * 3)
        self.assertEqual(self.run_json("info", "q.slr")["dense_layers"], told["dense_layers"])
        self.assertEqual([layer["precision"] for layer in self.run_json("info", "m.slr")["dense_layers"]], ["f32"] * 3)
        self.assertRegex(self.run_ok("info", "q.slr"), r"dense\.0 .* int8 .* inputs ")
        self.run_ok("check", "q.slr")
        self.run_ok("predict", "q.slr", "test.csv", "-o", "p.csv")

    def test_strategies_print_their_trials(self):
        for strategy in ("accuracy-aware", "basic", "mse"):
            out = self.run_ok("quantize", "m.slr", "--data", "clicks.csv", "-o", "q.slr", "--strategy", strategy,
                              "--calibration", "minmax", "--max-drop", 0.5, "--mode", "static", "--keep",
                              "dense.1=f32")
            self.assertIn("int8:minmax f32 int8:minmax", out)
            self.assertIn("faster choices were left unjudged", out)

    def test_bf16(self):
        told = self.quantize("--mode", "bf16", "--max-drop", 0.5)
        self.assertEqual([layer["precision"] for layer in told["dense_layers"]], ["bf16"] * 3)
        self.assertEqual({word for row in told["table"] for word in row["layers"].split()}, {"bf16"})
        self.assertRegex(self.run_ok("info", "q.slr"), r"dense\.0 .* bf16 ")
        self.run_ok("check", "q.slr")

    def test_bayesian(self):
        """The first trial is the cheapest choice, and the same seed makes the same trials."""
        told = [self.quantize("--strategy", "bayesian", "--max-drop", drop, "--trials", 6, "--seed", 3)
                for drop in (0.5, 0.5)]
        self.assertEqual(told[0]["table"], told[1]["table"])
        self.assertTrue(told[0]["within"] and not told[0]["proved"])
        self.assertLessEqual(told[0]["trials"], 6)
        self.run_bad(1, "quantize", "m.slr", "--data", "clicks.csv", "-o", "z.slr", "--strategy", "bayesian", "--trials",
                     1001, says=["1000 at most"])
    def test_the_drop_is_told_of_any_measure(self):
        out = self.run_ok("quantize", "m.slr", "--data", "clicks.csv", "-o", "q.slr", "--metric", "logloss", "--max-drop",
                          0.5, "--trials", 1)
        self.assertRegex(out, r"(worse|better) than F32 \(standard error \d")
        rows = self.lines("test.csv")
        self.write("one.csv", table(rows[0], rows[1:2]))
        out = self.run_ok("quantize", "m.slr", "--data", "clicks.csv", "--eval", "one.csv", "-o", "q.slr", "--metric",
                          "logloss", "--max-drop", 0.5, "--trials", 1)
        self.assertIn("rows too few for a standard error", out)

    def test_tables_of_every_type_are_judged(self):
        told = self.quantize("--max-drop", 0.5)
        self.assertEqual((told["tables"], {row["tables"] for row in told["table"]}), ("i4", {"i4"}))
        self.assertIn("i4", self.run_ok("info", "q.slr"))
        told = self.quantize("--max-drop", 0.5, "--tables", "f32", out="f.slr")
        self.assertEqual({told["tables"], *(row["tables"] for row in told["table"])}, {"f32"})
        out = self.run_ok("quantize", "m.slr", "--data", "clicks.csv", "-o", "q.slr", "--max-drop", 0.5, "--trials", 1)
        self.assertRegex(out, "tables in i4\n")

    def test_tables_in_codes(self):
        self.quantize("--tables", "i4", "--max-drop", 0.5, "--trials", 1)
        self.assertIn(" i4 ", self.run_ok("info", "q.slr"))

    def by_own_order(self):
        """own.csv: labels by the model's own order. Its AUC is 1, and any other order has less."""
        self.run_ok("predict", "m.slr", "test.csv", "-o", "p.csv")
        scores = [float(row[0]) for row in self.lines("p.csv")]
        middle = sorted(scores)[len(scores) // 2]
        rows = self.lines("test.csv")
        for row, score in zip(rows[1:], scores):
            row[-1] = int(score > middle)
        self.write("own.csv", table(rows[0], rows[1:]))

    def test_layers_taken_back_from_bf16(self):
        self.by_own_order()
        for strategy in ("accuracy-aware", "basic", "mse"):
            done = self.start("quantize", "m.slr", "--data", "clicks.csv", "--eval", "own.csv", "-o", "q.slr", "--mode",
                              "bf16", "--strategy", strategy, "--max-drop", 0, "--tables", "f32", "--json")
            told = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0 if told["within"] else 1, done.stderr)
            self.assertEqual(told["table"][0]["layers"], "bf16 bf16 bf16")
            self.assertTrue(all("f32" in row["layers"].split() for row in told["table"][1:]))
            self.assertTrue(told["table"][0]["within"] or len(told["table"]) > 1)

    def test_nothing_within_the_bound(self):
        """A bound that no drop is below: the least drop and a layer are named, and nothing is written."""
        self.by_own_order()
        before = self.snapshot()
        done = self.start("quantize", "m.slr", "--data", "clicks.csv", "--eval", "own.csv", "-o", "q.slr",
                          "--max-drop", 0, "--trials", 1, "--strategy", "basic", "--rows", 1)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"least drop is \S+; layer dense\.\d alone drops .* --max-drop")
        self.assertEqual(self.snapshot(), before)

    def test_quantises_by_training(self):
        for ranges in ("observed", "learned"):
            told = self.quantize("--mode", "qat", "--epochs", 1, "--ranges", ranges, "--max-drop", 0.05, "--keep",
                                 "dense.1=f32", "--tables", "i8")
            self.assertTrue(told["within"] and not told["proved"])
            self.assertEqual((told["rows"], told["trials"], told["output"]), (700, 1, "q.slr"))
            self.assertEqual(told["table"][0]["layers"], "int8 f32 int8")
            self.assertAlmostEqual(told["drop"], told["base_value"] - told["value"], delta=1e-7)
            self.assertGreater(told["drop_error"], 0)
            for name, value in (("m.slr", "base_value"), ("q.slr", "value")):
                self.assertAlmostEqual(self.run_json("evaluate", name, "test.csv")["auc"], told[value], delta=1e-7)
            self.assertEqual(self.run_json("info", "q.slr")["dense_layers"], told["dense_layers"])
            self.run_ok("check", "q.slr")
        out = self.run_ok("quantize", "m.slr", "--data", "clicks.csv", "-o", "r.slr", "--mode", "qat", "--soft", 0,
                          "--max-drop", 0.5)
        self.assertRegex(out, r"1 trial on .*\n.*\n.*\n.* int8 int8 int8\n")
        # Rates that take the model far away from what it was.
        before = self.snapshot()
        done = self.start("quantize", "m.slr", "--data", "clicks.csv", "--eval", "test.csv", "-o", "z.slr", "--mode",
                          "qat", "--max-drop", 0, "--soft", 0, "--rate-scale", 1000, "--epochs", 1)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"its drop is \S+\. Give --max-drop|not finite")
        self.assertEqual(self.snapshot(), before)
        self.run_bad(2, "quantize", "m.slr", "--data", "clicks.csv", "-o", "z.slr", "--epochs", 2,
                     says=["need --mode qat"])
        for given in (("--strategy", "basic"), ("--calibration", "mse"), ("--symmetric",), ("--timeout", 1)):
            self.run_bad(2, "quantize", "m.slr", "--data", "clicks.csv", "-o", "z.slr", "--mode", "qat", *given,
                         says=["--mode qat trains one choice", "leave out"])
        self.run_bad(1, "quantize", "q.slr", "--data", "clicks.csv", "-o", "z.slr", "--mode", "qat",
                     says=["quantised already"])

    def test_trains_in_int8(self):
        train = ("train", "spec.json", "clicks.csv", "-o", "t.slr", "--valid", "test.csv", "--threads", 1, "--epochs",
                 2)
        self.assertEqual(self.run_json(*train)["layers"], "f32")
        told = self.run_json(*train, "--layers", "int8", "--ranges", "learned", "--keep", "dense.0=f32",
                             "--checkpoint", "state.slr")
        self.assertEqual((told["layers"], told["ranges"]), ("int8", "learned"))
        self.assertAlmostEqual(self.run_json("evaluate", "t.slr", "test.csv")["auc"], told["auc"], delta=1e-5)
        self.assertEqual([layer["precision"] for layer in self.run_json("info", "t.slr")["dense_layers"]],
                         ["f32", "int8", "int8"])
        self.run_ok("check", "state.slr")
        self.assertIn("layers in INT8, ranges observed", self.run_ok(*train, "--layers", "int8", "--init", "m.slr"))
        resumed = (*train, "--checkpoint", "state.slr", "--resume")
        self.run_bad(1, *resumed, says=["a training with layers in INT8"])
        self.run_bad(1, *resumed, "--layers", "int8", says=["learned ranges"])
        self.run_bad(2, *train, "--ranges", "learned", says=["--ranges needs --layers int8"])
        self.run_bad(2, *train, "--keep", "dense.0=f32", says=["--keep needs --layers int8"])
        self.run_bad(1, *train, "--layers", "int8", "--precision", "bf16", says=["leave precision bf16 out"])
        self.run_bad(1, *train, "--layers", "int8", "--keep", "dense.9=f32", says=["no layer 'dense.9'"])
        self.run_bad(1, "train", "spec.json", "clicks.csv", "-o", "u.slr", "--init", "t.slr",
                     says=["a quantised model"])

    def test_bad_input(self):
        self.quantize("--max-drop", 0.5, "--trials", 1)
        run = ("quantize", "m.slr", "--data", "clicks.csv", "-o", "z.slr")
        for options, says in (
                (("--keep", "dense.7=f32"), ["dense.7", "dense.0 to dense.2"]),
                (("--metric", "ndcg"), ["NDCG needs groups"]),
                (("--rows", 0), ["rows is 0"]),
                (("--quantile", 1), ["quantile is 1"]),
                (("--metric", "ndcg", "--group", "nothing"), ["nothing"])):
            self.run_bad(1, *run, *options, says=says)
        self.run_bad(2, *run, "--keep", "dense.0", says=["LAYER=f32"])
        self.run_bad(1, "quantize", "q.slr", "--data", "clicks.csv", "-o", "z.slr", says=["q.slr: ", "quantised already"])
        self.run_bad(1, *run, "--keep", "dense.7=f32", says=["m.slr: the model has no layer"])
        rows = self.lines("test.csv")
        self.write("torn.csv", table(rows[0], [rows[1][:-1]]))
        told = self.run_bad(1, *run, "--eval", "torn.csv", says=["torn.csv: line 2"])
        self.assertNotIn("clicks.csv", told)
        self.write("empty.csv", b"user,age,job,genres,price,liked\n")
        self.run_bad(1, "quantize", "m.slr", "--data", "empty.csv", "-o", "z.slr", says=["empty.csv: ", "no rows"])
        self.run_bad(1, *run, "--eval", "empty.csv", says=["empty.csv: no rows"])
        self.run_bad(1, "quantize", "m.slr", "--data", "clicks.csv", "-o", "clicks.csv", says=["clicks.csv"])


if __name__ == "__main__":
    unittest.main()
