"""Ids of several vectors: build and add take them, a search finds different ids, delete takes all of one, info tells."""

import json
import math
import os
import resource
import unittest

from harness import CommandTest, clustered, npy

N, DIM, MORE, IDS = 300, 8, 60, 50
BASE = clustered(N, DIM, 1)
ADDED = clustered(MORE, DIM, 2)
ASKED = clustered(4, DIM, 3)


class Multi(CommandTest):
    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", BASE)
        self.vectors("more.fbin", ADDED)
        self.vectors("queries.fbin", ASKED)
        self.ids = [7 * (i % IDS) for i in range(N)]
        self.more = [7 * (i % (IDS + 5)) for i in range(MORE)]
        self.column("ids.npy", self.ids)
        self.column("more.npy", self.more)

    def column(self, name, words):
        self.write(name, npy([[word] for word in words], "u64"))

    def build(self, *options):
        return self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--ids", "ids.npy", *options)

    def expect(self, rows):
        """rows: pairs of an id and a vector, all that the index has."""
        left = {id for id, _ in rows}
        k = len(left) + 3
        for query, line in zip(ASKED, self.run_ok("search", "x.sl", "queries.fbin", "-k", k, "--json").splitlines()):
            told = json.loads(line)
            self.assertEqual(sorted(told["ids"]), sorted(left))
            for id, score in zip(told["ids"], told["scores"]):
                best = min(sum((a - b) ** 2 for a, b in zip(query, row)) for i, row in rows if i == id)
                self.assertAlmostEqual(score, best, delta=0.02 * (1 + best))

    def test_in_any_file(self):
        for options in ((), ("--room", 500), ("--layout", "records")):
            self.build("--multi", *options)
            rows = list(zip(self.ids, BASE))
            self.expect(rows)
            self.assertTrue(self.run_json("info", "x.sl")["multi"])
            self.assertIn("several vectors", self.run_ok("info", "x.sl"))
            self.run_json("add", "x.sl", "more.fbin", "--ids", "more.npy")
            rows += zip(self.more, ADDED)
            self.expect(rows)
            self.column("gone.npy", [0, 7])
            self.run_json("delete", "x.sl", "--ids", "gone.npy")
            rows = [row for row in rows if row[0] > 7]
            self.expect(rows)
            told = self.run_json("add", "x.sl", "more.fbin", "--ids", "more.npy", "--replace")
            self.assertEqual(told["replaced"], sum(i in self.more for i, _ in rows))
            rows = [row for row in rows if row[0] not in self.more] + list(zip(self.more, ADDED))
            self.expect(rows)
            id, old = rows[-1]
            self.vectors("one.fbin", [[value + 0.01 for value in old]])
            self.column("one.npy", [id])
            told = self.run_json("add", "x.sl", "one.fbin", "--ids", "one.npy", "--replace-one")
            self.assertEqual((told["replaced"], told["n"]), (1, len(rows)))
            self.expect([*rows[:-1], (id, [value + 0.01 for value in old])])
            self.assertTrue(self.run_json("check", "x.sl")["ok"])

    @unittest.skipIf(os.environ.get("SANITIZER") == "thread", "the sanitizer's runtime itself dies of the limit")
    def test_disk_full(self):
        """A limit on file sizes stands for a full disk: the index stays as it was, with its words."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        rows = list(zip(self.ids, BASE))
        self.column("gone.npy", [0, 7])
        words = ("--tags", "ids.npy", "--keys", "ids.npy")
        for options in ((), ("--room", 500), ("--layout", "records")):
            self.build("--multi", *words, *options)
            for command in (("delete", "x.sl", "--ids", "gone.npy"), ("add", "x.sl", "more.fbin", "--ids", "more.npy")):
                done = self.start(*command, preexec_fn=limit)
                self.assertEqual(done.returncode, 1)
                self.assertIn("File too large", done.stderr)
                self.expect(rows)
                line = self.run_ok("search", "x.sl", "queries.fbin", "-k", N, "--key-min", 70, "--json").splitlines()[0]
                self.assertEqual(sorted(json.loads(line)["ids"]), sorted(set(id for id in self.ids if id >= 70)))
                self.assertTrue(self.run_json("check", "x.sl")["ok"])
                self.assertEqual([name for name in os.listdir(self.folder) if ".tmp" in name], [])

    def test_recall(self):
        self.build("--multi")
        truth = []
        for query in ASKED:
            best = {}
            for id, row in zip(self.ids, BASE):
                best[id] = min(best.get(id, math.inf), sum((a - b) ** 2 for a, b in zip(query, row)))
            truth.append(sorted(best, key=best.get)[:5])
        self.vectors("truth.ibin", truth)
        asked = ("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--ef", 200)
        self.assertGreaterEqual(self.run_json(*asked, "--repeat", 1)["points"][0]["recall"], 0.9)
        truth[2][1] = 1
        self.vectors("truth.ibin", truth)
        self.run_bad(1, *asked, says=["truth.ibin, row 2: id 1 is not in x.sl"])

    def test_one_vector_an_id(self):
        self.run_bad(1, 
            "build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--ids", "ids.npy", says=["ids must differ"])
        self.column("ids.npy", range(N))
        self.build()
        self.assertFalse(self.run_json("info", "x.sl")["multi"])
        self.run_bad(1, "add", "x.sl", "more.fbin", "--ids", "more.npy", says=["already in the index"])


if __name__ == "__main__":
    unittest.main()
