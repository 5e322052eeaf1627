"""The arithmetic of the limit: bounds, ratios of the same round, and which targets are judged."""

import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402


def times(event, query_us, target=0.9, **ns):
    return {"event": event, "target": target, "query_us": query_us, **{name: 2.0 for name in report.BOUNDS}, **ns}


def point(target=0.9, limit="none"):
    return {"event": "point", "target": target, "limit": limit, "recall": target, "ef": 40, "stop": 0.0, "rerank": 0,
            "evaluations": 1000.0, "expansions": 50.0, "traced": 9000, "traced_expansions": 500}


ABOUT = {"event": "about", "codes": "i4", "m": 16, "n": 1000, "dim": 100, "isa": "avx2"}


class Limit(unittest.TestCase):
    def summary(self):
        return report.summarise([
            ABOUT, point(), times("round", 10.0, array=5.0, cache=1.0), times("round", 8.0, array=6.0),
            times("round", 10.0, array=8.0), times("least", 8.0, array=5.0),
            point(0.99, "graph"), times("round", 1.0, 0.99), times("least", 1.0, 0.99)])

    def test_a_bound_is_evaluations_times_ns(self):
        self.assertAlmostEqual(report.bound_us(1500, 4.0), 6.0)

    def test_ratios_are_of_the_same_round(self):
        row = self.summary()["points"][0]
        self.assertEqual(row["ratio"]["array"], {"median": 0.75, "min": 0.5, "max": 0.8})
        self.assertAlmostEqual(row["ratio"]["cache"]["min"], 0.1)
        self.assertAlmostEqual(row["ratio_of_least"]["array"], 5.0 / 8.0)
        self.assertEqual(row["bound_us"]["array"], 6.0)
        self.assertEqual(row["group"], 18.0)

    def test_a_target_out_of_reach_is_not_judged(self):
        summary = self.summary()
        self.assertEqual([row["reached"] for row in summary["points"]], [True, False])
        facts = report.facts([summary])
        self.assertEqual([(f["target"], f["reached"], f["met"]) for f in facts], [(0.75, 0.75, True)])

    def test_the_table_tells_evaluations_ns_bound_and_ratio(self):
        summary = self.summary()
        about = {"data": {"name": "some"}, "machine": {"cpu": "one"}, "targets": report.facts([summary]),
                 "parameters": {"metric": "cosine", "clock": "wall"}}
        line = next(text for text in report.table(about, [summary]).splitlines() if text.startswith("i4 m=16"))
        self.assertEqual(line.split()[2:], ["0.9000", "40", "0.000", "1000", "18.0", "6.00", "6.0", "10.0", "0.75",
                                            "(0.50", "to", "0.80)"])
        self.assertIn("recall 0.99 is out of reach", report.table(about, [summary]))


if __name__ == "__main__":
    unittest.main()
