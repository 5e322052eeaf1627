"""The arithmetic of storage: medians over processes, rates, ratios of the same round, and the table of them."""

import pathlib
import sys
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import report  # noqa: E402


def opened(size, place, answer_ms, about=((10.0, 5.0), (6.0, 6.0), (4.0, 5.0))):
    return {"event": "open", "bytes": size, "place": place, "open_ms": answer_ms / 2, "answer_ms": answer_ms,
            "about": [list(pair) for pair in about], "mapping": "shared", "dax": False}


def copied(turn, open_s, memcpy_s):
    return {"event": "copy", "turn": turn, "bytes": 2 * 10**9, "open_s": open_s, "open_one_s": 2 * open_s,
            "memcpy_s": memcpy_s, "memcpy_fresh_s": 1.0}


def asked(medium, number, qps):
    return {"event": "qps", "medium": medium, "round": number, "qps": qps}


def several(n, qps, ratio, pss):
    return {"event": "procs", "round": 0, "n": n, "qps": qps, "ratio": ratio, "pss_bytes": pss}


def group(way, number, add_s, durable_s):
    return {"event": "group", "way": way, "round": number, "rows": 1000, "add_s": add_s, "durable_s": durable_s}


EVENTS = [opened(2**30, "map", 1.0), opened(2**30, "map", 3.0), opened(2**30, "map", 2.0), opened(2**33, "map", 2.5),
          opened(2**33, "pmem", 9.0), copied(0, 8.0, 9.0), copied(1, 2.0, 0.5),
          copied(2, 4.0, 0.5), copied(3, 1.0, 0.5),
          asked("dram", 0, 1000.0), asked("map", 0, 900.0), asked("dram", 1, 500.0), asked("map", 1, 550.0),
          asked("pmem", 1, 250.0), asked("dram", 2, 800.0), asked("map", 2, 800.0),
          several(1, 1000.0, 1.0, 2**28), several(2, 1900.0, 1.9, 2**28 + 2**20),
          group("dram", 0, 1.0, 0.0), group("dram", 0, 1.0, 0.0), group("map", 0, 1.0, 0.25), group("map", 0, 1.0, 0.25),
          group("pmem forced", 0, 2.0, 0.0), group("usearch", 0, 1.0, 4.0), group("usearch", 0, 1.0, 19.0),
          group("dram", 1, 2.0, 0.0), group("map", 1, 2.0, 3.0)]


class Storage(unittest.TestCase):
    def setUp(self):
        self.summary = report.summarise(EVENTS)

    def test_opens_by_file_and_place(self):
        self.assertEqual([(row["bytes"], row["place"], row["opens"]) for row in self.summary["open"]],
                         [(2**30, "map", 3), (2**33, "map", 1), (2**33, "pmem", 1)])
        self.assertEqual(self.summary["open"][0]["answer_ms"], {"median": 2.0, "min": 1.0, "max": 3.0})
        self.assertEqual(self.summary["open"][0]["open_ms"]["median"], 1.0)

    def test_the_thousandth_query_is_compared_query_by_query(self):
        row = self.summary["open"][0]
        self.assertEqual(row["about_ratio"]["median"], 1.0)
        self.assertEqual((row["about_us"]["median"], row["warm_us"]["median"]), (6.0, 5.0))

    def test_copying(self):
        copy = self.summary["copy"]
        self.assertEqual(copy["gb_per_s"]["open_s"], {"median": 1.0, "min": 0.5, "max": 2.0})
        self.assertEqual(copy["share"], {"median": 0.5, "min": 0.25, "max": 1.0})
        self.assertEqual(copy["share_one"]["max"], 0.5)
        self.assertEqual(copy["share_present"]["median"], 0.25)
        self.assertEqual(copy["first_gb_per_s"]["median"], 0.25)

    def test_media_are_compared_in_the_same_round(self):
        rows = {row["medium"]: row for row in self.summary["qps"]}
        self.assertEqual(list(rows), ["dram", "map", "pmem"])
        self.assertEqual(rows["map"]["ratio"], {"median": 1.0, "min": 0.9, "max": 1.1})
        self.assertEqual(rows["pmem"]["ratio"]["median"], 0.5)
        self.assertEqual(rows["dram"]["ratio"], {"median": 1.0, "min": 1.0, "max": 1.0})

    def test_processes(self):
        self.assertEqual([(row["n"], row["ratio"]["median"]) for row in self.summary["procs"]], [(1, 1.0), (2, 1.9)])

    def test_durable_rates_count_adding_and_making_durable(self):
        rows = {row["way"]: row for row in self.summary["insert"]}
        self.assertEqual(rows["map"]["rows_per_s"], {"median": 500.0, "min": 200.0, "max": 800.0})
        self.assertAlmostEqual(rows["map"]["of_dram"]["max"], 0.8)
        self.assertAlmostEqual(rows["map"]["of_dram"]["min"], 0.4)
        self.assertEqual(rows["map"]["durable_ms"]["min"], 250.0)
        # usearch was there in the first round only: 2,000 rows in 25 s against 2,000 in 2.5.
        self.assertAlmostEqual(rows["usearch"]["map_over_it"]["median"], 10.0)
        self.assertAlmostEqual(rows["pmem forced"]["of_dram"]["median"], 0.5)
        self.assertNotIn("hnswlib", rows)

    def test_the_table_tells_all_of_it(self):
        about = {"data": {"name": "some"}, "machine": {"cpu": "one"}, "file_system": "ext"}
        text = report.table(about, self.summary)
        for word in ("8.00 GiB", "pmem forced", "usearch", "memcpy into new memory at 2.00", "256.0", "10.00"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
