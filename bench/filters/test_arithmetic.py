"""The arithmetic of ./dev bench filters: cells, truths, ratios, targets and tables, without any library."""

import pathlib
import sys
import unittest

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent / "peers"), str(HERE.parent)]

import cells  # noqa: E402
import report  # noqa: E402


class Few:
    """A data set of points on a half circle: neighbours have neighbouring numbers."""
    similarity, count = "ip", 2000

    def __init__(self):
        angle = numpy.linspace(0, numpy.pi, self.count)
        self.rows = numpy.stack([numpy.cos(angle), numpy.sin(angle)], axis=1)
        self.raw_queries = self.rows[::5]

    def prepared(self, rows):
        return numpy.array(rows)


class Cells(unittest.TestCase):
    def setUp(self):
        self.cells = cells.make(Few(), (0.5, 0.01, 0.001), ("near", "chance", "far"))

    def test_counts(self):
        self.assertEqual([len(cell.allowed) for cell in self.cells[::3]], [1000, 20, 2])
        self.assertEqual([cell.kind for cell in self.cells[:3]], ["near", "chance", "far"])
        self.assertTrue(all(len(cell.queries) == cells.QUERIES for cell in self.cells))
        self.assertEqual([cells.filled(cell) for cell in self.cells[::3]], [10, 10, 2])

    def test_near_and_far(self):
        near, _, far = self.cells[3:6]
        self.assertEqual(near.allowed.tolist(), far.allowed.tolist())
        self.assertEqual(near.allowed.tolist(), list(range(near.allowed[0], near.allowed[0] + 20)))
        middle = near.allowed.mean()

        def distance(cell):
            return numpy.abs(5 * cell.queries - middle).mean()

        self.assertLess(distance(near), 260)
        self.assertGreater(distance(far), 600)

    def test_truth(self):
        cell = self.cells[0]
        for query, truth, everywhere in zip(cell.queries, cell.truth, cell.everywhere):
            by_distance = sorted(range(Few.count), key=lambda i: abs(i - 5 * query))
            self.assertEqual(everywhere[0], 5 * query)
            self.assertLess({*everywhere} - {*by_distance[:12]}, {1})
            self.assertTrue(set(truth) <= set(cell.allowed.tolist()))
            self.assertEqual(len(truth), 10)
        self.assertTrue(all(set(truth) == set(self.cells[6].allowed) for truth in self.cells[6].truth))

    def test_bits(self):
        words = cells.bits_of(numpy.array([0, 63, 64, 99]), 100)
        self.assertEqual(words.tolist(), [1 | 1 << 63, 1 | 1 << 35])

    def test_recall(self):
        self.assertEqual(cells.recall([[1, 2], [3]], [[1, 2], [3, 4]]), 0.75)
        self.assertEqual(cells.recall([[9, 2]], [[1, 2], [3, 4]]), 0.5)


def choice(name, kind, recall=0.96, **more):
    return {"name": name, "kind": kind, "recall": recall, "reached": recall >= 0.95, "setting": [10], "us": 1,
            "tried": [], **more}


CHOICES = {c["name"]: c for c in (
    choice("unfiltered", "unfiltered"),
    choice("auto", "auto", evaluations=100, results=10, strategies={"exact": 0.25, "walk": 0.75, "partitions": 0}),
    choice("recall=0.95", "tuned", 0.92), choice("exact", "forced", 1), choice("walk", "forced", 0.97),
    choice("partitions", "forced", 0.5), choice("a", "peer"), choice("b", "peer", 0.7), choice("c", "peer"),
    choice("scan", "scan", 1))}
TOOK = {"unfiltered": 10, "auto": 20, "recall=0.95": 22, "exact": 40, "walk": 16, "partitions": 1, "a": 80, "b": 5,
        "c": 50, "scan": 12}
ROUNDS = [TOOK, {name: 2 * us for name, us in TOOK.items()}, {**TOOK, "auto": 40}]
ABOUT = {"name": "1 % near", "share": 0.01, "kind": "near", "allowed": 20, "wanted": 10}
COSTS = [{"round": r, "made": made, "ms": ms, "allowed": 5} for r, ms in enumerate((20, 30, 40))
         for made in ("a list of 1,000,000 ids", "10,000 ids excluded")]


class Ratios(unittest.TestCase):
    def setUp(self):
        self.cell = report.row(ABOUT, CHOICES, ROUNDS)

    def test_who_is_compared(self):
        self.assertEqual((self.cell["forced"], self.cell["peer"]), ("walk", "c"))

    def test_ratios(self):
        ratios = {name: of["median"] for name, of in self.cell["ratios"].items()}
        self.assertEqual(ratios["forced"], 20 / 16)
        self.assertEqual(ratios["unfiltered"], 2)
        self.assertAlmostEqual(ratios["scan"], 20 / 12)
        self.assertEqual(ratios["peer"], 2.5)
        self.assertEqual(ratios["bound"], statistics_median([20 / 20, 40 / 35, 40 / 20]))
        self.assertEqual(self.cell["ratios"]["peer"]["min"], 1.25)

    def test_a_round_that_a_slow_one_left_out(self):
        rounds = [TOOK, {name: us for name, us in TOOK.items() if name != "c"}, {**TOOK, "auto": 10}]
        cell = report.row(ABOUT, CHOICES, rounds)
        self.assertEqual((cell["ratios"]["peer"]["min"], cell["ratios"]["peer"]["max"]), (2.5, 5))

    def test_our_scan_counts_where_it_is_faster(self):
        cell = report.row(ABOUT, CHOICES, [{**TOOK, "exact": 8}])
        self.assertEqual(cell["ratios"]["scan"]["median"], 2.5)
        self.assertEqual(cell["ratios"]["bound"]["median"], 20 / 15)
        late = {**CHOICES, "exact": choice("exact", "forced", 0.9)}
        self.assertAlmostEqual(report.row(ABOUT, late, [{**TOOK, "exact": 8}])["ratios"]["scan"]["median"], 20 / 12)

    def test_no_peer_reaches(self):
        none = {**CHOICES, "a": choice("a", "peer", 0.8), "c": choice("c", "peer", 0.9)}
        cell = report.row(ABOUT, none, ROUNDS)
        self.assertIsNone(cell["peer"])
        self.assertNotIn("peer", cell["ratios"])
        self.assertEqual(report.best_peer(cell), ("none (c 0.90)", 50))

    def test_facts(self):
        facts = {f["name"]: f for f in report.cell_facts(self.cell)}
        self.assertEqual([f["met"] for f in facts.values()], [True, False, True, True, False, True])
        without = report.row({**ABOUT, "name": "all but 10000 near"}, CHOICES, ROUNDS)
        self.assertEqual([f["target"] for f in report.cell_facts(without)], [0.95, 0.93, 10, 1.10])

    def test_costs(self):
        made = report.costs(COSTS)
        self.assertEqual(made[0]["ms"], {"median": 30, "min": 20, "max": 40})
        record = {"cells": [], "costs": made}
        self.assertEqual([(f["target"], f["met"]) for f in report.facts(record)], [(25, False)])


def statistics_median(values):
    return sorted(values)[len(values) // 2]


class Words(unittest.TestCase):
    def setUp(self):
        self.record = {"machine": {"cpu": "a processor"}, "parameters": {"queries": 100, "k": 10},
                       "data": {"name": "some", "rows": 2000, "dim": 2, "metric": "cosine"},
                       "cells": [report.row(ABOUT, CHOICES, ROUNDS)], "costs": report.costs(COSTS)}
        self.record["targets"] = report.facts(self.record)

    def test_strategies(self):
        self.assertEqual(report.strategies(CHOICES["auto"]), "walk 75 %, exact 25 %")
        self.assertEqual(report.strategies({"strategies": {"exact": 1, "walk": 0}}), "exact")

    def test_table(self):
        text = report.table(self.record)
        self.assertIn("walk 75 %, exact 25 %", text)
        self.assertIn("(0.50)", text)
        self.assertIn("targets: 4 of 7 reached", text)

    def test_markdown(self):
        rows = report.markdown(self.record).splitlines()
        self.assertEqual({row.count("|") for row in rows}, {10})
        self.assertIn("| c, 50 µs | 2.5 |", rows[2])


if __name__ == "__main__":
    unittest.main()
