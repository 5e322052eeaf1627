"""Every command doing its work: build, search, truth, info, check, snapshot, convert, cpu, help."""

import json
import math
import os
import random
import re
import struct
import subprocess
import time
import unittest

from harness import COMMAND, SANITIZER, CommandTest, clustered, decode, npy
from indexed import ASKED, BASE, DIM, N, QUERIES, Indexed


def score(metric, x, q):
    dot = sum(a * b for a, b in zip(x, q))
    if metric == "ip":
        return dot
    if metric == "l2":
        return sum((a - b) ** 2 for a, b in zip(x, q))
    return dot / math.sqrt(sum(a * a for a in x) * sum(b * b for b in q))


def nearest(metric, base, q, k):
    """Row numbers and scores of the k nearest, best first."""
    sign = 1 if metric == "l2" else -1
    rows = sorted((sign * score(metric, x, q), i) for i, x in enumerate(base))[:k]
    return [i for _, i in rows], [sign * s for s, _ in rows]


class Truth(Indexed):
    def test_every_metric_against_a_plain_scan(self):
        for metric in ("ip", "cosine", "l2"):
            with self.subTest(metric=metric):
                told = self.run_json("truth", "base.fbin", "queries.fbin", "-k", 7, "--metric", metric, "-o", "t.ibin",
                                     "--scores", "s.fbin")
                self.assertEqual((told["n"], told["dim"], told["k"], told["queries"], told["metric"]),
                                 (N, DIM, 7, QUERIES, metric))
                ids, scores = decode(self.path("t.ibin"))[0], decode(self.path("s.fbin"))[0]
                for q, row, line in zip(ASKED, ids, scores):
                    want_ids, want_scores = nearest(metric, BASE, q, 7)
                    self.assertEqual(row, want_ids)
                    for got, want in zip(line, want_scores):
                        self.assertAlmostEqual(got, want, delta=1e-4 * max(1, abs(want)))

    def test_output_formats_agree(self):
        for name in ("t.ibin", "t.ivecs", "t.npy"):
            self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 3, "--metric", "l2", "-o", name)
        self.assertEqual(decode(self.path("t.ibin"))[0], decode(self.path("t.ivecs"))[0])
        self.assertEqual(decode(self.path("t.npy")), (decode(self.path("t.ibin"))[0], "u64"))

    def test_mixed_floating_types(self):
        self.run_ok("convert", "queries.fbin", "half.npy", "--type", "f16")
        self.run_ok("truth", "base.fbin", "half.npy", "-k", 3, "--metric", "l2", "-o", "t.ibin")
        halves = decode(self.path("half.npy"))[0]
        self.assertEqual(decode(self.path("t.ibin"))[0], [nearest("l2", BASE, q, 3)[0] for q in halves])


class OwnIds(Indexed):
    """The truth of an index with ids of its own is of these, and truth of row numbers is told apart."""

    def setUp(self):
        super().setUp()
        self.measured = ("x.sl", "queries.fbin", "truth.ibin", "-k", 10)

    def build_with(self, ids):
        self.ids = [[i] for i in ids]
        self.write("ids.npy", npy(self.ids, "u64"))
        self.build("--ids", "ids.npy")

    def truth_of_ids(self, output="truth.ibin"):
        return self.start("truth", "base.fbin", "queries.fbin", "-k", 10, "--metric", "cosine", "--ids", "ids.npy", "-o",
                          output)

    def test_truth_is_of_the_ids(self):
        self.build_with([10**6 + 7 * i for i in range(N)])
        self.truth(10)
        rows = decode(self.path("truth.ibin"))[0]
        self.assertEqual(self.truth_of_ids().returncode, 0)
        self.assertEqual(decode(self.path("truth.ibin"))[0], [[10**6 + 7 * i for i in row] for row in rows])
        self.assertGreater(self.run_json("eval", *self.measured, "--ef", 200, "--repeat", 1)["points"][0]["recall"], 0.9)

    def test_row_numbers_are_refused(self):
        self.build_with([10**6 + 7 * i for i in range(N)])
        self.vectors("queries.fbin", 2 * ASKED)
        self.truth(10)
        for command in ("eval", "tune"):
            said = self.run_bad(1, command, *self.measured, says=["truth.ibin, row 0", "x.sl", "row numbers"])
            self.assertIn("shortlist truth --ids", said)
        self.vectors("truth.ibin", [[10**9 + i for i in range(10)]] * 2 * QUERIES)
        said = self.run_bad(1, "eval", *self.measured, says=["id 1000000000 is not in x.sl"])
        self.assertNotIn("row numbers", said)

    def test_row_numbers_that_are_ids_too(self):
        """All ids are there, and recall is chance: eval warns, tune changes nothing, and blames no graph."""
        self.build_with([(i + N // 2) % N for i in range(N)])
        self.vectors("queries.fbin", 2 * ASKED)
        self.truth(10)
        done = self.start("eval", *self.measured, "--ef", "10,50", "--repeat", 1, "--json")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done.stderr)
        self.assertIn("eval: warning: truth.ibin: recall is", done.stderr)
        self.assertLess(max(point["recall"] for point in json.loads(done.stdout)["points"]), 0.05)
        said = self.run_bad(1, "tune", *self.measured, says=["truth.ibin", "which is chance", "row numbers"])
        self.assertNotIn("larger m", said)
        self.truth_of_ids()
        self.run_ok("tune", *self.measured, "--recall", 0.9)
        self.run_ok("eval", *self.measured, "--recall", 0.9, "--repeat", 1)

    def test_ids_that_cannot_be_written_or_be_ids(self):
        self.build_with([2**31 + i for i in range(N)])
        self.assertIn("name a .npy file", self.truth_of_ids().stderr)
        self.assertEqual(self.truth_of_ids("truth.npy").returncode, 0)
        self.run_ok("eval", "x.sl", "queries.fbin", "truth.npy", "-k", 10, "--ef", 50, "--repeat", 1)
        for ids, says in (([i // 2 for i in range(N)], "id 0 comes twice"), (range(N - 1), f"{N - 1} ids for the {N}")):
            self.write("ids.npy", npy([[i] for i in ids], "u64"))
            self.run_bad(1, "truth", "base.fbin", "queries.fbin", "-k", 1, "--metric", "l2", "--ids", "ids.npy", "-o",
                         "t.npy", says=["ids.npy", says])


class Ranges(Indexed):
    """search --radius and --threshold."""

    def lines(self, *options):
        return [json.loads(line) for line in self.run_ok("search", "x.sl", "queries.fbin", *options, "--json").splitlines()]

    def test_what_is_within_a_radius(self):
        for metric in ("ip", "cosine", "l2"):
            with self.subTest(metric=metric):
                self.build("--codes", "f32", metric=metric)
                scores = [nearest(metric, BASE, q, N)[1] for q in ASKED]
                radius = (scores[0][30] + scores[0][31]) / 2
                sign = 1 if metric == "l2" else -1
                for options in ((), ("--exact",), ("--threads", 2, "--ef", 300)):
                    rows = self.lines("--radius", radius, *options)
                    self.assertEqual([row["query"] for row in rows], list(range(QUERIES)))
                    for row, all_scores, q in zip(rows, scores, ASKED):
                        count = sum(sign * s <= sign * radius for s in all_scores)
                        self.assertLessEqual(abs(len(row["ids"]) - count), 1)
                        self.assertEqual(row["ids"][:5], nearest(metric, BASE, q, N)[0][:min(5, len(row["ids"]))])
                        self.assertEqual([sign * s for s in row["scores"]], sorted(sign * s for s in row["scores"]))
        text = self.run_ok("search", "x.sl", "queries.fbin", "--radius", radius)
        self.assertEqual(text.count("query "), QUERIES)

    def test_a_radius_and_a_threshold_below_zero(self):
        self.build("--codes", "f32", metric="ip")
        self.assertEqual(len(self.lines("--radius", -1000)[0]["ids"]), N)
        self.assertEqual(self.lines("--radius=1000")[0]["ids"], [])
        self.assertEqual(len(self.lines("-k", 10, "--threshold", -1000)[0]["ids"]), 10)

    def test_a_filter_and_a_threshold(self):
        self.build("--codes", "f32")
        self.write("some.npy", npy([[i] for i in range(0, N, 2)], "u64"))
        self.assertTrue(all(i % 2 == 0 for row in self.lines("--radius", 0.2, "--filter", "some.npy") for i in row["ids"]))
        whole = self.lines("-k", 10)
        cut = self.lines("-k", 10, "--threshold", whole[0]["scores"][4])
        self.assertEqual(len(cut[0]["ids"]), 5)
        for row, left in zip(whole, cut):
            self.assertEqual(left["scores"], [s for s in row["scores"] if s >= whole[0]["scores"][4]])

    def test_options_that_do_not_go_together(self):
        for options, says in ((("--radius", 1, "-k", 3), "-k and --radius"), (("--exact", "-k", 3), "--exact goes with"),
                              (("--radius", 1, "-o", "f.ibin"), "--output and --radius"),
                              (("--radius", 1, "--threshold", 1), "--threshold and --radius"),
                              (("--radius", "nan"), "--radius"), (("-k", 3, "--threshold", "x"), "--threshold")):
            self.run_bad(2, "search", "x.sl", "queries.fbin", *options, says=[says])


class Build(Indexed):
    def test_fields(self):
        told = self.build("--refine", "bf16", "--m", 8, "--ef-build", 60, "--threads", 2, "--seed", 5)
        want = {"n": N, "dim": DIM, "metric": "cosine", "codes": "i8", "refine": "bf16", "m": 8, "ef_build": 60,
                "threads": 2, "seed": 5, "input": "f32"}
        self.assertEqual({key: told[key] for key in want}, want)
        self.assertEqual(told["bytes_total"], os.path.getsize(self.path("x.sl")))
        self.assertAlmostEqual(told["bytes_per_vector"], told["bytes_total"] / N, places=3)
        self.assertGreater(told["build_s"], 0)
        self.assertGreater(told["quant_error_mean"], 0)
        self.assertLess(told["quant_error_max"], 0.05)
        self.assertIn(told["isa"], ("scalar", "avx2", "avxvnni", "avx512bw", "avx512vnni", "amxint8", "neon"))

    @unittest.skipIf(SANITIZER, "kernels are tested by test_distance")
    def test_the_highest_tiers_change_no_byte_of_long_vectors(self):
        self.vectors("long.fbin", clustered(5000, 200, 3))
        build = ("build", "long.fbin", "--metric", "cosine", "--builder", "leaves", "-o", "x.sl")
        tiers = self.run_json("cpu")["isa_available"][-2:]
        hashes = [self.run_json(*build, env={**os.environ, "SHORTLIST_MAX_ISA": tier})["hash"] for tier in tiers]
        self.assertEqual(len(set(hashes)), 1, (tiers, hashes))

    @unittest.skipIf(SANITIZER, "test_leaves runs that")
    def test_threads_and_tiers_change_no_byte_of_leaves(self):
        self.vectors("many.fbin", clustered(5000, 8, 3))
        tiers = self.run_json("cpu")["isa_available"]
        for metric in ("l2", "ip"):
            build = ("build", "many.fbin", "--metric", metric, "--builder", "leaves", "-o")
            told = self.run_json(*build, "one.sl", "--threads", 1)["hash"]
            self.assertRegex(told, "^[0-9a-f]{32}$")
            for tier, threads in [(tiers[-1], 2)] + [(tier, 3) for tier in tiers]:
                again = self.run_json(*build, "x.sl", "--threads", threads, env={**os.environ, "SHORTLIST_MAX_ISA": tier})
                self.assertEqual(self.read("one.sl"), self.read("x.sl"), (metric, tier, threads))
                self.assertEqual(again["hash"], told, (metric, tier, threads))
            self.assertIn(f"\nhash {told}\n", self.run_ok(*build, "x.sl"))
            merged = [self.run_json("merge", "x.sl", "-o", f"{n}.sl", "--threads", n)["hash"] for n in (1, 2)]
            self.assertEqual(self.read("1.sl"), self.read("2.sl"))
            self.assertEqual(merged[0], merged[1])
            self.assertNotEqual(merged[0], told)
            self.assertIsNone(self.run_json(*build, "x.sl", "--room", 5000)["hash"])
            for other in (("--seed", 2), ("--builder", "insert", "--threads", 1)):
                self.assertNotEqual(self.run_json(*build, "x.sl", *other)["hash"], told, (metric, other))
                self.assertNotEqual(self.read("one.sl"), self.read("x.sl"), (metric, other))

    @unittest.skipIf(SANITIZER, "test_join runs that")
    def test_threads_and_tiers_change_no_byte_of_joined_graphs(self):
        rows = clustered(5000, 8, 3)
        self.vectors("halves.fbin", rows[:2500])
        self.vectors("more.fbin", rows[2500:])
        self.vectors("more.ibin", [[i] for i in range(2500, 5000)])
        for name, *ids in (("halves",), ("more", "--ids", "more.ibin")):
            self.run_ok("build", f"{name}.fbin", *ids, "--metric", "l2", "--threads", 1, "-o", f"{name}.sl")
        merge = ("merge", "halves.sl", "more.sl", "-o")
        told = self.run_json(*merge, "one.sl", "--threads", 1)["hash"]
        for tier in self.run_json("cpu")["isa_available"]:
            again = self.run_json(*merge, "x.sl", "--threads", 2, env={**os.environ, "SHORTLIST_MAX_ISA": tier})
            self.assertEqual(again["hash"], told, tier)
        self.assertEqual(self.run_json(*merge, "x.sl", "--threads", 3, "--max-memory", "12M")["hash"], told)
        self.assertEqual(self.read("one.sl"), self.read("x.sl"))
        self.run_ok(*merge, "x.sl", "--builder", "leaves")
        self.assertNotEqual(self.read("one.sl"), self.read("x.sl"))

    def test_a_base_is_one_batch(self):
        """However little memory there is, all vectors of a file that can be mapped are linked at once."""
        self.vectors("many.fbin", clustered(4500, 128, 3))
        build = ("build", "many.fbin", "--metric", "l2", "--threads", 2, "-o")
        self.run_ok(*build, "whole.sl")
        self.run_ok(*build, "x.sl", "--max-memory", "12M")
        self.assertEqual(self.read("whole.sl"), self.read("x.sl"))

    def test_a_base_that_is_written_meanwhile(self):
        self.vectors("many.fbin", clustered(6000, 16, 3))
        build = subprocess.Popen([COMMAND, "build", "many.fbin", "-o", "y.sl", "--metric", "l2", "--threads", "1"],
                                 cwd=self.folder, stderr=subprocess.PIPE, text=True)
        while build.poll() is None:
            os.utime(self.path("many.fbin"))
            time.sleep(0.005)
        with build.stderr:
            said = build.stderr.read()
        self.assertEqual(build.returncode, 1, said)
        self.assertIn("many.fbin: was changed while it was read", said)
        self.assertFalse(os.path.exists(self.path("y.sl")))

    def test_a_builder_that_does_not_serve(self):
        self.run_bad(1, "build", "base.fbin", "-o", "y.sl", "--metric", "l2", "--builder", "leaves",
                     says=["builder leaves needs 4,096 vectors or more; take builder auto"])

    def test_every_combination_is_whole_and_searches(self):
        for codes, refine in (("i8", "none"), ("i8", "f32"), ("i8", "bf16"), ("i8", "i16"), ("i16", "none"),
                              ("i16", "f32"), ("f32", "none"), ("i4", "none"), ("i4", "f32")):
            for metric in ("ip", "cosine", "l2"):
                with self.subTest(codes=codes, refine=refine, metric=metric):
                    told = self.build("--codes", codes, "--refine", refine, metric=metric)
                    self.assertEqual((told["codes"], told["refine"]), (codes, refine))
                    self.assertTrue(self.run_json("check", "x.sl", "--sample", 50)["ok"])
                    self.truth(10, metric)
                    points = self.run_json("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", 100,
                                           "--repeat", 1)["points"]
                    self.assertGreater(points[0]["recall"], 0.93)

    def test_clips(self):
        """build, info and eval tell the clip; the codes' own is auto. add keeps it."""
        self.truth()
        for codes, clip, share, words in (("i8", "auto", 0, "codes i8,"), ("i8", "minmax", 0, "codes i8,"),
                                          ("i8", "mse", 0, "codes i8 clip mse,"), ("i4", "mse", 0, "codes i4,"),
                                          ("i4", "minmax", 0, "codes i4 clip minmax,"),
                                          ("i8", "quantile", 0.01, "codes i8 clip quantile:0.01,"),
                                          ("i4", "quantile:0.25", 0.25, "codes i4 clip quantile:0.25,")):
            with self.subTest(codes=codes, clip=clip):
                kept = "auto" if (codes, clip) in (("i8", "minmax"), ("i4", "mse")) else clip.split(":")[0]
                told = self.build("--codes", codes, "--clip", clip)
                self.assertEqual((told["clip"], told["clip_share"]), (kept, share))
                measure = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 10, "--ef", 100, "--repeat", 1)
                told = self.run_json(*measure)
                self.assertEqual((told["clip"], told["clip_share"]), (kept, share))
                self.assertGreater(told["points"][0]["recall"], 0.5 if share > 0.1 else 0.9)
                self.assertIn(words, self.run_ok(*measure))
                self.run_ok("add", "x.sl", "queries.fbin")
                told = self.run_json("info", "x.sl")
                self.assertEqual((told["clip"], told["clip_share"], told["n"]), (kept, share, N + QUERIES))
                self.assertIn(words, self.run_ok("info", "x.sl"))

    def test_input_types(self):
        """Floats are quantised, integers kept as they are: their type goes into the index."""
        whole = [[round(20 * x) % 120 for x in row] for row in BASE]
        for name, kind, given, codes in (("b.npy", "f16", BASE, "i8"), ("b.npy", "f64", BASE, "i8"),
                                         ("b.u8bin", "u8", whole, "i8"), ("b.i8bin", "i8", whole, "i8"),
                                         ("b.bvecs", "u8", whole, "i8"), ("b.npy", "i16", whole, "i16"),
                                         ("b.npy", "i64", whole, "i8"), ("b.fvecs", "f32", BASE, "i8")):
            with self.subTest(name=name, kind=kind):
                self.vectors(name, given, kind)
                told = self.build(base=name, metric="l2")
                kept = kind if kind in ("u8", "i8", "i16") else "f32"
                self.assertEqual((told["input"], told["codes"], told["n"]), (kept, codes, N))
                if kept != "f32":
                    self.assertEqual(told["quant_error_max"], 0)
                self.run_ok("search", "x.sl", name, "-k", 1, "--ef", 50, "-o", "found.ibin", "--scores", "s.fbin")
                self.assertEqual(sum(row != [i] and s[0] > 0.01 for i, (row, s) in enumerate(
                    zip(decode(self.path("found.ibin"))[0], decode(self.path("s.fbin"))[0]))), 0)

    def test_ids(self):
        ids = [[7 * i + 2**40] for i in range(N)]
        for name, given in (("ids.npy", npy(ids, "u64")), ("ids.npy", npy(ids, "i64")),
                            ("ids.npy", npy(ids, "u64", shape=f"({N},)"))):
            self.write(name, given)
            self.build("--ids", name)
            self.run_ok("search", "x.sl", "base.fbin", "-k", 1, "--ef", 50, "-o", "found.npy")
            self.assertEqual(decode(self.path("found.npy"))[0], ids)
        self.vectors("ids.ibin", [[3 * i] for i in range(N)])
        self.build("--ids", "ids.ibin")
        self.run_ok("search", "x.sl", "base.fbin", "-k", 1, "--ef", 50, "-o", "found.ibin")
        self.assertEqual(decode(self.path("found.ibin"))[0], [[3 * i] for i in range(N)])

    def test_one_thread_is_reproducible_and_the_seed_counts(self):
        files = []
        for seed in (1, 1, 2):
            self.build("--threads", 1, "--seed", seed)
            files.append(self.read("x.sl"))
        self.assertEqual(files[0], files[1])
        self.assertNotEqual(files[0], files[2])

    def test_max_memory(self):
        told = self.build()
        self.run_bad(1, "build", "base.fbin", "-o", "y.sl", "--metric", "cosine", "--max-memory", "20000",
                     says=["base.fbin", "--max-memory 19.5 KiB", "bytes of memory or more, and 20000 are allowed"])
        again = self.build("--max-memory", "64M")
        self.assertEqual(again["bytes_total"], told["bytes_total"])

    def test_replaces_a_file_and_follows_a_link(self):
        self.write("x.sl", b"something else")
        self.build()
        self.assertEqual(self.run_json("info", "x.sl")["n"], N)
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])

    def test_text(self):
        out = self.run_ok("build", "base.fbin", "-o", "x.sl", "--metric", "cosine")
        self.assertRegex(out, r"^x\.sl: 600 vectors of 12 f32, cosine, codes i8, refine none, m 16, ef_build 200\n")
        self.assertIn("bytes a vector", out)


class DryRun(CommandTest):
    FIELDS = {"dry_run", "n", "dim", "metric", "codes", "refine", "m", "ef_build", "builder", "threads",
              "seconds", "read_s", "link_s", "number_s", "save_s", "samples", "peak_bytes", "peak_alike_bytes",
              "index_bytes", "file_bytes", "old_file_bytes", "work_file_bytes", "spilled_bytes", "unpacked_bytes", "disk_bytes", "memory_bytes",
              "free_bytes", "fits_memory", "fits_folder"}

    def tell(self, *options, base="many.fbin"):
        before = sorted(os.listdir(self.folder))
        told = self.run_json("build", base, "-o", "x.sl", "--metric", "cosine", "--threads", 2, *options, "--dry-run")
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertEqual(set(told), self.FIELDS)
        return told

    def check(self, *options):
        """Disk as the build has it. Memory is counted in tests/hnsw/index/test_build_plan.c."""
        told = self.tell(*options)
        self.run_ok("build", "many.fbin", "-o", "x.sl", "--metric", "cosine", "--threads", 2, *options)
        more = told["file_bytes"] - os.path.getsize(self.path("x.sl"))
        self.assertTrue(0 <= more <= 4096, more)
        os.remove(self.path("x.sl"))
        return told

    def test_memory_and_disk_by_leaves(self):
        self.vectors("many.fbin", clustered(5000, 16, 3))
        told = self.check("--builder", "leaves", "--codes", "i4")
        self.assertEqual((told["n"], told["dim"], told["builder"], told["threads"]), (5000, 16, "leaves", 2))
        self.assertEqual([s["n"] for s in told["samples"]], [4096, 5000])
        self.assertEqual({s["builder"] for s in told["samples"]}, {"leaves"})
        self.assertGreater(told["peak_alike_bytes"], told["peak_bytes"])
        self.assertGreater(told["peak_bytes"], told["index_bytes"])
        self.assertAlmostEqual(told["seconds"], sum(told[s] for s in ("read_s", "link_s", "number_s", "save_s")), 6)
        self.assertEqual((told["disk_bytes"], told["old_file_bytes"]), (told["file_bytes"], 0))
        self.assertEqual((told["work_file_bytes"], told["spilled_bytes"]), (0, 0))

    @unittest.skipIf(SANITIZER, "its samples are those of other tests")
    def test_disk_of_a_bounded_build(self):
        self.vectors("many.fbin", clustered(5000, 16, 3))
        told = self.tell("--builder", "leaves", "--max-memory", "1G")
        self.assertTrue(told["fits_memory"])
        self.assertEqual(told["spilled_bytes"], 0)
        # Each vector is in eight leaves: four bytes each, and what it found, which its first leaf fills with 8 bytes each.
        self.assertGreater(told["work_file_bytes"], 5000 * (8 * 4 + 40 * 8))
        self.assertLess(told["work_file_bytes"], 5000 * (8 * 4 + 8 * 42 * 8))
        self.assertEqual(told["disk_bytes"], told["work_file_bytes"] + told["file_bytes"])
        less = self.tell("--builder", "leaves", "--max-memory", "2M")
        self.assertFalse(less["fits_memory"])
        self.assertEqual(less["spilled_bytes"], less["peak_alike_bytes"])
        saving = less["index_bytes"] + less["file_bytes"]
        self.assertEqual(less["disk_bytes"], less["work_file_bytes"] + max(less["spilled_bytes"], saving))
        out = self.run_ok("build", "many.fbin", "-o", "x.sl", "--metric", "cosine", "--max-memory", "2M", "--dry-run")
        self.assertRegex(out, r"\ndisk .*; until then the work file takes .*; until then temporary files take ")

    def test_memory_and_disk_by_inserting(self):
        self.vectors("many.fbin", clustered(1500, 16, 3))
        self.write("ids.npy", npy([[3 * i + 1] for i in range(1500)], "u64"))
        for options in ((), ("--ids", "ids.npy"), ("--room", 5000), ("--layout", "records")):
            with self.subTest(options=options):
                told = self.check(*options)
                self.assertEqual(told["peak_bytes"], told["peak_alike_bytes"])
                self.assertGreater(told["peak_bytes"], told["index_bytes"])
                self.assertEqual(told["builder"], "insert")
                self.assertEqual([s["n"] for s in told["samples"]], [1500])

    @unittest.skipIf(SANITIZER, "its samples are those of other tests")
    def test_a_base_that_is_unpacked(self):
        rows = clustered(5000, 16, 3)
        self.vectors("many.fvecs", rows)
        self.vectors("many.fbin", rows)
        told = self.tell("--max-memory", "2M", base="many.fvecs")
        self.assertEqual(told["builder"], "leaves")
        self.assertEqual(told["unpacked_bytes"], 5000 * 16 * 4)
        building, saving = told["spilled_bytes"] + told["unpacked_bytes"], told["index_bytes"] + told["file_bytes"]
        self.assertEqual(told["disk_bytes"], told["work_file_bytes"] + max(building, saving))
        self.assertGreater(told["read_s"], 0)
        mapped, whole = self.tell(), self.tell(base="many.fvecs")
        self.assertEqual((whole["unpacked_bytes"], mapped["unpacked_bytes"]), (0, 0))
        self.assertEqual(whole["peak_bytes"], mapped["peak_bytes"] + 5000 * 16 * 4)
        self.assertTrue(self.tell("--max-memory", "64M", base="many.fvecs")["fits_memory"])
        self.assertFalse(self.tell("--max-memory", "100K", base="many.fvecs")["fits_memory"])

    def test_text_and_an_output_that_is_there(self):
        self.vectors("many.fbin", clustered(600, 16, 3))
        build = ("build", "many.fbin", "-o", "x.sl", "--metric", "cosine")
        self.run_ok(*build)
        before = self.read("x.sl")
        out = self.run_ok(*build, "--dry-run")
        self.assertRegex(out, r"^many\.fbin: 600 vectors of 16 would be built by insert, on \d+ threads\ntime ")
        self.assertRegex(out, r"\nmemory .*\ndisk .*; until then the file that is there keeps its ")
        self.assertEqual(self.read("x.sl"), before)
        told = self.tell()
        self.assertEqual(told["disk_bytes"], told["file_bytes"] + told["old_file_bytes"])

    def test_what_a_build_refuses(self):
        self.vectors("many.fbin", [[0.0] * 4] * 3)
        self.run_bad(1, "build", "many.fbin", "-o", "x.sl", "--metric", "cosine", "--dry-run", says=["many.fbin"])
        self.run_bad(1, "build", "many.fbin", "-o", "x.sl", "--metric", "l2", "--room", 2, "--dry-run", says=["--room"])
        self.assertEqual(os.listdir(self.folder), ["many.fbin"])


class Merge(Indexed):
    def test_several(self):
        self.build()
        self.write("ids.npy", npy([[10 ** 6 + i] for i in range(N)], "u64"))
        self.run_ok("build", "base.fbin", "-o", "b.sl", "--metric", "cosine", "--ids", "ids.npy")
        self.write("gone.npy", npy([[5], [7]], "u64"))
        self.run_ok("delete", "x.sl", "--ids", "gone.npy")
        before = self.read("x.sl"), self.read("b.sl")
        told = self.run_json("merge", "x.sl", "b.sl", "-o", "c.sl", "--threads", 1)
        self.assertEqual((told["n"], told["deleted"], told["indexes"], told["output"]), (2 * N - 2, 0, 2, "c.sl"))
        self.assertEqual((self.read("x.sl"), self.read("b.sl")), before)
        self.assertTrue(self.run_json("check", "c.sl")["ok"])
        said = self.run_ok("merge", "x.sl", "-o", "d.sl", "--m", 8, "--room", 2 * N)
        self.assertIn("merged from 1 index in", said)
        self.assertEqual(self.run_json("info", "d.sl")["m"], 8)

    def test_what_cannot_be_merged(self):
        self.build()
        self.run_ok("build", "base.fbin", "-o", "y.sl", "--metric", "l2")
        self.run_bad(1, "merge", "x.sl", "x.sl", "-o", "c.sl", says=["id 0 is in index 0 (x.sl) and in index 1 (x.sl)"])
        self.run_bad(1, "merge", "x.sl", "y.sl", "-o", "c.sl", says=["different metrics"])
        self.run_bad(1, "merge", "x.sl", "none.sl", "-o", "c.sl", says=["none.sl"])
        self.run_bad(1, "merge", "x.sl", "-o", "x.sl", says=["x.sl"])
        self.run_bad(2, "merge", "-o", "c.sl", says=["INDEX is missing"])
        self.run_bad(2, "merge", *["x.sl"] * 65, "-o", "c.sl", says=["one argument too many"])
        self.assertFalse(os.path.exists(self.path("c.sl")))
        self.run_ok("merge", "x.sl", "x.sl", "-o", "c.sl", "--clash", "later")
        self.assertEqual(self.run_json("info", "c.sl")["n"], N)


class Scrub(Indexed):
    def flip(self, *nodes):
        """The last byte of these nodes' ids, which are the section of kind 3."""
        data = bytearray(self.read("live.sl"))
        table = [struct.unpack_from("<IIQQ", data, 512 + 32 * i) for i in range(data[20])]
        offset = next(offset for kind, _, offset, _ in table if kind == 3)
        for node in nodes:
            data[offset + 8 * node + 1] ^= 0x40
        self.write("live.sl", data)

    def test_names_damaged_records(self):
        self.run_ok("build", "base.fbin", "-o", "live.sl", "--metric", "cosine", "--room", 1000)
        told = self.run_json("check", "live.sl", "--scrub")
        self.assertEqual((told["ok"], told["records_checked"], told["bad_records"], told["bad_ids"]), (True, N, 0, []))
        self.assertRegex(self.run_ok("check", "live.sl", "--scrub"), rf"records verified +{N}\n")
        self.flip(5, 70)
        done = self.start("check", "live.sl", "--scrub", "--json")
        told = json.loads(done.stdout)
        self.assertEqual((done.returncode, told["ok"], told["bad_records"]), (1, False, 2))
        self.assertEqual(told["bad_ids"], [5 + 0x4000, 70 + 0x4000])
        self.assertIn("the first that of id 16389", done.stderr)
        done = self.start("check", "live.sl", "--scrub")
        self.assertRegex(done.stdout, r"damaged records +2\n(.*\n)*  damaged record of id +16389\n.* 16454\n")
        self.assertEqual(self.start("check", "live.sl").returncode, 1)
        self.assertNotIn("bad_records", json.loads(self.start("check", "live.sl", "--json").stdout))

    def test_drops_damaged_records(self):
        self.run_ok("build", "base.fbin", "-o", "live.sl", "--metric", "cosine", "--room", 1000)
        self.flip(5, 70)
        self.run_bad(2, "check", "live.sl", "--drop", says=["--scrub"])
        told = self.run_json("check", "live.sl", "--scrub", "--drop")
        self.assertEqual((told["ok"], told["dropped"], told["dropped_ids"], told["bad_ids"]),
                         (True, 2, [5 + 0x4000, 70 + 0x4000], []))
        self.assertEqual(self.run_json("info", "live.sl")["deleted"], 2)
        told = self.run_json("check", "live.sl", "--scrub", "--drop")
        self.assertEqual((told["ok"], told["dropped"], told["n"]), (True, 0, N - 2))

    def test_of_a_file_without_records(self):
        self.build()
        self.run_bad(1, "check", "x.sl", "--scrub", "--drop", says=["x.sl", "--room"])
        self.assertEqual(self.run_json("check", "x.sl", "--scrub")["records_checked"], 0)
        self.assertIn("sections of this file have checksums", self.run_ok("check", "x.sl", "--scrub"))


class Snapshot(Indexed):
    def test_of_a_file_written_in_place(self):
        self.run_ok("build", "base.fbin", "-o", "live.sl", "--metric", "cosine", "--room", 1000)
        self.assertEqual(self.run_json("snapshot", "live.sl", "-o", "copy.sl")["n"], N)
        self.assertEqual(self.run_json("check", "copy.sl", "--scrub")["records_checked"], N)
        self.assertNotEqual(self.read("copy.sl"), self.read("live.sl"))

    def test_copies(self):
        built = self.build()
        told = self.run_json("snapshot", "x.sl", "-o", "copy.sl")
        self.assertEqual((told["index"], told["copy"], told["n"], told["bytes_total"]),
                         ("x.sl", "copy.sl", N, built["bytes_total"]))
        self.assertEqual(self.read("copy.sl"), self.read("x.sl"))
        self.assertRegex(self.run_ok("snapshot", "x.sl", "-o", "copy.sl"), r"^copy\.sl: 600 vectors of 12 f32, cosine")
        self.assertEqual([name for name in os.listdir(self.folder) if "tmp" in name], [])

    def test_what_cannot_be_copied(self):
        self.build()
        self.run_bad(1, "snapshot", "x.sl", "-o", "x.sl", says=["x.sl", "is the index itself"])
        self.run_bad(1, "snapshot", "none.sl", "-o", "copy.sl", says=["none.sl", "No such file"])
        self.run_bad(1, "snapshot", "base.fbin", "-o", "copy.sl", says=["base.fbin", "not a Shortlist index"])
        self.run_bad(2, "snapshot", "x.sl", says=["--output"])


class Search(Indexed):
    def test_finds_what_the_scan_finds(self):
        self.build("--codes", "f32", metric="l2")
        told = self.run_json("search", "x.sl", "queries.fbin", "-k", 5, "--ef", 200, "-o", "found.ibin", "--scores",
                             "scores.fbin")
        self.assertEqual((told["k"], told["ef"], told["queries"], told["results"]), (5, 200, QUERIES, 5 * QUERIES))
        found, scores = decode(self.path("found.ibin"))[0], decode(self.path("scores.fbin"))[0]
        hits = 0
        for q, row, line in zip(ASKED, found, scores):
            ids, _ = nearest("l2", BASE, q, 5)
            hits += len(set(ids) & set(row))
            for i, s in zip(row, line):
                self.assertAlmostEqual(s, score("l2", BASE[i], q), delta=1e-3 * max(1, s))
            self.assertEqual(line, sorted(line))
        self.assertGreaterEqual(hits, 0.98 * 5 * QUERIES)

    def test_formats_places_and_threads_agree(self):
        self.build("--refine", "f32")
        results = []
        for options in (("found.ibin",), ("found.ivecs",), ("found.npy",), ("found.ibin", "--place", "dram"),
                        ("found.ibin", "--threads", 1), ("found.ibin", "--threads", 3)):
            self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "-o", *options)
            results.append(decode(self.path(options[0]))[0])
        for other in results[1:]:
            self.assertEqual(results[0], other)

    def test_wide_ids_need_npy(self):
        self.write("ids.npy", npy([[2**31 + i] for i in range(N)], "u64"))
        self.build("--ids", "ids.npy")
        self.run_bad(1, "search", "x.sl", "queries.fbin", "-k", 3, "-o", "found.ibin", says=["found.ibin", ".npy"])
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 3, "-o", "found.npy")

    def test_prints_without_an_output(self):
        self.build(metric="l2")
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 3, "-o", "found.ibin", "--scores", "scores.fbin")
        ids, scores = decode(self.path("found.ibin"))[0], decode(self.path("scores.fbin"))[0]
        text = self.run_ok("search", "x.sl", "queries.fbin", "-k", 3)
        lines = self.run_ok("search", "x.sl", "queries.fbin", "-k", 3, "--json").splitlines()
        self.assertEqual((len(text.splitlines()), len(lines)), (4 * QUERIES, QUERIES))
        for q, (shown, line) in enumerate(zip(text.split("query ")[1:], map(json.loads, lines))):
            rows = [row.split() for row in shown.splitlines()]
            self.assertEqual(rows[0], [str(q)])
            self.assertEqual([int(row[1]) for row in rows[1:]], ids[q])
            self.assertEqual((line["query"], line["ids"]), (q, ids[q]))
            for row, told, want in zip(rows[1:], line["scores"], scores[q]):
                self.assertAlmostEqual(float(row[2]), want, delta=1e-5 * max(1, want))
                self.assertAlmostEqual(told, want, delta=1e-7 * max(1, want))
        self.run_bad(2, "search", "x.sl", "queries.fbin", "-k", 3, "--scores", "s.fbin", says=["--scores goes with"])

    def test_filter(self):
        self.write("ids.npy", npy([[2**40 + i] for i in range(N)], "u64"))
        self.build("--codes", "f32", "--ids", "ids.npy", metric="l2")
        few = [2**40 + i for i in range(0, N, 7)]
        self.write("few.npy", npy([[i] for i in reversed(few + [5])], "u64"))
        lines = self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "--ef", 300, "--filter", "few.npy", "--json",
                            "--threads", 2).splitlines()
        for q, line in zip(ASKED, map(json.loads, lines)):
            want = [2**40 + i for i in nearest("l2", BASE, q, N)[0] if i % 7 == 0][:5]
            self.assertEqual(line["ids"], want)
        self.vectors("none.ibin", [[1], [2]])
        self.write("empty.npy", npy([], "u64", shape="(0,)"))
        for ids in ("none.ibin", "empty.npy"):
            for line in self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "--filter", ids, "--json").splitlines():
                self.assertEqual(json.loads(line)["ids"], [])
        self.run_bad(1, "delete", "x.sl", "--ids", "empty.npy", says=["empty.npy", "nothing to read"])
        self.run_bad(1, "search", "x.sl", "queries.fbin", "-k", 5, "--filter", "queries.fbin", says=["one column"])
        self.run_bad(2, "search", "x.sl", "queries.fbin", "-k", 5, "--filter", "few.npy", "--probes", 2,
                     says=["--probes and --filter"])

    def test_k_up_to_n(self):
        self.build()
        self.run_ok("search", "x.sl", "queries.fbin", "-k", N, "--ef", N, "-o", "found.ibin")
        for row in decode(self.path("found.ibin"))[0]:
            self.assertEqual(sorted(row), list(range(N)))

    def test_recall_needs_tuning(self):
        self.build()
        self.run_bad(1, "search", "x.sl", "queries.fbin", "-k", 3, "--recall", 0.9, "-o", "found.ibin",
                     says=["x.sl", "no tuned settings", "shortlist tune"])


class InfoAndCheck(Indexed):
    def test_info(self):
        built = self.build("--refine", "i16")
        told = self.run_json("info", "x.sl")
        for key in ("n", "dim", "metric", "codes", "refine", "m", "ef_build", "bytes_total", "bytes_per_vector", "isa"):
            self.assertEqual(told[key], built[key])
        parts = ("codes", "links", "ids", "upper", "refine", "partitions")
        self.assertLessEqual(sum(told["bytes_" + part] for part in parts), told["bytes_total"])
        out = self.run_ok("info", "x.sl")
        for word in ("codes", "links", "refine", "seed 1"):
            self.assertIn(word, out)

    def test_what_an_index_lies_on(self):
        self.build()
        told = self.run_json("info", "x.sl")
        layer0 = told["bytes_codes"] + told["bytes_links"] + told["bytes_ids"]
        mapped = told["storage"]
        self.assertEqual((mapped["place"], mapped["mapping"], mapped["dax"], mapped["writable"]),
                         ("map", "shared", False, False))
        self.assertEqual(mapped["bytes_layer0"], layer0)
        self.assertEqual((mapped["room"], mapped["bytes_log"], mapped["recoveries"]), (0, 0, 0))
        copied = self.run_json("info", "x.sl", "--place", "dram")["storage"]
        self.assertEqual((copied["place"], copied["mapping"], copied["writable"]), ("dram", "memory", True))
        if copied["pages_known"]:
            self.assertGreaterEqual(copied["bytes_resident"], layer0)
            self.assertGreaterEqual(copied["page_size"], 4096)
        self.assertEqual(self.run_json("info", "x.sl", "--place", "pmem")["storage"]["place"], "pmem")
        self.assertIn("copied into memory", self.run_ok("info", "x.sl", "--place", "dram"))
        self.assertIn("not DAX", self.run_ok("info", "x.sl", "--place", "pmem"))

    def test_layouts(self):
        found = []
        for layout in ("arrays", "records"):
            for options in ((), ("--room", N + 50)):
                self.build("--layout", layout, *options)
                told = self.run_json("info", "x.sl")["storage"]
                self.assertEqual((told["layout"], told["record_bytes"] % 256, told["record_bytes"] > 0),
                                 (layout, 0, layout == "records"))
                for place in ("dram", "map", "pmem"):
                    self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "-o", "found.ibin", "--place", place)
                    found.append(self.read("found.ibin"))
                self.run_ok("check", "x.sl", "--scrub")
        self.assertEqual(found[1:], found[:1] * 11)
        self.assertIn("in records of 256 bytes", self.run_ok("info", "x.sl"))

    def test_prefault_changes_no_answer(self):
        self.build()
        self.truth()
        found = []
        for options in ((), ("--prefault",), ("--prefault", "--place", "pmem")):
            self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "-o", "found.ibin", *options)
            found.append(self.read("found.ibin"))
        self.assertEqual(found[1:], found[:1] * 2)
        search = ("search", "x.sl", "queries.fbin", "-k", "5", "-o", "found.ibin", "--progress")
        self.assertNotIn("loading", self.start(*search).stderr)
        self.assertIn("loading done", self.start(*search, "--prefault").stderr)
        measure = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--ef", 20, "--repeat", 1, "--place", "map")
        plain = self.run_json(*measure)["points"][0]["recall"]
        pin = min(os.sched_getaffinity(0))
        for options in ((), ("--procs", 2, "--pin", pin)):
            self.assertEqual(self.run_json(*measure, "--prefault", *options)["points"][0]["recall"], plain)

    def test_a_tier_in_memory(self):
        self.build("--codes", "i4")
        self.truth()
        told = self.run_json("info", "x.sl")
        self.assertEqual((told["storage"]["tier"], told["storage"]["bytes_tier"]), ("none", 0))
        for place in ("map", "pmem"):
            tiered = self.run_json("info", "x.sl", "--place", place, "--tier", "dram")["storage"]
            self.assertIn(tiered["tier"], ("filling", "filled"))
            self.assertLessEqual(tiered["bytes_tier"], told["bytes_upper"] + told["bytes_codes"])
            self.assertIn("is also copied into memory", self.run_ok("info", "x.sl", "--place", place, "--tier", "dram"))
        for options in (("--tier", "auto"), ("--tier", "none"), ("--place", "dram", "--tier", "dram")):
            self.assertEqual(self.run_json("info", "x.sl", *options)["storage"]["tier"], "none")
            self.assertNotIn("is also copied into memory", self.run_ok("info", "x.sl", *options))
        found = []
        for options in ((), ("--tier", "dram"), ("--tier", "dram", "--place", "pmem")):
            self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "-o", "found.ibin", *options)
            found.append(self.read("found.ibin"))
        self.assertEqual(found[1:], found[:1] * 2)
        measure = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--ef", 20, "--repeat", 1, "--place", "map")
        plain = self.run_json(*measure)["points"][0]["recall"]
        pin = min(os.sched_getaffinity(0))
        for options in ((), ("--procs", 2, "--pin", pin)):
            self.assertEqual(self.run_json(*measure, "--tier", "dram", *options)["points"][0]["recall"], plain)
        self.run_bad(2, "info", "x.sl", "--tier", "disk", says=["auto|none|dram"])
        self.run_ok("build", "base.fbin", "-o", "room.sl", "--metric", "cosine", "--room", 2 * N)
        for command in (("info", "room.sl"), ("search", "room.sl", "queries.fbin", "-k", 5, "-o", "found.ibin"),
                        ("eval", "room.sl", *measure[2:]), ("eval", "room.sl", *measure[2:], "--procs", 2, "--pin", pin)):
            self.run_bad(1, *command, "--tier", "dram", says=["room.sl", "tier none"])
            self.run_ok(*command, "--tier", "auto")

    def plan(self, *options):
        return self.run_json("info", "--plan", *options)

    def test_plan(self):
        for options in ((), ("--refine", "f32", "--m", 8), ("--codes", "i4")):
            with self.subTest(options=options):
                self.build(*options)
                told = self.run_json("info", "x.sl")
                plan = self.plan("--dim", DIM, "--n", N, *options)
                self.assertEqual(plan["bytes_codes"] + plan["bytes_rest"] + plan["bytes_coarse"] +
                                 plan["bytes_projection"], told["bytes_codes"])
                for part in ("links", "ids", "refine"):
                    self.assertEqual(plan["bytes_" + part], told["bytes_" + part])
                walked = plan["bytes_codes"] if "i4" in options else 0
                self.assertEqual(plan["bytes_tier"], plan["bytes_upper"] + walked)
                self.assertLessEqual(abs(plan["bytes_total"] - told["bytes_total"]),
                                     5 * plan["bytes_upper_deviation"] + 4 * 4096)
        self.build("--layout", "records")
        told = self.run_json("info", "x.sl")
        plan = self.plan("--dim", DIM, "--n", N)
        self.assertEqual(plan["record_bytes"], told["storage"]["record_bytes"])
        self.assertLessEqual(abs(plan["bytes_in_records"] - told["bytes_total"]),
                             5 * plan["bytes_upper_deviation"] + 4 * 4096)
        plan = self.plan("--dim", 100, "--n", "4e9", "--codes", "i8")
        self.assertEqual(plan["record_bytes"], 256)
        self.assertAlmostEqual(plan["bytes_in_records"] / plan["n"], 256 + 5, delta=2)
        plan = self.plan("--dim", 100, "--n", "4e9")
        self.assertEqual(plan["n"], 4 * 10**9)
        mapped = [("mapped", "none"), ("dram", "none"), ("dram", "dram")]
        self.assertEqual([(p["place"], p["upper"], p["tier"]) for p in plan["places"]],
                         [("dram", "dram", "none"), *(("map", *m) for m in mapped), *(("pmem", *m) for m in mapped)])
        for place, medium in zip(plan["places"], ("dram", *["page_cache"] * 3, *["pmem"] * 3)):
            self.assertEqual(place[medium + "_bytes"], plan["bytes_total"])
        copied = [0, plan["bytes_upper"], plan["bytes_tier"]]
        self.assertEqual([p["dram_bytes"] for p in plan["places"]], [plan["bytes_total"], *copied, *copied])
        # An entry of 8 bytes a page, and little above it.
        self.assertAlmostEqual(plan["page_table_bytes_4k"], plan["bytes_total"] / 512, delta=plan["bytes_total"] / 1e5)
        self.assertAlmostEqual(plan["page_table_bytes_2m"], plan["bytes_total"] / 2**18, delta=plan["bytes_total"] / 1e7)
        self.assertEqual(plan["fits_memory"], plan["bytes_total"] <= plan["memory_bytes"])
        self.assertEqual(plan["memory_bytes"], self.run_json("cpu")["memory_bytes"])
        self.assertEqual(plan["folder"], ".")
        os.mkdir(self.path("there"))
        free = os.statvfs(self.path("there"))
        told = self.plan("--dim", 100, "--n", "1.5e3", "-o", "there/x.sl")
        self.assertEqual((told["n"], told["folder"]), (1500, "there"))
        self.assertAlmostEqual(told["free_bytes"], free.f_bavail * free.f_frsize, delta=free.f_frsize * free.f_blocks / 4)
        self.assertTrue(told["fits_folder"])
        text = self.run_ok("info", "--plan", "--dim", 100, "--n", "4e9", "--codes", "i4")
        for word in ("4000000000 vectors of 100 f32", "rest", "expected", "page table", "this machine",
                     "in DRAM (--tier)", "the 4-bit rows with it"):
            self.assertIn(word, text)

    def test_plans_that_are_none(self):
        self.build()
        for wrong, says in ((("--plan", "--n", 5), "--dim"), (("--plan", "--dim", 5), "--n"),
                            (("--plan", "--dim", 5, "--n", 5, "x.sl"), "x.sl"), ((), "FILE is missing"),
                            *((("--plan", "--dim", 5, "--n", n), "whole number")
                              for n in ("1.5", "15e-1", "1e", "e9", "0x1e9", "-1e3", "1e99", "nan"))):
            self.run_bad(2, "info", *wrong, says=[says])
        self.run_bad(1, "info", "--plan", "--dim", 5, "--n", "5e9", says=["5000000000 vectors"])
        self.run_bad(1, "info", "--plan", "--dim", 5, "--n", 5, "--input", "u8", "--refine", "f32", says=["refine"])

    def test_check_counts(self):
        self.build()
        told = self.run_json("check", "x.sl", "--sample", 100)
        self.assertTrue(told["ok"])
        self.assertIsNone(told["fault"])
        for key in ("bad_links", "bad_upper", "unreachable", "no_in_link", "bad_vectors", "duplicate_ids"):
            self.assertEqual(told[key], 0)
        self.assertGreater(told["sampled_recall"], 0.95)
        self.assertGreater(told["sections_checked"], 3)
        self.assertIsNone(self.run_json("check", "x.sl", "--sample", 0)["sampled_recall"])
        self.assertIn("sound", self.run_ok("check", "x.sl"))

    def test_a_sample_tells_of_bad_links(self):
        keys = ("sampled_recall", "sampled_lost", "sampled_lost_share")
        shares = []
        source = random.Random(1)
        self.vectors("many.fbin", [[source.gauss(0, 1) for _ in range(32)] for _ in range(4000)])
        for base, options in (("base.fbin", ()), ("many.fbin", ("--m", 2, "--ef-build", 2, "--threads", 1))):
            self.build(*options, base=base)
            told = self.run_json("info", "x.sl", "--sample", 50)
            self.assertEqual([told[key] for key in keys], [self.run_json("check", "x.sl", "--sample", 50)[key] for key in keys])
            self.assertEqual(told["sampled_lost_share"], told["sampled_lost"] / 50)
            for command in ("info", "check"):
                self.assertRegex(self.run_ok(command, "x.sl", "--sample", 50),
                                 rf"lost of the sample +{told['sampled_lost']} of 50, ")
            self.assertFalse(set(keys) & set(self.run_json("info", "x.sl")))
            shares.append(told["sampled_lost_share"])
        self.assertEqual(shares[0], 0)
        self.assertGreater(shares[1], 0.1)
        damaged = bytearray(self.read("x.sl"))
        damaged[4096 + 17] ^= 0x10
        self.write("x.sl", damaged)
        self.run_ok("info", "x.sl")
        self.run_bad(1, "info", "x.sl", "--sample", 50, says=["x.sl: section 1", "damaged"])

    def test_check_finds_damage(self):
        """One flipped bit in any section: exit 1, the counts on stdout, the fault on stderr."""
        self.build("--refine", "f32")
        whole = self.read("x.sl")
        for at in (4096 + 17, len(whole) // 2, len(whole) - 4096 - 70):
            damaged = bytearray(whole)
            damaged[at] ^= 0x10
            if bytes(damaged[at - 8:at + 8]).strip(b"\0") == b"\x10":
                continue  # in the slack between two sections
            self.write("bad.sl", damaged)
            done = self.start("check", "bad.sl", "--json")
            self.assertEqual(done.returncode, 1, at)
            self.assertEqual((done.stdout.count("\n"), done.stderr.count("\n")), (1, 1))
            self.assertIn('"ok": false', done.stdout)
            self.assertIn('"bad_links": null', done.stdout)
            self.assertIn("bad.sl", done.stderr)
            done = self.start("check", "bad.sl")
            self.assertEqual(done.returncode, 1, at)
            self.assertIn("damaged", done.stdout)
            self.assertRegex(done.stdout, r"the graph +not looked at\n$")


class Machine(CommandTest):
    def test_cpu(self):
        told = self.run_json("cpu")
        self.assertIn(told["isa"], told["isa_available"])
        self.assertIn("scalar", told["isa_available"])
        self.assertGreaterEqual(told["cpus"], 1)
        self.assertIsInstance(told["openmp"], bool)
        self.assertIn("ISA tier", self.run_ok("cpu"))
        self.assertRegex(self.run_ok("cpu"), r"\noneDNN +(yes|not in this build)\n")
        self.assertNotIn("mpi", told)

    def test_threads_are_told_as_used(self):
        """No more are told than a call makes; a number that is a slip is refused by every command."""
        self.vectors("base.fbin", BASE)
        build = ("build", "base.fbin", "-o", "x.sl", "--metric", "l2")
        for command in Help.COMMANDS:
            if "--threads" in self.run_ok(command, "--help"):
                self.run_bad(2, command, "--threads", 100000, says=["--threads is '100000'", "8192"])
        self.assertLessEqual(self.run_json(*build, "--threads", 8192)["threads"], 1024)
        environment = dict(os.environ, OMP_THREAD_LIMIT="3")
        self.assertIn(" on 3 threads;", self.run_ok(*build, "--threads", 8000, env=environment))

    def test_nodes(self):
        told = self.run_json("cpu")
        if not told["numa"]:
            self.assertEqual(told["nodes"], [])
            return
        self.assertEqual(len(told["nodes"]), told["numa_nodes"])
        self.assertGreaterEqual(sum(node["cpus"] for node in told["nodes"]), told["cpus"])
        self.assertGreater(sum(node["memory_bytes"] for node in told["nodes"]), 0)
        first = told["nodes"][0]
        self.assertIn(f"node {first['node']}", self.run_ok("cpu"))
        listed = sum(int(last) - int(first) + 1 for first, _, last in
                     (part.partition("-") if "-" in part else (part, "", part)
                      for part in first["cpu_list"].split(",") if part))
        self.assertEqual(listed, first["cpus"])

    def test_cap(self):
        done = self.start("cpu", "--json", env={**os.environ, "SHORTLIST_MAX_ISA": "scalar"})
        self.assertIn('"isa": "scalar"', done.stdout)


class Numa(Indexed):
    """--numa, on however many memory nodes there are; the C tests play machines of several."""

    def setUp(self):
        super().setUp()
        self.nodes = [node["node"] for node in self.run_json("cpu")["nodes"] if node["memory_bytes"]]
        self.build()
        done = self.start("info", "x.sl", "--numa", "local")
        if done.returncode:
            self.assertRegex(done.stderr, r"libnuma|forbids")
            self.skipTest(done.stderr.strip())

    def lies(self, told, policy):
        numa = told["numa"]
        self.assertEqual(numa["policy"], policy)
        self.assertEqual(numa["bytes_absent"], 0)
        if policy.startswith("bind:"):
            self.assertEqual(numa["bytes_by_node"][int(policy[5:])], sum(numa["bytes_by_node"]))
        self.assertGreaterEqual(sum(numa["bytes_by_node"]), self.layer0)

    def test_pages_lie_where_they_were_asked_for(self):
        told = self.run_json("info", "x.sl")
        self.layer0 = told["bytes_codes"] + told["bytes_links"]
        self.assertNotIn("numa", told)
        self.truth()
        measure = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--ef", 20, "--repeat", 1)
        plain = self.run_json(*measure)
        self.assertNotIn("numa", plain)
        for policy in ("interleave", "local", f"bind:{self.nodes[-1]}"):
            with self.subTest(policy=policy):
                self.lies(self.run_json("info", "x.sl", "--place", "dram", "--numa", policy), policy)
                self.lies(self.run_json("info", "x.sl", "--place", "map", "--numa", policy), policy)
                told = self.run_json(*measure, "--numa", policy, "--threads", 2)
                self.lies(told, policy)
                self.assertEqual(told["points"][0]["recall"], plain["points"][0]["recall"])
                cpu = min(os.sched_getaffinity(0))
                several = ("--procs", 2, "--pin", cpu, "--place", "dram")
                self.lies(self.run_json(*measure, "--numa", policy, *several), policy)
        self.lies(self.run_json("info", "x.sl", "--place", "dram"), "default")
        self.assertIn("NUMA policy local: on memory node", self.run_ok("info", "x.sl", "--numa", "local"))
        self.assertIn("NUMA policy interleave", self.run_ok(*measure, "--numa", "interleave"))

    def test_building_and_searching(self):
        plain, found = self.read("x.sl"), None
        for options in ((), ("--numa", "interleave"), ("--numa", "local", "--place", "dram")):
            self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "-o", "found.ibin", "--threads", 2, *options)
            found = found or self.read("found.ibin")
            self.assertEqual(self.read("found.ibin"), found)
        self.build("--numa", f"bind:{self.nodes[0]}", "--threads", 1)
        self.assertEqual(len(self.read("x.sl")), len(plain))

    def test_nodes_that_are_not_there(self):
        says = ["bind:1000: this machine"]
        self.run_bad(1, "build", "base.fbin", "-o", "y.sl", "--metric", "l2", "--numa", "bind:1000", says=says)
        self.run_bad(1, "info", "x.sl", "--numa", "bind:1000", says=says)
        for wrong in ("bind:x", "bind:", "bind", "all"):
            self.run_bad(2, "info", "x.sl", "--numa", wrong, says=[f"--numa is '{wrong}'; it takes interleave, bind:N"])


class Help(CommandTest):
    COMMANDS = ("build", "add", "delete", "merge", "rebuild", "search", "eval", "tune", "truth", "info", "check", "convert", "train",
                "prune", "predict", "evaluate", "items", "recommend", "cpu")

    def test_every_page(self):
        for name in self.COMMANDS:
            page = self.run_ok(name, "--help")
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES"):
                self.assertRegex(page, rf"(?m)^{heading}$", name)
            self.assertEqual(page, self.run_ok("help", name))
            self.assertLessEqual(max(len(line) for line in page.split("EXAMPLES")[0].splitlines()), 79)
            # The synopsis names each option the page explains.
            synopsis = page.split("DESCRIPTION")[0]
            for option in re.findall(r"(?m)^       (?:-\w, )?(--[\w-]+|-\w)", page.split("OPTIONS")[1]):
                if option not in ("--output", "-h", "--help"):
                    self.assertIn(option, synopsis, name)

    def test_overview(self):
        page = self.run_ok("--help")
        self.assertEqual(page, self.run_ok("help"))
        for name in self.COMMANDS:
            self.assertRegex(page, rf"(?m)^       {name} ")

    def test_version(self):
        self.assertRegex(self.run_ok("--version"), r"^shortlist \d+\.\d+\.\d+\n$")

    def test_wrong_command_lines(self):
        cases = [((), "a command is missing"), (("frobnicate",), "frobnicate"), (("help", "frobnicate"), "frobnicate"),
                 (("--frobnicate",), "--frobnicate"),
                 (("build",), "--output INDEX is missing"),
                 (("build", "a", "-o", "b"), "--metric ip|cosine|l2 is missing"),
                 (("build", "-o", "b", "--metric", "ip"), "BASE is missing"),
                 (("build", "a", "c", "-o", "b", "--metric", "ip"), "'c'"),
                 (("build", "a", "-o", "b", "--metric", "dot"), "'dot'"),
                 (("build", "a", "--m"), "--m misses its value"),
                 (("build", "a", "--frob", "3"), "--frob"), (("build", "a", "-z"), "-z"),
                 (("build", "a", "--m", "many"), "'many'"), (("build", "a", "--m", "-3"), "'-3'"),
                 (("build", "a", "--m", "99999999999999999999999"), "--m"),
                 (("build", "a", "--max-memory", "3X"), "3X"),
                 (("build", "a", "--json=yes"), "--json takes no value"), (("info", "a", "--j"), "--j"),
                 (("eval", "a", "b", "c", "-k", "1", "--ef", "3,,4"), "3,,4"),
                 (("eval", "a", "b", "c", "-k", "1", "--recall", "1.5"), "1.5"),
                 (("eval", "a", "b", "c", "-k", "1", "--recall", "0.9", "--ef", "10"), "--ef and --recall"),
                 (("search", "a", "b", "-k", "1", "-o", "c", "--recall", "0.9", "--ef", "10"), "--ef and --recall"),
                 (("search", "a", "b", "-o", "c"), "-k N is missing"),
                 (("search", "a", "b", "-k", "ten"), "-k is 'ten'")]
        for arguments, says in cases:
            with self.subTest(arguments=arguments):
                self.run_bad(2, *arguments, says=[says, "--help"])

    def test_spellings(self):
        self.vectors("a.fbin", [[1, 2], [3, 4]])
        for options in (("--type=i16",), ("--type", "i16"), ("--type", "i8", "--type", "i16")):
            self.run_ok("convert", "a.fbin", "b.npy", *options)
            self.assertEqual(decode(self.path("b.npy"))[1], "i16")
        self.vectors("-odd.fbin", [[1, 2], [3, 4]])
        self.run_ok("convert", "--", "-odd.fbin", "c.npy")
        self.run_ok("truth", "a.fbin", "a.fbin", "-k1", "--metric=l2", "-ot.ibin")

    def test_log(self):
        done = self.start("cpu", env={**os.environ, "SHORTLIST_LOG": "loud"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("SHORTLIST_LOG", done.stderr)
        self.assertEqual(self.start("cpu", env={**os.environ, "SHORTLIST_LOG": "debug"}).returncode, 0)

    def test_stdout_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([COMMAND, "cpu"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)
