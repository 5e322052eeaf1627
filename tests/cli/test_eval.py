"""`eval`: recall, speed and memory of an index, by one thread, several, and several processes."""

import math
import os
import unittest
import xml.etree.ElementTree

from harness import decode, npy
from indexed import BASE, N, QUERIES, Indexed


class Eval(Indexed):
    def setUp(self):
        super().setUp()
        self.build("--refine", "f32", "--ef-build", 40, "--m", 4)
        self.truth()

    def recall_by_hand(self, ef, k):
        self.run_ok("search", "x.sl", "queries.fbin", "-k", k, "--ef", ef, "-o", "found.ibin")
        found, true = decode(self.path("found.ibin"))[0], decode(self.path("truth.ibin"))[0]
        return sum(len(set(a) & set(b[:k])) for a, b in zip(found, true)) / (k * QUERIES)

    def eval(self, *options):
        return self.run_json("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, *options)

    def test_recall_is_that_of_search(self):
        points = self.eval("--ef", "10,14,40")["points"]
        self.assertEqual([p["ef"] for p in points], [10, 14, 40])
        for point in points:
            self.assertAlmostEqual(point["recall"], self.recall_by_hand(point["ef"], 10), places=9)
            self.assertGreater(point["qps"], 0)
            self.assertGreater(point["p50_us"], 0)
            self.assertGreaterEqual(point["p99_us"], point["p50_us"])
            self.assertGreaterEqual(point["p999_us"], point["p99_us"])
            self.assertGreater(point["evaluations"], 10)
        self.assertLess(points[0]["recall"], points[2]["recall"])

    def test_batch_call(self):
        """All queries in one call find what one query a call finds."""
        for options in ((), ("--threads", 2), self.processes("2")):
            point = self.eval("--ef", 20, *options)["points"][0]
            self.assertGreater(point["batch_qps"], 0)
            self.assertAlmostEqual(point["batch_recall"], point["recall"], delta=0.02)

    def test_evaluations_are_those_of_search(self):
        point = self.eval("--ef", "30")["points"][0]
        told = self.run_json("search", "x.sl", "queries.fbin", "-k", 10, "--ef", 30, "-o", "found.ibin")
        self.assertAlmostEqual(point["evaluations"], told["evaluations"], places=5)

    def test_visits_are_bounded(self):
        free = self.eval("--ef", 80)["points"][0]
        bound = self.eval("--ef", 80, "--max-visits", 50)["points"][0]
        self.assertNotIn("cut", free)
        self.assertEqual(bound["cut"], QUERIES)
        self.assertLess(bound["evaluations"], free["evaluations"])
        self.assertIn("cut", self.run_ok("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--max-visits", 50))
        told = self.run_json("search", "x.sl", "queries.fbin", "-k", 10, "--ef", 80, "--max-visits", 50, "-o", "f.ibin")
        self.assertEqual(told["cut"], QUERIES)
        self.assertLess(told["evaluations"], free["evaluations"])

    def test_defaults_cover_the_range_and_rise(self):
        points = self.eval("--repeat", 1)["points"]
        depths = [p["ef"] for p in points]
        self.assertEqual(depths, sorted(set(depths)))
        self.assertEqual((depths[0], depths[-1]), (10, N))

    def test_smallest_ef_for_a_recall(self):
        told = self.eval("--recall", "0.9,0.98", "--repeat", 1)
        # Settings passed on the way are not worth a batch.
        found = [row["ef"] for row in told["at"]]
        for point in told["points"]:
            self.assertEqual(point["batch_qps"] is None, point["ef"] not in found)
        self.assertEqual([row["target"] for row in told["at"]], [0.9, 0.98])
        for row in told["at"]:
            self.assertTrue(row["reached"])
            self.assertGreaterEqual(row["recall"], row["target"])
            self.assertAlmostEqual(row["recall"], self.recall_by_hand(row["ef"], 10), places=9)
            if row["ef"] > 10:
                self.assertLess(self.recall_by_hand(row["ef"] - 1, 10), row["target"])
            self.assertGreater(row["qps"], 0)
            self.assertIn(row["ef"], [p["ef"] for p in told["points"]])

    def test_recall_out_of_reach(self):
        """Truth of far vectors: these are not found."""
        truth = decode(self.path("truth.ibin"))[0]
        self.vectors("truth.ibin", [[row[0]] + [i for i in range(N) if i not in row][:9] for row in truth])
        at = self.eval("--recall", "0.5", "--repeat", 1)["at"]
        self.assertFalse(at[0]["reached"])
        self.assertLessEqual(at[0]["recall"], 0.1)
        out = self.run_ok("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--recall", "0.5", "--repeat", 1)
        self.assertIn("not reached", out)

    def processes(self, counts):
        """--procs, sharing CPUs by name where there are too few of them."""
        cpus = sorted(os.sched_getaffinity(0))
        few = max(map(int, counts.split(","))) > len(cpus)
        return ("--procs", counts, "--pin", ",".join(map(str, cpus[:64]))) if few else ("--procs", counts)

    def test_threads_and_processes(self):
        plain = self.eval("--ef", "20")
        cpu = min(os.sched_getaffinity(0))
        two = self.processes("2")
        for options in (("--threads", 3), two, (*two, "--threads", 2), (*two, "--place", "dram"), ("--place", "map"),
                        ("--pin", cpu), ("--threads", 2, "--pin", cpu), ("--procs", 2, "--pin", cpu)):
            with self.subTest(options=options):
                told = self.eval("--ef", "20", *options)
                self.assertEqual(told["points"][0]["recall"], plain["points"][0]["recall"])
                self.assertAlmostEqual(told["points"][0]["evaluations"], plain["points"][0]["evaluations"], places=5)
        self.assertEqual((told["procs"], told["threads"], told["place"]), (2, 1, "map"))

    def test_processes_side_by_side(self):
        told = self.eval("--ef", "20,40", *self.processes("1,3"))
        self.assertEqual((told["procs"], told["place"]), (3, "map"))
        for point in told["points"]:
            one, three = point["procs"]
            self.assertEqual([len(group["qps_each"]) for group in (one, three)], [1, 3])
            self.assertEqual([one["n"], three["n"]], [1, 3])
            self.assertAlmostEqual(one["qps"], one["qps_each"][0], delta=1e-6 * one["qps"])
            self.assertEqual([one["ratio"][word] for word in ("low", "median", "high")], [1, 1, 1])
            for name in ("ratio", "batch_ratio"):
                self.assertTrue(0 < three[name]["low"] <= three[name]["median"] <= three[name]["high"])
            self.assertEqual([point[name] for name in ("qps", "p999_us")], [three[name] for name in ("qps", "p999_us")])
        out = self.run_ok("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", 20, *self.processes("1,3"))
        self.assertRegex(out, r"\n +20 +1 +\d+ +1\.00 .*\n +20 +3 +\d+ ")

    @unittest.skipUnless(os.path.exists("/proc/self/smaps_rollup"), "the system does not tell the memory of a process")
    def test_memory_is_shared(self):
        """The index is there once: three processes hold it together, each a third."""
        self.vectors("large.fbin", [[math.sin(i * j) for j in range(1, 65)] for i in range(4000)])
        self.run_ok("build", "large.fbin", "-o", "x.sl", "--metric", "ip", "--refine", "f32", "--ef-build", 20)
        self.vectors("queries.fbin", [[math.cos(i * j) for j in range(1, 65)] for i in range(1000)])
        self.run_ok("truth", "large.fbin", "queries.fbin", "-k", 10, "--metric", "ip", "-o", "truth.ibin")
        told = self.eval("--ef", "400", "--repeat", 1, *self.processes("3"))
        self.assertEqual([row["n"] for row in told["memory"]], [1, 3])
        one, three = told["memory"]
        self.assertEqual((one["pss_least_bytes"], one["pss_most_bytes"]), (one["pss_bytes"], one["pss_bytes"]))
        self.assertTrue(three["pss_least_bytes"] <= three["pss_bytes"] / 3 <= three["pss_most_bytes"])
        if os.environ.get("SANITIZER") not in ("address", "thread"):
            self.assertGreater(one["pss_bytes"], told["bytes_total"] / 2)
            self.assertLess(three["pss_most_bytes"], one["pss_bytes"])
        alone = self.eval("--ef", "20", "--repeat", 1)["memory"]
        self.assertEqual([row["n"] for row in alone], [1])

    def test_more_processes_than_cpus(self):
        cpus = len(os.sched_getaffinity(0))
        self.run_bad(1, "eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--procs", f"1,{cpus + 1}",
                     says=[f"--procs is {cpus + 1}", "--pin"])

    def test_pin_to_no_cpu(self):
        for options in ((), ("--procs", 2), ("--procs", "1,2")):
            done = self.start("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--pin", 99999, *options)
            self.assertEqual(done.returncode, 1)
            self.assertIn("CPU 99999", done.stderr)

    def test_plot(self):
        self.eval("--ef", "10,20,40,80", "--plot", "p.svg")
        root = xml.etree.ElementTree.fromstring(self.read("p.svg"))
        svg = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, svg + "svg")
        self.assertEqual(len(root.findall(f".//{svg}circle")), 4)
        words = [t.text for t in root.iter(svg + "text")]
        for word in ("recall@10", "queries a second", "1.00"):
            self.assertIn(word, words)
        for circle in root.iter(svg + "circle"):
            self.assertTrue(76 <= float(circle.get("cx")) <= 696 and 48 <= float(circle.get("cy")) <= 422)

    def filtered(self, ids, *options, truth="truth.ibin"):
        self.vectors("ids.ibin", [[i] for i in ids])
        return self.run_json("eval", "x.sl", "queries.fbin", truth, "-k", 10, "--filter", "ids.ibin", *options)

    def test_filter(self):
        """The truth of what is allowed is made, or lies in a truth of all that is deep enough."""
        allowed = list(range(0, N, 7))
        self.truth(k=N)
        deep = self.filtered(allowed + [N + 5], "--ef", "10,80")
        self.assertEqual((deep["allowed"], deep["filter"]), (len(allowed), "ids.ibin"))
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 10, "--metric", "cosine", "--filter", "ids.ibin", "-o",
                    "made.ibin")
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 10, "--ef", 80, "--filter", "ids.ibin", "-o", "found.ibin")
        rows = [decode(self.path(name))[0] for name in ("truth.ibin", "made.ibin", "found.ibin")]
        self.assertEqual([[i for i in row if i % 7 == 0][:10] for row in rows[0]], [list(row) for row in rows[1]])
        recall = sum(len(set(a) & set(b)) for a, b in zip(rows[1], rows[2])) / (10 * QUERIES)
        made = self.filtered(allowed, "--ef", "10,80", truth="made.ibin")
        for told in (made, deep):
            point = told["points"][1]
            self.assertAlmostEqual(point["recall"], recall, places=9)
            self.assertEqual(point["exact"] + point["partitions"] + point["walks"], QUERIES)
            self.assertEqual(point["results"], 10 * QUERIES)
        for options in (("--threads", 2), self.processes("2")):
            self.assertEqual(self.filtered(allowed, "--ef", "10,80", *options)["points"][1]["recall"], recall)
        out = self.run_ok("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", 10, "--filter", "ids.ibin")
        self.assertRegex(out, rf"filter ids.ibin: {len(allowed)} of {N} vectors are allowed\n")
        self.assertRegex(out, rf"evaluations  strategies\n.*  exact {QUERIES}\n")

    def test_filter_of_few(self):
        """Fewer than k are allowed: all of them are the truth."""
        self.vectors("ids.ibin", [[3], [300], [N + 1]])
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 10, "--metric", "cosine", "--filter", "ids.ibin", "-o",
                    "made.ibin")
        self.assertEqual({tuple(sorted(row)) for row in decode(self.path("made.ibin"))[0]}, {(-1,) * 8 + (3, 300)})
        told = self.filtered([3, 300, N + 1], truth="made.ibin")
        self.write("empty.npy", npy([], "u64", shape="(0,)"))
        empty = self.run_json("truth", "base.fbin", "queries.fbin", "-k", 3, "--metric", "cosine", "--filter",
                              "empty.npy", "-o", "none.ibin")
        self.assertEqual(empty["compared"], 0)
        self.assertEqual({tuple(row) for row in decode(self.path("none.ibin"))[0]}, {(-1,) * 3})
        self.assertEqual((told["allowed"], told["points"][0]["recall"]), (2, 1))
        self.assertEqual(told["points"][0]["results"], 2 * QUERIES)

    def test_filter_that_does_not_fit(self):
        self.vectors("ids.ibin", [[i] for i in range(0, N, 7)])
        bad = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--filter")
        self.run_bad(1, *bad, "ids.ibin", says=["truth.ibin, row 0", "10 are needed", "truth --filter ids.ibin"])
        self.vectors("none.ibin", [[N], [N + 1]])
        self.write("empty.npy", npy([], "u64", shape="(0,)"))
        for ids in ("none.ibin", "empty.npy"):
            self.run_bad(1, *bad, ids, says=[ids, "none of its ids"])
        self.run_bad(1, *bad, "queries.fbin", says=["one column"])
        self.run_bad(1, *bad, "absent.ibin", says=["absent.ibin"])

    def test_truth_of_a_filter(self):
        """Rows are named by their place in the base, and ids of the vectors' own are what the filter holds."""
        broken = [list(row) for row in BASE]
        broken[14][3] = math.nan
        self.vectors("broken.fbin", broken)
        self.vectors("ids.ibin", [[i] for i in range(0, N, 7)])
        of = ("-k", 10, "--metric", "cosine", "--filter", "ids.ibin", "-o", "made.ibin")
        self.run_bad(1, "truth", "broken.fbin", "queries.fbin", *of, says=["broken.fbin", "row 14"])
        self.vectors("own.ibin", [[10 * i] for i in range(N)])
        self.run_ok("truth", "base.fbin", "queries.fbin", "--ids", "own.ibin", *of)
        told = self.run_json("truth", "base.fbin", "queries.fbin", "--ids", "own.ibin", *of)
        self.assertEqual((told["n"], told["compared"]), (N, len(range(0, N, 70))))
        self.assertTrue(all(i % 70 == 0 for row in decode(self.path("made.ibin"))[0] for i in row if i >= 0))

    def test_filter_with_tuned_settings(self):
        self.run_ok("tune", "x.sl", "base.fbin", "-k", 10, "--recall", 0.9)
        self.truth(k=N)
        told = self.filtered(range(0, N, 2), "--recall", "0.9", "--repeat", 1)
        self.assertTrue(told["at"][0]["tuned"])
        self.assertGreaterEqual(told["at"][0]["recall"], 0.9)

    def test_truth_that_does_not_fit(self):
        truth = decode(self.path("truth.ibin"))[0]
        self.vectors("short.ibin", truth[:-1])
        self.run_bad(1, "eval", "x.sl", "queries.fbin", "short.ibin", "-k", 10,
                     says=["short.ibin", "39 rows", "40 queries"])
        self.vectors("narrow.ibin", [row[:9] for row in truth])
        self.run_bad(1, "eval", "x.sl", "queries.fbin", "narrow.ibin", "-k", 10, says=["narrow.ibin", "-k is 10"])
        truth[3][5] = -1
        self.vectors("holes.ibin", truth)
        self.run_bad(1, "eval", "x.sl", "queries.fbin", "holes.ibin", "-k", 10,
                     says=["holes.ibin, row 3", "5 neighbours"])
        self.run_ok("eval", "x.sl", "queries.fbin", "holes.ibin", "-k", 5, "--ef", 10, "--repeat", 1)
        self.run_bad(1, "eval", "x.sl", "queries.fbin", "queries.fbin", "-k", 10, says=["queries.fbin", "ids"])

    def test_text(self):
        out = self.run_ok("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", "10,20")
        self.assertRegex(out, r"ef +recall@10 +queries/s +in batch/s +its recall +p50 us +p99 us +p99.9 us +evaluations\n"
                              r" +10 +(0\.\d{4}) +\d+ +\d+ +\1 ")
