"""shortlist tune, and the commands that use what it stores."""

import json
import re
import struct
import unittest

from harness import CommandTest, clustered

N, DIM, QUERIES, K = 900, 12, 240, 10
BASE = clustered(N, DIM, 1)
ASKED = clustered(QUERIES, DIM, 2)


class Tune(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", BASE)
        self.vectors("half.fbin", ASKED[::2])
        self.vectors("other.fbin", ASKED[1::2])
        self.run_ok("build", "base.fbin", "-o", "x.sl", "--metric", "cosine", "--refine", "f32", "--m", 4,
                    "--ef-build", 16)
        for name in ("half", "other"):
            self.run_ok("truth", "base.fbin", f"{name}.fbin", "-k", K, "--metric", "cosine", "-o", f"{name}.ibin")

    def tune(self, *options):
        return self.run_json("tune", "x.sl", "half.fbin", "half.ibin", "-k", K, "--recall", "0.95,0.8", *options)

    def test_stores_what_search_and_eval_use(self):
        self.assertEqual(self.run_json("info", "x.sl")["tuned"], [])
        told = self.tune()
        self.assertEqual((told["k"], told["queries"], told["truth"]), (K, QUERIES // 2, "half.ibin"))
        self.assertEqual([row["target"] for row in told["tuned"]], [0.8, 0.95])
        self.assertEqual(self.run_json("info", "x.sl")["tuned"], told["tuned"])
        self.assertIn("settings tuned for a recall", self.run_ok("info", "x.sl"))
        self.run_ok("check", "x.sl")
        for row in told["tuned"]:
            self.assertTrue(row["reached"])
            self.assertEqual((row["k"], row["n"], row["queries"], row["limit"]), (K, N, QUERIES // 2, "none"))
            self.assertGreaterEqual(row["recall"], row["target"])
            self.assertTrue(row["ef_alone"] < row["ef"] if row["stop"] else row["ef_alone"] == row["ef"])
        low, high = told["tuned"]

        found = self.run_json("search", "x.sl", "half.fbin", "-k", K, "--recall", 0.9, "-o", "found.ibin")
        self.assertEqual((found["ef"], found["rerank"], found["target"]), (high["ef"], high["rerank"], 0.9))
        self.run_ok("search", "x.sl", "half.fbin", "-k", K, "--ef", high["ef"], "--rerank", high["rerank"],
                    *(("--stop", high["stop"]) if high["stop"] else ()), "-o", "same.ibin")
        self.assertEqual(self.read("found.ibin"), self.read("same.ibin"))

        # With a filter the library chooses among what is stored, since not all of it serves one.
        self.vectors("even.ibin", [[i] for i in range(0, N, 2)])
        lines = self.run_ok("search", "x.sl", "half.fbin", "-k", K, "--recall", 0.8, "--filter", "even.ibin", "--json")
        self.assertTrue(all(i % 2 == 0 for line in lines.splitlines() for i in json.loads(line)["ids"]))

        at = self.run_json("eval", "x.sl", "half.fbin", "half.ibin", "-k", K, "--recall", "0.8,0.95,0.97",
                           "--repeat", 1)["at"]
        self.assertEqual([row["tuned"] for row in at], [True, True, False])
        for row, stored in zip(at, (low, high)):
            self.assertEqual((row["ef"], row["rerank"], row["recall"]),
                             (stored["ef"], stored["rerank"], stored["recall"]))
        other = self.run_json("eval", "x.sl", "other.fbin", "other.ibin", "-k", K, "--recall", 0.8, "--repeat", 1)
        self.assertGreaterEqual(other["at"][0]["recall"], 0.75)
        text = self.run_ok("eval", "x.sl", "other.fbin", "other.ibin", "-k", K, "--recall", 0.8, "--repeat", 1)
        self.assertIn("as tuned for recall 0.8, re-ranking", text)
        # Settings given by hand are measured as they are given.
        plain = self.run_json("eval", "x.sl", "half.fbin", "half.ibin", "-k", K, "--recall", 0.8, "--repeat", 1,
                              "--rerank", 40)["at"][0]
        self.assertEqual((plain["tuned"], plain["rerank"]), (False, 40))

    def test_stored_settings_are_no_walk_of_its_own(self):
        """If a recall is not reached, eval tells the best of its own walks. Stored settings re-rank more."""
        asked = ("half.fbin", "half.ibin", "-k", K, "--recall", "0.9,0.995,0.999", "--repeat", 1)
        self.run_ok("build", "base.fbin", "-o", "four.sl", "--metric", "cosine", "--codes", "i4", "--threads", 1)
        self.run_ok("tune", "four.sl", "half.fbin", "half.ibin", "-k", K, "--recall", "0.9,0.995")
        told = self.run_json("eval", "four.sl", *asked)
        low, high, never = told["at"]
        self.assertEqual([row["tuned"] for row in told["at"]], [True, True, False])
        own = [point for point in told["points"] if point["rerank"] == 0]
        best = max(point["recall"] for point in own)
        self.assertGreater(high["recall"], best)
        self.assertEqual((never["reached"], never["recall"]), (False, best))
        self.assertEqual(never["ef"], min(point["ef"] for point in own if point["recall"] == best))
        table, *tuned = self.run_ok("eval", "four.sl", *asked).split("as tuned for recall")
        self.assertEqual(re.findall(r"(?m)^ +(\d+) +0\.", table), [str(point["ef"]) for point in own])
        self.assertEqual(len(tuned), 2)

    def test_without_truth(self):
        # The f32 copy is the vectors themselves: the truth is the same.
        with_file = self.tune()["tuned"]
        told = self.run_json("tune", "x.sl", "half.fbin", "-k", K, "--recall", "0.8,0.95", "--threads", 1)
        self.assertIsNone(told["truth"])
        self.assertEqual(told["tuned"], with_file)

    def test_text(self):
        out = self.run_ok("tune", "x.sl", "half.fbin", "half.ibin", "-k", K)
        self.assertIn("tuned with 120 queries", out)
        self.assertRegex(out, r"\n +k +target +ef +rerank +stop .*recall +evaluations ")
        self.assertRegex(out, r"\n +10 +0\.9 +\d+ +\d+ +[\d.]+ .*0\.9\d+ ")
        self.assertRegex(out, r"tune with \d+ or more\n")

    def test_out_of_reach(self):
        told = self.run_json("tune", "x.sl", "half.fbin", "half.ibin", "-k", K, "--recall", 1, "--max-ef", K)
        self.assertEqual((told["tuned"][0]["reached"], told["tuned"][0]["limit"]), (False, "ef"))
        self.run_bad(1, "search", "x.sl", "half.fbin", "-k", K, "--recall", 1, "-o", "found.ibin",
                     says=("x.sl", "out of reach", "max_ef"))
        out = self.run_ok("tune", "x.sl", "half.fbin", "half.ibin", "-k", K, "--recall", 1, "--max-ef", K)
        self.assertIn("not reached, ef: ", out)

    def test_refused(self):
        self.vectors("few.fbin", ASKED[:20])
        self.vectors("flat.fbin", [row[:5] for row in ASKED])
        bad = (
            (("x.sl", "few.fbin", "-k", K), ("few.fbin", "20 queries")),
            (("x.sl", "flat.fbin", "-k", K), ("flat.fbin",)),
            (("x.sl", "half.fbin", "-k", N + 1), ("-k is 901",)),
            (("x.sl", "half.fbin", "half.ibin", "-k", K + 1), ("half.ibin",)),
            (("x.sl", "half.fbin", "base.fbin", "-k", K), ("base.fbin", "ground truth is ids")),
            (("x.sl", "half.fbin", "-k", K, "--max-ef", 3), ("--max-ef is 3",)),
            (("none.sl", "half.fbin", "-k", K), ("none.sl",)),
            (("base.fbin", "half.fbin", "-k", K), ("base.fbin",)),
        )
        for arguments, says in bad:
            with self.subTest(arguments=arguments):
                self.run_bad(1, "tune", *arguments, says=says)
        self.run_bad(2, "tune", "x.sl", "-k", K, says=("QUERIES is missing",))
        self.run_bad(2, "tune", "x.sl", "half.fbin", "half.ibin", "more", "-k", K, says=("one argument too many",))
        self.run_bad(2, "search", "x.sl", "half.fbin", "-k", K, "--recall", 0.9, "--rerank", 5, "-o", "o.ibin",
                     says=("--rerank and --recall",))
        self.run_bad(2, "search", "x.sl", "half.fbin", "-k", K, "--recall", 0.9, "--stop", 0.5, "-o", "o.ibin",
                     says=("--stop and --recall",))
        self.run_bad(2, "search", "x.sl", "half.fbin", "-k", K, "--recall", 0.9, "--probes", 5, "-o", "o.ibin",
                     says=("--probes and --recall",))
        self.run_bad(2, "search", "x.sl", "half.fbin", "-k", K, "--groups", 5, "-o", "o.ibin",
                     says=("--groups goes with --probes",))
        for stop in ("0.1,0.2", "-1", "nan", "1e999", "x"):
            self.run_bad(2, "search", "x.sl", "half.fbin", "-k", K, "--stop", stop, "-o", "o.ibin", says=("--stop",))

    def test_a_stop_and_probes_by_hand(self):
        """A walk that may stop at once finds less; so does a scan of one partition than one of all."""
        self.vectors("many.fbin", clustered(5000, DIM, 3))
        self.run_ok("build", "many.fbin", "-o", "many.sl", "--metric", "cosine")
        self.run_ok("truth", "many.fbin", "half.fbin", "-k", K, "--metric", "cosine", "-o", "truth.ibin")
        truth = self.read("truth.ibin")

        def found(*options):
            self.run_ok("search", "many.sl", "half.fbin", "-k", K, *options, "-o", "found.ibin")
            return self.read("found.ibin")

        def shared(ids):
            places = range(8, 8 + 4 * K * (QUERIES // 2), 4)
            rows = [places[at:at + K] for at in range(0, len(places), K)]
            return sum(len({ids[at:at + 4] for at in row} & {truth[at:at + 4] for at in row}) for row in rows)

        self.assertLess(shared(found("--ef", 100, "--stop", 1e-6)), shared(found("--ef", 100)))
        self.assertEqual(found("--ef", 100, "--stop", 1e9), found("--ef", 100, "--stop", 0))
        if self.run_json("cpu")["isa"] == "scalar":
            self.skipTest("this tier does not scan")
        one, every = shared(found("--probes", 1)), shared(found("--probes", 1000))
        self.assertLess(one, every)
        self.assertGreater(every, 0.97 * K * (QUERIES // 2))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class Probes(CommandTest):
    """Settings that differ in their probes alone, as tuning seldom finds them: written into the file."""

    TUNED, RECORD, PROBES = 9, 96, 76

    def rewrite(self, probes):
        """The first record's settings for all targets, but for these probes."""
        with open(self.path("x.sl"), "r+b") as file:
            header = bytearray(file.read(4096))
            at = next(512 + 32 * i for i in range(32) if struct.unpack_from("<I", header, 512 + 32 * i)[0] == self.TUNED)
            offset, size = struct.unpack_from("<QQ", header, at + 8)
            file.seek(offset)
            records = [bytearray(file.read(self.RECORD)) for _ in range(size // self.RECORD)]
            self.assertEqual(len(records), len(probes))
            for record, number in zip(records, probes):
                record[48:self.PROBES] = records[0][48:self.PROBES]
                struct.pack_into("<II", record, self.PROBES, *number)
            section = b"".join(records)
            struct.pack_into("<I", header, at + 24, crc32c(section))
            struct.pack_into("<I", header, 4092, crc32c(header[:4092]))
            file.seek(offset)
            file.write(section)
            file.seek(0)
            file.write(header)

    def test_are_told_apart_by_eval(self):
        queries = clustered(300, 8, 6)
        self.vectors("base.fbin", clustered(5000, 8, 5))
        self.vectors("queries.fbin", queries)
        self.vectors("few.fbin", queries[:100])
        self.run_ok("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--m", 4, "--ef-build", 16)
        for name in ("queries", "few"):
            self.run_ok("truth", "base.fbin", f"{name}.fbin", "-k", K, "--metric", "l2", "-o", f"{name}.ibin")
        self.run_ok("tune", "x.sl", "queries.fbin", "queries.ibin", "-k", K, "--recall", "0.5,0.6")
        self.rewrite([(1, 0), (3, 0)])

        def asked(name):
            told = self.run_json("eval", "x.sl", f"{name}.fbin", f"{name}.ibin", "-k", K, "--recall", "0.5,0.6",
                                 "--threads", 1, "--repeat", 1)
            return [point["probes"] for point in told["points"]]

        self.assertEqual(asked("queries"), [1, 3])
        # A batch of fewer than are scanned walks for both: one and the same point.
        self.assertEqual(asked("few"), [0])
        # Or scans as single queries do.
        self.rewrite([(3, 1), (3, 2)])
        self.assertEqual(asked("queries"), [3, 3])
        self.assertEqual(asked("few"), [1, 2])
        text = self.run_ok("eval", "x.sl", "queries.fbin", "queries.ibin", "-k", K, "--recall", "0.6", "--threads", 1,
                           "--repeat", 1)
        self.assertRegex(text, "; this batch scans 3 partitions; single queries scan 2 partitions\n")
        few = self.run_ok("eval", "x.sl", "few.fbin", "few.ibin", "-k", K, "--recall", "0.6", "--threads", 1, "--repeat", 1)
        self.assertRegex(few, "; this batch scans 2 partitions; single queries scan 2 partitions\n")
        self.assertEqual((self.run_json("info", "x.sl")["partitions"], self.run_json("info", "x.sl")["groups"]), (19, 0))
        self.assertIn("\n19 partitions\n", self.run_ok("info", "x.sl"))
        # Many queries are asked in blocks. Each block is searched as all are, on however many threads.
        self.rewrite([(3, 0), (3, 0)])
        self.vectors("many.fbin", clustered(20000, 8, 7))

        def found(threads):
            told = self.run_json("search", "x.sl", "many.fbin", "-k", K, "--recall", 0.6, "--threads", threads, "-o",
                                 "many.ibin")
            return told["probes"], told["target"], self.read("many.ibin")

        self.assertEqual(found(64), found(1))
        self.assertEqual(found(1)[:2], (3, 0.6))


if __name__ == "__main__":
    unittest.main()
