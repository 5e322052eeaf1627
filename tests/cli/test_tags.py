"""Tags and keys: build and add take them, search goes by them, info tells of them."""

import json
import unittest

from harness import CommandTest, clustered, decode, npy

N, DIM, MORE = 300, 8, 50
BASE = clustered(N, DIM, 1)
ADDED = clustered(MORE, DIM, 2)
ASKED = clustered(4, DIM, 3)
MOST = 2**64 - 1


class Tags(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", BASE)
        self.vectors("more.fbin", ADDED)
        self.vectors("queries.fbin", ASKED)
        self.tags = [1 << i % 64 | i % 2 for i in range(N)]
        self.keys = [MOST if i == 7 else i * i for i in range(N)]
        self.column("tags.npy", self.tags)
        self.column("keys.npy", self.keys)

    def column(self, name, words):
        self.write(name, npy([[word] for word in words], "u64"))

    def build(self, *options):
        return self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", *options)

    def found(self, *options):
        """The ids that a search finds of all that may be found, the same for each query."""
        k = N + MORE if len(self.tags) > N else N
        lines = self.run_ok("search", "x.sl", "queries.fbin", "-k", k, "--json", *options).splitlines()
        found = [sorted(json.loads(line)["ids"]) for line in lines]
        self.assertEqual(found, found[:1] * len(ASKED))
        return found[0]

    def expect(self):
        for options, passes in {
                ("--any-tags", 6): lambda tag, key: tag & 6,
                ("--all-tags", "0x3"): lambda tag, key: tag & 3 == 3,
                ("--none-tags", "0x8000000000000001"): lambda tag, key: not tag & 0x8000000000000001,
                ("--any-tags", "0XFF", "--none-tags", 1, "--key-max", 9999): lambda tag, key:
                    tag & 255 and not tag & 1 and key <= 9999,
                ("--key-min", 100): lambda tag, key: key >= 100,
                ("--key-min", MOST): lambda tag, key: key == MOST,
                ("--key-min", 100, "--key-max", 100): lambda tag, key: key == 100,
                ("--any-tags", 0, "--key-max", MOST): lambda tag, key: True,
        }.items():
            wanted = [i for i, words in enumerate(zip(self.tags, self.keys)) if passes(*words)]
            self.assertEqual(self.found(*options), wanted, options)

    def test_in_any_file(self):
        for options in ((), ("--room", 500), ("--layout", "records")):
            self.build("--tags", "tags.npy", "--keys", "keys.npy", *options)
            self.expect()
            told = self.run_json("info", "x.sl")
            self.assertTrue(told["tags"] and told["keys"])
            self.assertEqual((told["bytes_tags"], told["bytes_keys"]), (8 * N, 8 * N))
            self.assertIn("tags", self.run_ok("info", "x.sl"))

    def test_added(self):
        more = [(1 << 63) + i for i in range(MORE)]
        self.column("more.npy", more)
        for options in ((), ("--room", 500)):
            self.build("--tags", "tags.npy", "--keys", "keys.npy", *options)
            self.run_json("add", "x.sl", "more.fbin", "--tags", "more.npy")
            self.tags, self.keys = self.tags[:N] + more, self.keys[:N] + [0] * MORE
            self.expect()
            self.assertTrue(self.run_json("check", "x.sl")["ok"])

    def test_with_ids(self):
        self.build("--tags", "tags.npy")
        self.column("some.npy", range(0, N, 3))
        wanted = [i for i in range(0, N, 3) if not self.tags[i] & 1]
        self.assertEqual(self.found("--filter", "some.npy", "--none-tags", 1), wanted)
        self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "--none-tags", 1, "-o", "out.ibin")
        told = json.loads(self.run_ok("search", "x.sl", "queries.fbin", "-k", 5, "--all-tags", MOST, "--json", "-o",
                                      "out.ibin"))
        self.assertEqual((told["allowed"], told["results"]), (0, 0))

    def test_truth_and_recall(self):
        """The truth of what passes is made, or lies in a truth of all, and eval counts what passes, as search does."""
        self.build("--codes", "f32", "--tags", "tags.npy", "--keys", "keys.npy")
        self.column("some.npy", range(0, N, 3))
        of = ("base.fbin", "queries.fbin", "--metric", "l2")
        self.run_ok("truth", *of, "-k", N, "-o", "all.ibin")
        for words, files, passes in (
                (("--any-tags", 3), ("--tags", "tags.npy"), lambda i, tag, key: tag & 3),
                (("--all-tags", 3), ("--tags", "tags.npy"), lambda i, tag, key: tag & 3 == 3),
                (("--key-min", 100), ("--keys", "keys.npy"), lambda i, tag, key: key >= 100),
                (("--none-tags", 1, "--key-max", 9999, "--filter", "some.npy"),
                 ("--tags", "tags.npy", "--keys", "keys.npy"),
                 lambda i, tag, key: not tag & 1 and key < 10000 and i % 3 == 0)):
            passing = {i for i, word in enumerate(zip(self.tags, self.keys)) if passes(i, *word)}
            k = min(10, len(passing))
            told = self.run_json("truth", *of, "-k", 10, "-o", "made.ibin", *words, *files)
            self.assertEqual(told["compared"], len(passing))
            made, whole = (decode(self.path(name))[0] for name in ("made.ibin", "all.ibin"))
            self.assertEqual([list(row)[:k] for row in made],
                             [[i for i in row if i in passing][:k] for row in whole])
            for truth in ("made.ibin", "all.ibin"):
                told = self.run_json("eval", "x.sl", "queries.fbin", truth, "-k", 10, "--ef", 300, "--repeat", 1,
                                     *words)
                point = told["points"][0]
                self.assertEqual((told["allowed"], point["recall"], point["results"]),
                                 (len(passing), 1, k * len(ASKED)), (words, truth))
            self.assertIn(f"{len(passing)} of {N} vectors are allowed",
                          self.run_ok("eval", "x.sl", "queries.fbin", "all.ibin", "-k", 10, "--ef", 300, *words))

    def test_truth_that_does_not_fit(self):
        self.build("--tags", "tags.npy", "--keys", "keys.npy")
        of = ("truth", "base.fbin", "queries.fbin", "--metric", "l2", "-k", 10, "-o", "t.ibin")
        self.run_ok(*of)
        ask = ("eval", "x.sl", "queries.fbin", "t.ibin", "-k", 10)
        self.run_bad(1, *ask, "--none-tags", MOST, says=["none of its vectors passes"])
        self.run_bad(1, *ask, "--any-tags", 2, says=["t.ibin, row 0", "'shortlist truth' and the same masks"])
        self.run_bad(2, *ask, "--key-min", 5, "--key-max", 4, says=["--key-min is above"])
        self.run_bad(2, *of, "--tags", "tags.npy", says=["--tags goes with"])
        self.run_bad(2, *of, "--any-tags", 2, says=["--tags goes with"])
        self.run_bad(2, *of, "--key-max", 2, says=["--keys goes with"])
        self.run_bad(2, *of, "--keys", "keys.npy", "--key-min", 5, "--key-max", 4, says=["--key-min is above"])
        self.column("few.npy", [1, 2])
        self.run_bad(1, *of, "--tags", "few.npy", "--any-tags", 2, says=["few.npy", "2 tags", str(N)])
        self.build()
        self.run_bad(1, *ask, "--any-tags", 2, says=["x.sl: has no tags"])
        self.build("--tags", "tags.npy", "--multi")
        self.run_bad(1, *ask, "--any-tags", 2, says=["may have several vectors"])

    def test_a_few_of_each_key(self):
        self.column("sevenths.npy", [i % 7 for i in range(N)])
        self.build("--keys", "sevenths.npy")
        for size in (1, 3):
            for line in self.run_ok("search", "x.sl", "queries.fbin", "-k", N, "--group-size", size,
                                    "--json").splitlines():
                self.assertEqual(sorted(i % 7 for i in json.loads(line)["ids"]), sorted(size * list(range(7))))
        self.column("some.npy", [14, 28])
        self.assertEqual(self.found("--group-size", 2, "--filter", "some.npy"), [14, 28])
        told = json.loads(self.run_ok("search", "x.sl", "queries.fbin", "-k", 9, "--group-size", 1, "--json", "-o",
                                      "out.ibin"))
        self.assertEqual((told["group_size"], told["results"]), (1, 7 * len(ASKED)))

    def test_bad_input(self):
        ask = ("search", "x.sl", "queries.fbin", "-k", 5)
        self.build()
        self.assertFalse(self.run_json("info", "x.sl")["tags"])
        self.run_bad(1, *ask, "--any-tags", 1, says=["x.sl: has no tags", "--tags"])
        self.run_bad(1, *ask, "--key-min", 1, says=["x.sl: has no keys", "--keys"])
        self.run_bad(1, *ask, "--group-size", 1, says=["x.sl: has no keys", "--keys"])
        self.run_bad(2, *ask, "--group-size", 1, "--probes", 2, says=["--probes and --group-size"])
        self.run_bad(1, "add", "x.sl", "more.fbin", "--tags", "tags.npy", says=["x.sl: has no tags"])
        for mask in ("-1", "0x", "1e3", "ten", 2**64, "0x1" + 16 * "0", "1 "):
            self.run_bad(2, *ask, "--all-tags", mask, says=["--all-tags is", "2^64 - 1"])
        self.run_bad(2, *ask, "--key-min", 2, "--key-max", 1, says=["--key-min is above"])
        self.run_bad(2, *ask, "--any-tags", 1, "--probes", 2, says=["--probes and"])
        self.run_bad(1, "build", "more.fbin", "-o", "y.sl", "--metric", "l2", "--tags", "tags.npy",
                     says=["tags.npy: holds 300 tags for the 50 vectors of more.fbin"])
        self.run_bad(1, "build", "base.fbin", "-o", "keys.npy", "--metric", "l2", "--keys", "keys.npy",
                     says=["keys.npy"])
        self.run_bad(1, "build", "base.fbin", "-o", "y.sl", "--metric", "l2", "--keys", "queries.fbin",
                     says=["keys are one column"])

    def test_plan(self):
        plain = self.run_json("info", "--plan", "--dim", 8, "--n", 1000)
        told = self.run_json("info", "--plan", "--dim", 8, "--n", 1000, "--tags", "--keys")
        self.assertEqual((told["bytes_tags"], told["bytes_keys"], plain["bytes_tags"]), (8000, 8000, 0))
        self.assertGreater(told["bytes_total"], plain["bytes_total"])


if __name__ == "__main__":
    unittest.main()
