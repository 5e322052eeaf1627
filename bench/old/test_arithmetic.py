"""The arithmetic of two commits: ratios of the same round, and verdicts on speed, recall, ids and bytes."""

import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402


def searched(side, number, qps, ef=16, recall=0.9):
    return {"event": "search", "set": "some", "codes": "i8", "ef": ef, "side": side, "round": number, "qps": qps,
            "recall": recall, "evaluations": 100.0}


def built(side, number, rate, threads=1):
    return {"event": "build", "set": "some", "codes": "i4", "threads": threads, "side": side, "round": number,
            "rows_per_s": rate}


def same(what, equal):
    return {"event": "same", "what": what, "name": f"some {what}", "same": equal}


EVENTS = [searched("old", 0, 1000.0), searched("new", 0, 1000.0), searched("new", 1, 550.0), searched("old", 1, 500.0),
          searched("old", 2, 2000.0), searched("new", 2, 1600.0), searched("old", 0, 100.0, ef=64),
          searched("new", 0, 99.0, ef=64), built("old", 0, 10.0), built("new", 0, 9.75),
          built("old", 0, 20.0, threads=2), built("new", 0, 30.0, threads=2),
          same("answers", True), same("files", True), same("files", True)]


def summary(events, other_results=False):
    return report.summarise(events, 0.98, 0.97, other_results)


def missed(events, **how):
    return [target["name"] for target in summary(events, **how)["targets"] if not target["met"]]


class Old(unittest.TestCase):
    def test_ratios_are_of_the_same_round(self):
        rows = summary(EVENTS)["searches"]
        self.assertEqual([(row["ef"], row["rounds"]) for row in rows], [(16, 3), (64, 1)])
        self.assertEqual(rows[0]["ratio"], {"median": 1.0, "min": 0.8, "max": 1.1})
        self.assertEqual(rows[0]["speed"], {"old": 1000.0, "new": 1000.0})
        for quartile, wanted in zip(rows[0]["quartiles"], (0.9, 1.05)):
            self.assertAlmostEqual(quartile, wanted)
        self.assertEqual(rows[1]["quartiles"], [0.99, 0.99])

    def test_a_round_of_one_side_counts_for_nothing(self):
        self.assertEqual(summary(EVENTS + [searched("old", 3, 1.0)])["searches"][0]["rounds"], 3)

    def test_all_is_met(self):
        self.assertEqual(missed(EVENTS), [])
        self.assertTrue(report.passed(summary(EVENTS)))
        self.assertEqual([(row["threads"], row["ratio"]["median"]) for row in summary(EVENTS)["builds"]],
                         [(1, 0.975), (2, 1.5)])

    def test_each_setting_is_judged(self):
        slow = EVENTS + [searched("old", 1, 100.0, ef=64), searched("new", 1, 90.0, ef=64)]
        self.assertEqual(missed(slow), ["search some i8 ef 64, new/old"])
        self.assertEqual(missed(EVENTS + [built("old", 1, 10.0), built("new", 1, 9.0)]),
                         ["build some i4 threads 1, new/old"])
        self.assertFalse(report.passed(summary(slow)))

    def test_results_have_to_be_the_same(self):
        other = EVENTS + [searched("old", 1, 100.0, ef=64, recall=0.5), searched("new", 1, 99.0, ef=64, recall=0.6)]
        self.assertEqual(missed(other), ["searches whose recall differs"])
        self.assertEqual(missed(EVENTS + [same("answers", False)]), ["pairs of answers that differ"])
        self.assertEqual(missed(EVENTS + [same("files", False)]), ["pairs of files that differ"])
        self.assertEqual(missed(EVENTS + [same("files", False)], other_results=True), [])

    def test_the_table_tells_all_of_it(self):
        about = {"old": "abc", "new": "def with changes", "machine": {"cpu": "one", "load_average": 0.5}}
        text = report.table(about, summary(EVENTS + [same("answers", False)]))
        for word in ("search some i8 ef 16", "build some i4 threads 2", "0.800 to 1.100", "recall old 0.9000 new 0.9000",
                     "2 pairs of answers: DIFFERENT\n    some answers", "2 pairs of files: the same", "MISSED", "with changes"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
