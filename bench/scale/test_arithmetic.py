"""Laws, what they say of other sizes, and tables, of measurements that are made up."""

import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import laws  # noqa: E402
import report  # noqa: E402

SIZES = (10_000, 100_000, 1_000_000)


class Laws(unittest.TestCase):
    def check(self, fit, value):
        law = fit(SIZES, [value(n) for n in SIZES])
        self.assertLess(law["off"], 1e-6)
        self.assertAlmostEqual(laws.at(law, 3_000_000) / value(3_000_000), 1, 6)
        return law

    def test_each_finds_its_own(self):
        self.check(laws.logarithm, lambda n: 20 + 30 * math.log(n))
        self.check(laws.line, lambda n: 5e6 + 700 * n)
        self.check(laws.power, lambda n: 0.3 * n ** 1.2)
        self.check(laws.with_centres, lambda n: 2e-5 * n + 3e-9 * laws.compared(n))
        self.check(laws.n_log_n, lambda n: 2e-6 * n + 3e-6 * n * math.log(n))

    def test_no_factor_below_0(self):
        law = laws.with_centres(SIZES, [0.001 * n ** 0.9 for n in SIZES])
        self.assertEqual(law["b"], 0)
        self.assertGreater(law["a"], 0)
        law = laws.logarithm(SIZES, [50, 40, 30])
        self.assertEqual((law["a"], law["b"]), (40, 0))
        law = laws.with_centres(SIZES, [1e-12 * n ** 2.1 for n in SIZES])
        self.assertEqual(law["a"], 0)

    def test_centres_in_groups(self):
        self.assertEqual(laws.compared(100_000), 2 * 100_000 * (11 + 501))  # twelve groups are all
        self.assertAlmostEqual(laws.compared(10**9) / 2e9, 1764.1, 1)  # heads are grouped twice: 46 and 3 times 576

    def test_how_far_off(self):
        self.assertAlmostEqual(laws.off(lambda n: n, (1, 2), (2, 2)), 0.5)


def built(rows, builder, number, seconds):
    return {"event": "build", "rows": rows, "builder": builder, "round": number, "seconds": seconds,
            "processor_s": 2 * seconds, "link_s": seconds, "number_s": 0.1, "save_s": 0.1, "peak_bytes": 1000 * rows,
            "bytes_total": 300 * rows}


def curve(rows, builder, evaluations):
    return {"event": "curve", "rows": rows, "builder": builder,
            "points": [{"ef": 10, "recall": 0.95, "evaluations": evaluations, "qps": 1e7 / evaluations},
                       {"ef": 20, "recall": 0.99, "evaluations": 9 * evaluations, "qps": 1e6 / evaluations}]}


EVENTS = [event for rows in SIZES for builder in ("leaves", "insert")
          for event in (built(rows, builder, 0, rows * 1e-5), built(rows, builder, 1, rows * 3e-5),
                        curve(rows, builder, 100 * math.log(rows)))]
PLANS = [{"rows": rows, **{field: 310 * rows for field in report.PLANNED}} for rows in report.FAR]


class Report(unittest.TestCase):
    def setUp(self):
        self.summary = report.summarise(EVENTS, PLANS)

    def test_medians(self):
        row = self.summary["sizes"][0]
        self.assertEqual((row["rows"], row["builder"], row["rounds"]), (10_000, "leaves", 2))
        self.assertAlmostEqual(row["seconds"]["median"], 0.2)
        self.assertAlmostEqual(row["ns"], 100)

    def test_far(self):
        self.assertEqual([(row["rows"], row["builder"]) for row in self.summary["far"]],
                         [(10**9, "leaves"), (10**9, "insert"), (4 * 10**9, "insert")])
        row = self.summary["far"][0]
        self.assertEqual((row["rows"], row["builder"]), (1_000_000_000, "leaves"))
        self.assertAlmostEqual(row["peak_bytes"], 1e12)
        self.assertAlmostEqual(row["hours"]["1.0"] * 3600 * report.CORES / (4e-5 * 1e9), 1, 4)
        self.assertAlmostEqual(row["hours"]["0.5"], 2 * row["hours"]["1.0"])
        self.assertAlmostEqual(row["evaluations"], 100 * math.log(1e9), 3)
        self.assertAlmostEqual(row["qps"]["1.0"], report.CORES * 1e7 / (100 * math.log(1e9)), -2)

    def test_a_recall_that_is_not_reached(self):
        low = [dict(event, points=event["points"][:1]) if event["event"] == "curve" else event for event in EVENTS]
        summary = report.summarise(low, PLANS)
        self.assertIsNone(summary["sizes"][0]["evaluations"])
        self.assertNotIn("qps", summary["far"][0])
        self.assertIn("| – |", report.markdown(list(report.far_lines(summary))))

    def test_tables(self):
        lines = report.markdown(list(report.measured_lines(self.summary))).splitlines()
        self.assertEqual(len(lines), 2 + 6)
        self.assertEqual({line.count("|") for line in lines}, {10})
        self.assertIn("a N + b C(N)", report.markdown(list(report.fit_lines(self.summary))))


if __name__ == "__main__":
    unittest.main()
