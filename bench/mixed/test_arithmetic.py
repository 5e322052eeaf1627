"""The arithmetic of ./dev bench mixed: the Kolmogorov-Smirnov test, ratios and targets."""

import itertools
import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402


def step(round_, precision, ms, emulated=False):
    return {"event": "step", "round": round_, "precision": precision, "emulated": emulated, "wall_ms": ms,
            "processor_ms": ms}


def seed(precision, auc):
    return {"event": "seed", "precision": precision, "auc": auc, "skipped_steps": 0}


class Test(unittest.TestCase):
    def test_level_is_that_of_all_orders(self):
        one, other = [1.0, 2.0, 3.0, 6.0], [2.5, 4.0, 5.0, 7.0, 8.0]
        distance = report.ks_distance(one, other)
        everything = sorted(one + other)
        as_far = total = 0
        for chosen in itertools.combinations(range(9), 4):
            mine = [everything[i] for i in chosen]
            rest = [everything[i] for i in range(9) if i not in chosen]
            as_far += report.ks_distance(mine, rest) >= distance
            total += 1
        self.assertAlmostEqual(report.ks_level(one, other), as_far / total)

    def test_known_levels(self):
        """Ten against ten: 0.05 lies between distances of 0.6 and 0.7 (p 0.0524 and 0.0123)."""
        ten = [float(i) for i in range(10)]
        self.assertAlmostEqual(report.ks_level(ten, [x + 5.5 for x in ten]), 0.0524, 4)
        self.assertAlmostEqual(report.ks_level(ten, [x + 6.5 for x in ten]), 0.0123, 4)
        self.assertEqual(report.ks_level(ten, ten), 1.0)

    def test_ratios_are_of_the_same_round(self):
        events = [step(0, "f32", 10), step(0, "bf16", 5), step(1, "f32", 100), step(1, "bf16", 51),
                  step(2, "f32", 10), step(2, "bf16", 5.2)]
        row = report.summarise(events)["steps"][0]
        self.assertEqual((row["precision"], row["rounds"]), ("bf16", 3))
        self.assertAlmostEqual(row["ratio_processor"]["median"], 0.51)

    def test_targets(self):
        events = [step(0, "f32", 10), step(0, "bf16", 7)]
        events += [seed(p, 0.9 + i / 1000) for i in range(10) for p in ("f32", "bf16")]
        facts = report.summarise(events)["targets"]
        self.assertEqual([f["met"] for f in facts], [False, True])
        self.assertIn("MISSED", report.table({"machine": {"cpu": "a CPU"}}, report.summarise(events)))
        far = [seed("f32", 0.9 + i / 1000) for i in range(10)] + [seed("fp16", 0.8 + i / 1000) for i in range(10)]
        self.assertFalse(report.summarise(far)["targets"][0]["met"])
        self.assertEqual(report.summarise([step(0, "f32", 1), step(0, "bf16", 2, True)])["targets"], [])


if __name__ == "__main__":
    unittest.main()
