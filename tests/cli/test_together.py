"""Commands that change one file at once: each that ends well has changed it, and none has undone another.

TOGETHER_ROUNDS says how often; TOGETHER_AT_ONCE how many commands at once."""

import fcntl
import os
import random
import subprocess
import unittest

from harness import COMMAND, CommandTest, clustered, decode, npy

ROUNDS = int(os.environ.get("TOGETHER_ROUNDS", "3"))
AT_ONCE = [int(n) for n in os.environ.get("TOGETHER_AT_ONCE", "2,5").split(",")]
N, DIM, MORE = 300, 8, 20
BASE = clustered(N, DIM, 21)


class Together(CommandTest):
    built_with = ()

    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.vectors("base.fbin", BASE)
        self.vectors("queries.fbin", clustered(60, DIM, 22))
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", *self.built_with)
        self.expected = set(range(N))
        self.next_id = N

    def add(self, number):
        ids = list(range(self.next_id, self.next_id + MORE))
        self.next_id += MORE
        self.vectors(f"more{number}.fbin", clustered(MORE, DIM, self.next_id))
        self.write(f"more{number}.npy", npy([[i] for i in ids], "u64"))
        return ["add", "x.sl", f"more{number}.fbin", "--ids", f"more{number}.npy"], lambda: self.expected.update(ids)

    def delete(self, number):
        free = sorted(self.expected - self.going)
        ids = self.random.sample(free, 5)
        self.going.update(ids)
        self.write(f"gone{number}.npy", npy([[i] for i in ids], "u64"))
        return ["delete", "x.sl", "--ids", f"gone{number}.npy"], lambda: self.expected.difference_update(ids)

    def tune(self, _):
        return ["tune", "x.sl", "queries.fbin", "-k", "5", "--recall", "0.9"], lambda: None

    def rebuild(self, _):
        return ["rebuild", "x.sl"], lambda: None

    def run_together(self, at_once):
        self.going = set()
        makers = [self.add, self.delete, self.rebuild, self.add, self.tune]
        jobs = [makers[i % len(makers)](i) for i in range(at_once)]
        self.random.shuffle(jobs)
        running = [subprocess.Popen([COMMAND, *args], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for args, _ in jobs]
        for process, (args, done) in zip(running, jobs):
            _, told = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, (args, told))
            done()

    def test_nothing_acknowledged_is_undone(self):
        for at_once in AT_ONCE:
            for _ in range(ROUNDS):
                self.run_together(at_once)
                self.assertEqual(self.held_ids(), self.expected)
                self.assertTrue(self.run_json("check", "x.sl", "--sample", 0)["ok"])
        self.assertEqual([name for name in os.listdir(self.folder) if ".tmp." in name], [])

    def held_ids(self):
        """All ids of the index: a search for as many as there are."""
        n = self.run_json("info", "x.sl")["n"]
        self.vectors("one.fbin", BASE[:1])
        self.run_ok("search", "x.sl", "one.fbin", "-k", n, "--ef", n, "-o", "all.npy")
        return set(decode(self.path("all.npy"))[0][0])

    def test_who_does_not_wait_is_told(self):
        self.write("gone.npy", npy([[1]], "u64"))
        with open(self.path("x.sl"), "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.run_bad(1, "delete", "x.sl", "--ids", "gone.npy", "--wait", "0", says=["x.sl", "is being written"])
        self.run_json("delete", "x.sl", "--ids", "gone.npy", "--wait", "0")


class ItemsTogether(CommandTest):
    """Updates of an item table: rows of every one of them are there."""

    def table(self, name, ids, colour):
        return self.write(name, "".join(["id,colour\n"] + [f"{i},{colour}\n" for i in ids]).encode())

    def update(self, number, first):
        self.table(f"new{number}.csv", range(first, first + MORE), f"c{number}")
        return subprocess.Popen([COMMAND, "items", "x.sli", "--update", f"new{number}.csv"], cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_no_update_is_undone(self):
        self.table("first.csv", range(N), "red")
        self.run_ok("items", "first.csv", "-o", "x.sli")
        expected = N
        for at_once in AT_ONCE:
            for _ in range(ROUNDS):
                running = [self.update(i, expected + i * MORE) for i in range(at_once)]
                for process in running:
                    _, told = process.communicate(timeout=120)
                    self.assertEqual(process.returncode, 0, told)
                expected += at_once * MORE
                self.assertEqual(self.run_json("check", "x.sli")["rows"], expected)
        with open(self.path("x.sli"), "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.run_bad(1, "items", "x.sli", "--update", "new0.csv", "--wait", "0", says=["x.sli", "is being written"])


class TogetherWithRoom(Together):
    built_with = ("--room", "100000")


class TogetherInRecords(Together):
    built_with = ("--layout", "records")


if __name__ == "__main__":
    unittest.main()
