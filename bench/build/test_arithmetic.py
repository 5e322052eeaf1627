"""Medians, ratios, stages and evaluations at recalls, of turns that are made up."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import curves  # noqa: E402
import lineup  # noqa: E402
import parts  # noqa: E402
import report  # noqa: E402


def built(name, number, seconds, **more):
    return {"event": "build", "set": "a", "name": name, "round": number, "rows": 9, "seconds": seconds,
            "processor_s": 2 * seconds, "bytes": 5_000_000, **more}


STAGES = {"read_s": 0.0, "link_s": 1.0, "number_s": 0.5, "save_s": 0.1}
EVENTS = [built("shortlist leaves", 0, 2, **STAGES), built("hnswlib", 0, 20), built("shortlist leaves", 1, 4, **STAGES),
          built("hnswlib", 1, 24), built("hnswlib", 2, 90),
          {"event": "curve", "set": "a", "name": "shortlist leaves",
           "points": [{"recall": 0.8, "evaluations": 100}, {"recall": 0.98, "evaluations": 1000}]}]


class Report(unittest.TestCase):
    def test_ratios_are_of_one_round(self):
        found = report.summarise(EVENTS)["sets"][0]
        self.assertEqual([row["name"] for row in found["builds"]], ["shortlist leaves", "hnswlib"])
        hnswlib = found["builds"][1]
        self.assertEqual(hnswlib["seconds"], {"median": 24, "min": 20, "max": 90})
        self.assertEqual(hnswlib["over_leaves"]["seconds"], {"median": 8, "min": 6, "max": 10})
        self.assertEqual(hnswlib["over_leaves"]["processor_s"], {"median": 8, "min": 6, "max": 10})
        self.assertNotIn("stages", hnswlib)
        self.assertEqual(found["builds"][0]["stages"], STAGES)

    def test_evaluations(self):
        found = report.summarise(EVENTS)["sets"][0]["curves"][0]["evaluations"]
        self.assertAlmostEqual(found["0.9"], 100 * 10 ** 0.30103, 2)  # log(1 - r) falls by 2 of 10
        self.assertAlmostEqual(found["0.98"], 1000, 6)
        self.assertIsNone(found["0.99"])

    def test_table(self):
        record = {"machine": {"cpu": "a processor", "load_average": 0.5}, "parameters": {"threads": 2},
                  "failed": {"scann-core": "could not be installed"}, "summary": report.summarise(EVENTS)}
        text = report.table(record)
        for part in ("a processor", "8.00  (6.00 to 10.00)", "link 1.00", "left out: scann-core: could not be installed"):
            self.assertIn(part, text)


class Curves(unittest.TestCase):
    def test_ends(self):
        points = [{"recall": 0.9, "e": 5.0}, {"recall": 0.9, "e": 6.0}, {"recall": 0.99, "e": 10.0}]
        self.assertIsNone(curves.at_recall(points, 0.5, "e"))
        self.assertIsNone(curves.at_recall(points, 0.995, "e"))
        self.assertAlmostEqual(curves.at_recall(points, 0.99, "e"), 10)
        self.assertIsNone(curves.at_recall([], 0.9, "e"))


class Parts(unittest.TestCase):
    def test_drawn(self):
        self.assertEqual(parts.drawn(10, 5), [0, 2, 4, 6, 8])
        self.assertEqual(parts.drawn(3, 0), [0, 1, 2])
        self.assertEqual(parts.drawn(3, 9), [0, 1, 2])

    def test_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = pathlib.Path(folder) / "one.fbin", pathlib.Path(folder) / "two.fbin"
            one.write_bytes(bytes([4, 0, 0, 0, 1, 0, 0, 0]) + b"aaaabbbbccccdddd")
            parts.copy_rows(one, two, 2)
            self.assertEqual(two.read_bytes(), bytes([2, 0, 0, 0, 1, 0, 0, 0]) + b"aaaacccc")


class Lineup(unittest.TestCase):
    def test_leaves(self):
        self.assertIn("ScaNN 583 leaves", [peer[0] for peer in lineup.peers(339479)])
        self.assertEqual(len({peer[0] for peer in lineup.peers(339479)}), 6)


if __name__ == "__main__":
    unittest.main()
