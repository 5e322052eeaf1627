"""Commands that change an index in its file: add and delete."""

import math
import os
import unittest

from harness import CommandTest, clustered, decode, npy

N, DIM, MORE = 400, 12, 100
BASE = clustered(N, DIM, 11)
ADDED = clustered(MORE, DIM, 12)
ASKED = clustered(30, DIM, 13)


def nearest(rows, query):
    """Ids of a dict of rows, nearest first under L2."""
    return sorted(rows, key=lambda i: math.dist(rows[i], query))


class Changing(CommandTest):
    built_with = ()

    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", BASE)
        self.vectors("more.fbin", ADDED)
        self.vectors("queries.fbin", ASKED)
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--codes", "f32", *self.built_with)
        self.rows = dict(enumerate(BASE))

    def ids(self, ids, name="ids.npy"):
        self.write(name, npy([[i] for i in ids], "u64"))
        return name

    def delete(self, ids):
        told = self.run_json("delete", "x.sl", "--ids", self.ids(ids))
        for i in ids:
            del self.rows[i]
        return told

    def tombstones(self, count):
        """How many of `count` deleted vectors are left. An index that is read into memory wipes them and leaves them out,
        unless they are few."""
        return count if self.built_with else 0

    def expect(self, k=10, ef=150):
        """The index holds these rows and finds no others."""
        self.run_ok("search", "x.sl", "queries.fbin", "-k", k, "--ef", ef, "-o", "found.npy")
        for found, query in zip(decode(self.path("found.npy"))[0], ASKED):
            self.assertEqual(found, nearest(self.rows, query)[:k])
        told = self.run_json("check", "x.sl")
        self.assertTrue(told["ok"])
        self.assertEqual(told["n"], len(self.rows))
        return told


class ClosedStreams(Changing):
    """Printed text never goes into the index, whichever streams are closed."""
    built_with = ("--room", 1000)

    def test_the_index_stays(self):
        for closed in ((1,), (2,), (0, 1, 2)):
            self.start("add", "x.sl", "more.fbin", "--progress", preexec_fn=lambda: [os.close(fd) for fd in closed])
            self.assertTrue(self.run_json("check", "x.sl")["ok"])


class Records(Changing):
    """Whoever replaces a file keeps its layout."""
    built_with = ("--layout", "records")

    def layout(self):
        return self.run_json("info", "x.sl")["storage"]["layout"]

    def test_the_layout_stays(self):
        self.assertEqual(self.layout(), "records")
        self.run_json("add", "x.sl", "more.fbin")
        self.assertEqual(self.layout(), "records")
        self.delete([5])
        self.assertEqual(self.layout(), "records")
        self.vectors("many.fbin", clustered(200, DIM, 14))
        self.run_json("tune", "x.sl", "many.fbin", "-k", 5, "--recall", 0.9)
        self.assertEqual(self.layout(), "records")

    def test_the_size_told_is_the_files(self):
        told = self.run_json("build", "base.fbin", "-o", "y.sl", "--metric", "l2", "--codes", "i8", "--layout", "records")
        self.assertEqual(told["bytes_total"], os.path.getsize(self.path("y.sl")))


class Delete(Changing):
    def test_deleted_are_not_found(self):
        told, left = self.delete(range(0, N, 2)), self.tombstones(N // 2)
        self.assertEqual((told["n"], told["deleted"], told["removed"]), (N // 2, left, N // 2))
        self.expect()
        told = self.delete([1, 3])
        self.assertEqual((told["n"], told["deleted"], told["removed"]), (N // 2 - 2, left + 2, 2))
        self.assertEqual(self.expect()["deleted"], left + 2)

    def test_compacts(self):
        self.delete(range(5))
        self.assertEqual(self.run_json("info", "x.sl")["deleted"], 5)
        if "--room" in self.built_with:
            told = self.run_json("compact", "x.sl")
            self.assertEqual((told["n"], told["deleted"], told["taken_out"]), (N - 5, 0, 5))
            self.assertEqual(self.run_json("info", "x.sl")["reusable"], 5)
        else:
            told = self.run_json("compact", "x.sl")
            self.assertEqual((told["n"], told["deleted"], told["taken_out"]), (N - 5, 0, 5))
            self.assertIn("0 deleted vectors taken out", self.run_ok("compact", "x.sl"))
        self.expect()

    def test_ids_of_other_files(self):
        self.vectors("gone.ibin", [[5], [7]])
        self.run_ok("delete", "x.sl", "--ids", "gone.ibin")
        del self.rows[5], self.rows[7]
        self.expect()

    def test_nearly_all(self):
        self.delete(range(12, N))
        self.expect(k=10, ef=10)
        self.delete(range(12))
        self.run_bad(1, "search", "x.sl", "queries.fbin", "-k", 1, "--ef", 10, "-o", "y.npy", says=["0 vectors"])

    def test_told(self):
        self.assertEqual(self.run_json("info", "x.sl")["deleted"], 0)
        self.assertNotIn("deleted", self.run_ok("info", "x.sl"))
        self.assertIn("3 deleted now", self.run_ok("delete", "x.sl", "--ids", self.ids([1, 2, 3])))
        self.assertEqual(self.run_json("info", "x.sl")["deleted"], 3)
        self.assertIn("3 deleted in all", self.run_ok("info", "x.sl"))

    def test_eval_and_tune(self):
        self.delete(range(0, N, 3))
        truth = [nearest(self.rows, query)[:5] for query in ASKED]
        self.vectors("truth.ibin", truth)
        told = self.run_json("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--ef", 150)
        self.assertEqual(told["points"][0]["recall"], 1)
        self.vectors("tuning.fbin", clustered(80, DIM, 14))
        told = self.run_json("tune", "x.sl", "tuning.fbin", "-k", 5, "--recall", "0.9")
        self.assertEqual(told["tuned"][0]["n"], len(self.rows))
        told = self.run_json("eval", "x.sl", "queries.fbin", "truth.ibin", "-k", 5, "--recall", "0.9")
        self.assertGreater(told["points"][0]["recall"], 0.8)

    def test_refused(self):
        """Nothing is deleted, the file is as it was."""
        self.delete([3])
        for ids, says in (([5, N + 9], "number 1: id 409 is not in the index"), ([5, 3], "id 3"),
                          ([5, 6, 5], "id 5 is given twice")):
            self.ids(ids)
            self.run_bad(1, "delete", "x.sl", "--ids", "ids.npy", says=["ids.npy", says])
        self.expect()
        self.write("ids.npy", npy([[1, 2]], "u64"))
        self.run_bad(1, "delete", "x.sl", "--ids", "ids.npy", says=["ids.npy", "one column"])
        self.run_bad(1, "delete", "x.sl", "--ids", "none.npy", says=["none.npy"])
        self.run_bad(1, "delete", "none.sl", "--ids", self.ids([1]), says=["none.sl"])
        self.run_bad(1, "delete", "base.fbin", "--ids", self.ids([1]), says=["base.fbin"])
        self.run_bad(2, "delete", "x.sl", says=["--ids"])


class Add(Changing):
    def test_ids_go_on(self):
        told = self.run_json("add", "x.sl", "more.fbin")
        self.assertEqual((told["n"], told["added"], told["replaced"], told["deleted"]), (N + MORE, MORE, 0, 0))
        self.rows.update((N + i, row) for i, row in enumerate(ADDED))
        self.expect()
        self.assertIn(f"{MORE} added", self.run_ok("add", "x.sl", "more.fbin"))

    def test_deleted_ids_again(self):
        ids = list(range(0, 3 * MORE, 3))
        self.delete(ids)
        told = self.run_json("add", "x.sl", "more.fbin", "--ids", self.ids(ids))
        self.assertEqual((told["n"], told["deleted"]), (N, self.tombstones(MORE)))
        self.rows.update(zip(ids, ADDED))
        self.expect()

    def test_replaced(self):
        """Ids that are there and ids that are not; then the same again."""
        ids = self.ids(range(N - 40, N - 40 + MORE))
        told = self.run_json("add", "x.sl", "more.fbin", "--ids", ids, "--replace")
        self.assertEqual((told["n"], told["added"], told["replaced"], told["deleted"]),
                         (N + MORE - 40, MORE, 40, self.tombstones(40)))
        self.rows.update((N - 40 + i, row) for i, row in enumerate(ADDED))
        self.expect()
        self.assertIn(f"{MORE} added", told := self.run_ok("add", "x.sl", "more.fbin", "--ids", ids, "--replace"))
        self.assertIn(f"; {MORE} replaced\n", told)
        self.expect()
        self.assertNotIn("replaced", self.run_ok("add", "x.sl", "more.fbin"))

    def test_replaces_by_ids_alone(self):
        self.run_bad(2, "add", "x.sl", "more.fbin", "--replace", says=["--replace needs --ids"])
        self.run_bad(1, "add", "x.sl", "more.fbin", "--replace", "--ids", self.ids([5] * MORE),
                     says=["more.fbin", "row 1", "id 5 is also that of row 0"])
        self.expect()

    def test_refused(self):
        self.run_bad(1, "add", "x.sl", "more.fbin", "--ids", self.ids(range(N - 1, N - 1 + MORE)),
                     says=["more.fbin", "row 0", "id 399 is already in the index"])
        self.run_bad(1, "add", "x.sl", "more.fbin", "--ids", self.ids([1000]), says=["1 ids", f"{MORE} vectors"])
        self.vectors("wide.fbin", clustered(5, DIM + 1, 1))
        self.run_bad(1, "add", "x.sl", "wide.fbin", says=["wide.fbin", "13 elements"])
        self.vectors("bytes.u8bin", [[1] * DIM])
        self.run_bad(1, "add", "x.sl", "bytes.u8bin", says=["bytes.u8bin", "u8"])
        bad = [row[:] for row in ADDED]
        bad[40][2] = math.nan
        self.vectors("bad.fbin", bad)
        self.run_bad(1, "add", "x.sl", "bad.fbin", says=["bad.fbin", "row 40"])
        self.run_bad(1, "add", "more.fbin", "more.fbin", says=["more.fbin"])
        self.run_bad(2, "add", "x.sl")
        self.expect()


class InPlace:
    """The same with an index that is changed in its file, and what only such a one can do."""

    built_with = ("--room", 2 * N + MORE)

    def snapshot(self):
        """Without the superblocks, the two pages before the last: each who opens the file to write it puts one down."""
        return {name: content[:-12352] + content[-4160:] if name.endswith(".sl") else content
                for name, content in super().snapshot().items()}

    def test_the_file_stays_the_same_one(self):
        before = os.stat(self.path("x.sl"))
        self.run_ok("add", "x.sl", "more.fbin")
        self.run_ok("delete", "x.sl", "--ids", self.ids([1]))
        self.vectors("tuning.fbin", clustered(80, DIM, 14))
        self.run_ok("tune", "x.sl", "tuning.fbin", "-k", 5, "--recall", "0.9")
        after = os.stat(self.path("x.sl"))
        self.assertEqual((before.st_ino, before.st_size), (after.st_ino, after.st_size))
        self.assertFalse(os.path.exists(self.path("x.sl.log")))
        self.assertEqual(len(self.run_json("info", "x.sl")["tuned"]), 1)


class DeleteInPlace(InPlace, Delete):
    pass


class AddInPlace(InPlace, Add):
    def test_room_ends(self):
        for _ in range(5):
            self.run_ok("add", "x.sl", "more.fbin")
        self.run_bad(1, "add", "x.sl", "more.fbin", says=["room for 900 vectors", "rebuild --room"])
        self.run_bad(1, "build", "base.fbin", "-o", "y.sl", "--metric", "l2", "--room", N - 1, says=["--room 399"])


if __name__ == "__main__":
    unittest.main()
