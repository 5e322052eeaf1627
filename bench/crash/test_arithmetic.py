"""The output of the tests of durability is read right: counts, and that nothing missing passes for sound."""

import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402

CRASH = ("by a log: 500 crash images of 213 operations, 0 violations\n"
         "directly: 500 crash images of 900 operations, 0 violations\n100%: Checks: 3\n")
KILL = "40 kills: nothing acknowledged was lost; 3 had synced more than they lived to tell\n"


def ran(output, status=0):
    return {"output": output, "status": status, "seconds": 1.5}


def both(run):
    return {"arrays": run, "records": ran(CRASH)}


def met(summary):
    return [target["met"] for target in summary["targets"]]


class Crash(unittest.TestCase):
    def test_counts(self):
        summary = report.summarise(500, both(ran(CRASH)), 40, ran(KILL))
        self.assertEqual(summary["images"]["arrays"]["log"], {"images": 500, "operations": 213, "violations": 0})
        self.assertEqual(summary["images"]["records"]["direct"]["operations"], 900)
        self.assertEqual(summary["kills"]["synced_untold"], 3)
        self.assertEqual(met(summary), [True] * 6)
        self.assertEqual(summary["output"], "")
        self.assertIn("nothing acknowledged was lost", report.table(summary))

    def test_violations_are_missed_targets(self):
        summary = report.summarise(500, both(ran(CRASH.replace("900 operations, 0", "900 operations, 7"), 1)), 40, ran(KILL))
        self.assertEqual(met(summary), [True, False, True, True, False, True])
        self.assertEqual(summary["targets"][1]["reached"], 7)
        self.assertIn("7 violations", summary["output"])

    def test_what_did_not_end_did_not_pass(self):
        for output in ("", CRASH.splitlines()[0] + "\n", CRASH.replace("directly: 500", "directly: 499")):
            self.assertFalse(met(report.summarise(500, both(ran(output, 0)), 40, ran(KILL)))[1])
        for output, status in (("", 0), (KILL, 1), (KILL.replace("40", "39"), 0)):
            self.assertFalse(met(report.summarise(500, both(ran(CRASH)), 40, ran(output, status)))[5])
        self.assertIn("FAILED", report.table(report.summarise(500, both(ran(CRASH)), 40, ran("Killed", 1))))


if __name__ == "__main__":
    unittest.main()
