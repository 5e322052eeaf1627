"""The arithmetic of ./dev bench precision: ratios, drops, targets and tables. Needs none of the peers."""

import itertools
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402


def contender(name, *us):
    return {"name": name, "about": "", "largest": 0, "rms": 0, "us": list(us)}


def speed(*contenders, net="criteo", rows=500):
    return {"event": "speed", "net": net, "rows": rows, "deviation": 1, "contenders": list(contenders)}


CASE = speed(contender("shortlist/f32/whole", 900, 900, 900), contender("shortlist/f32/parts", 400, 800, 400),
             contender("shortlist/static/whole", 300, 300, 300), contender("shortlist/static/parts", 100, 200, 110),
             contender("shortlist/static/parts-i8", 110, 220, 120), contender("onnxruntime/qdq/once", 290, 600, 300),
             contender("openvino/nncf-mixed/whole", 250, 500, 260), contender("openvino/default/once", 220, 440, 220),
             contender("onnxruntime/qdq/split", 120, 240, 120))


class Test(unittest.TestCase):
    def test_auc_counts_pairs_in_order(self):
        labels, scores = [1, 0, 1, 0, 0, 1, 0], [0.2, 0.2, 0.9, 0.1, 0.9, 0.5, 0.5]
        pairs = [(a, b) for (a, one), (b, other) in itertools.product(zip(scores, labels), repeat=2)
                 if one and not other]
        self.assertAlmostEqual(report.auc(labels, scores), sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))

    def test_the_fastest_are_compared_round_by_round(self):
        of = {pair["name"]: pair for pair in report.speed(CASE)["ratios"]}
        self.assertEqual(of["own f32"]["fast"], "shortlist/static/parts")
        self.assertEqual(of["own f32"]["slow"], "shortlist/f32/parts")
        self.assertEqual(of["own f32"]["ratio"]["median"], 4)
        self.assertEqual(of["best INT8 of the peers"]["slow"], "openvino/nncf-mixed/whole")
        self.assertEqual(of["best INT8 of the peers"]["ratio"]["median"], 2.5)
        self.assertEqual(of["best of the peers with parts given too"]["ratio"]["median"], 1.2)
        self.assertEqual(of["best floats of the peers"]["slow"], "openvino/default/once")

    def test_another_net_is_told(self):
        def of(name, rms):
            return {"name": name, "rms": rms}

        found = {"deviation": 0.5, "contenders": [
            of("shortlist/f32/parts", 4e-5), of("shortlist/f32/parts-i8", 0.09), of("openvino/default/once", 0.09),
            of("onnxruntime/f32/once", 6e-5), of("onnxruntime/qdq", 0.11), of("openvino/f32", float("nan"))]}
        self.assertEqual(report.strangers(found), ["onnxruntime/f32/once", "onnxruntime/qdq", "openvino/f32"])

    def test_one_row_is_compared_whole(self):
        case = report.speed(speed(contender("shortlist/f32/whole", 30), contender("shortlist/static/whole", 10),
                                  rows=1))
        self.assertEqual([pair["name"] for pair in case["ratios"]], ["own f32"])
        self.assertEqual(case["contenders"][1]["us"]["median"], 10)

    def test_times_are_of_a_row(self):
        self.assertEqual(report.speed(CASE)["contenders"][3]["us"], {"median": 0.22, "min": 0.2, "max": 0.4})

    def test_drops_are_from_the_model_of_floats(self):
        models = [{**contender("shortlist/f32", 10), "auc": 0.875, "bytes": 4},
                  {**contender("shortlist/static", 5), "auc": 0.75, "bytes": 1}]
        found = report.accuracy({"set": "adult", "rows": 2, "models": models})["models"][1]
        self.assertEqual((found["drop"], found["requests_per_s"], found["times_f32"]["median"]), (0.125, 2e5, 2))

    def test_each_library_has_its_own_base(self):
        def event(name, auc, us, seconds=None):
            return {**contender(name, us), "event": "tuner", "auc": auc, "seconds": seconds}

        found = report.tuner([event("shortlist/f32", 0.5, 500), event("shortlist/auto", 0.25, 250, 1.5),
                              event("openvino/f32", 0.75, 1000), event("openvino/nncf", 0.25, 500, 2)])
        self.assertEqual([(row["drop"], row["us_a_row"], row["times_own_f32"]["median"]) for row in found],
                         [(0, 1, 1), (0.25, 0.5, 2), (0, 2, 1), (0.5, 1, 2)])
        steps = report.training([{"name": name, "batch": 512, "ms": [ms]} for name, ms in
                                 (("shortlist/bf16", 30), ("shortlist/f32", 60), ("torch/bf16/dense", 45),
                                  ("torch/f32/dense", 90))])
        self.assertEqual([(row["of_own_f32"]["median"], row["of_ours"]["median"]) for row in steps],
                         [(0.5, 1), (1, 1), (0.5, 1.5), (1, 1.5)])

    def test_the_table_has_means_over_seeds(self):
        def run(seed, base, coded):
            return {"event": "table", "set": "adult", "seed": seed, "models": [
                {"layers": "f32", "tables": "f32", "auc": base, "bytes": 100},
                {"layers": "tuned", "tables": "f32", "auc": coded, "bytes": 25}]}

        summary = report.summarise([run(1, 0.75, 0.5), run(2, 0.5, 0.5), CASE])
        row = summary["table"][1]
        self.assertEqual((row["auc"], row["drop"], row["drop_largest"], row["bytes_share"]), (0.5, 0.125, 0.25, 0.25))
        self.assertEqual({f["name"]: f["met"] for f in summary["targets"]},
                         {"criteo, 500 rows: INT8 over own f32": True,
                          "criteo, 500 rows: INT8 over the peers' best": True,
                          "criteo, 500 rows: INT8 over the peers' best of whole rows": True,
                          "adult, layers tuned, tables f32: AUC drop": False})
        self.assertIn("| adult, 2 seeds | tuned | f32 | 0.50000 | 0.12500 |", report.markdown(summary))
        self.assertIn("MISSED", report.text({"machine": {"cpu": "a CPU"}}, summary))


if __name__ == "__main__":
    unittest.main()
