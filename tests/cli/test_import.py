"""Files of other libraries, as the command imports them."""

import os
import shutil
import unittest

from harness import CommandTest, decode

GOLDEN = os.path.join(os.path.dirname(__file__), os.pardir, "golden", "foreign")
HNSWLIB, FAISS = "hnswlib-0.8.0.bin", "faiss-1.15.1-hnsw-flat.faiss"
N, DIM, GONE = 240, 6, 20


def rows():
    numbers = [(i * 2654435761 >> 7) % 1000 / 500 - 1 for i in range(N * DIM)]
    return [numbers[row * DIM:(row + 1) * DIM] for row in range(N)]


class Import(CommandTest):
    def setUp(self):
        super().setUp()
        for name in os.listdir(GOLDEN):
            shutil.copy(os.path.join(GOLDEN, name), self.folder)

    def finds_itself(self, index, first):
        self.vectors("q.fbin", rows()[first:])
        self.run_ok("search", index, "q.fbin", "-k", 1, "--ef", 60, "-o", "found.ibin")
        self.assertEqual([one for one, in decode(self.path("found.ibin"))[0]], [10 * row + 5 for row in range(first, N)])
        self.assertTrue(self.run_json("check", index)["ok"])

    def test_hnswlib(self):
        told = self.run_json("import", "hnswlib", HNSWLIB, "-o", "x.sl", "--metric", "l2", "--codes", "f32", "--dim", DIM)
        want = {"n": N - GONE, "deleted": GONE, "dim": DIM, "metric": "l2", "codes": "f32", "m": 4, "ef_build": 40,
                "from": HNSWLIB, "output": "x.sl"}
        self.assertEqual({key: told[key] for key in want}, want)
        self.finds_itself("x.sl", GONE)
        text = self.run_ok("import", "hnswlib", HNSWLIB, "-o", "y.sl", "--metric", "l2", "--codes", "f32")
        self.assertIn(f"y.sl: {N - GONE} vectors of {DIM} f32, l2, codes f32", text)
        self.assertIn(f"imported from {HNSWLIB} in", text)
        self.assertIn(told["hash"], text)
        self.assertEqual(self.read("x.sl"), self.read("y.sl"))

    def test_faiss(self):
        told = self.run_json("import", "faiss", FAISS, "-o", "x.sl", "--room", 1000, "--refine", "f32", "--threads", 1)
        self.assertEqual((told["n"], told["metric"], told["codes"], told["refine"]), (N, "l2", "i8", "f32"))
        self.assertIsNone(told["hash"])
        self.finds_itself("x.sl", 0)
        self.vectors("more.fbin", [[9] * DIM])
        self.run_ok("add", "x.sl", "more.fbin")
        self.assertEqual(self.run_json("info", "x.sl")["n"], N + 1)

    def test_refuses(self):
        self.write("cut.bin", self.read(HNSWLIB)[:-7])
        self.write("text.csv", b"id,year\n1,1990\n" * 20)
        for arguments, says in (
            (("hnswlib", HNSWLIB), ["does not tell its metric"]),
            (("hnswlib", HNSWLIB, "--metric", "l2", "--dim", 7), ["24 bytes", "6 dimensions of float32"]),
            (("hnswlib", "cut.bin", "--metric", "l2"), ["cut.bin", "ends before"]),
            (("hnswlib", "text.csv", "--metric", "l2"), ["text.csv", "no index of hnswlib"]),
            (("faiss", "text.csv"), ["text.csv", "no index of Faiss"]),
            (("faiss", FAISS, "--metric", "ip"), [FAISS, "has metric l2"]),
            (("faiss", "none.faiss"), ["none.faiss", "No such file"]),
        ):
            self.run_bad(1, "import", *arguments, "-o", "x.sl", says=says)
        self.run_bad(1, "import", "hnswlib", HNSWLIB, "-o", HNSWLIB, "--metric", "l2", says=[HNSWLIB])
        self.run_bad(2, "import", "annoy", HNSWLIB, "-o", "x.sl", says=["annoy", "hnswlib or faiss"])
        self.run_bad(2, "import", "hnswlib", HNSWLIB, says=["--output"])


if __name__ == "__main__":
    unittest.main()
