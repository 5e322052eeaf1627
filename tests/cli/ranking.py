"""Data that the tests of ranking share: clicks, items and requests with a taste behind them, and files of them."""

import csv
import io
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time

from harness import COMMAND, CommandTest, clustered, encode, npy

JOBS = ["nurse", "smith", "clerk", "baker"]
GENRES = ["drama", "comedy", "horror", "crime"]
ITEMS, DIM = 240, 6
VECTORS = clustered(ITEMS, DIM, 1)
IDS = [3 * i + 5 for i in range(ITEMS)]

SPEC = {
    "label": {"column": "liked"},
    "features": [
        {"name": "age", "type": "numeric"},
        {"name": "job", "type": "categorical", "dim": 4},
        {"name": "genres", "type": "multi", "dim": 4, "side": "item"},
        {"name": "price", "type": "numeric", "side": "item"},
        {"name": "taste", "type": "cross", "of": ["job", "genres"], "hash": 200},
    ],
    "deep": {"hidden": [16, 8]},
    "train": {"epochs": 4, "batch": 32, "seed": 3},
}


def cpu():
    return json.loads(subprocess.run([COMMAND, "cpu", "--json"], capture_output=True, text=True, check=True).stdout)


def can_rank():
    """A build without cJSON and xxHash knows the commands, but has nothing behind them."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.csv"), "w") as file:
            file.write("id\n1\n")
        done = subprocess.run([COMMAND, "items", "a.csv", "-o", "a.sli"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 or "cannot rank" in done.stderr, done.stderr
        return done.returncode == 0


RANKS = can_rank()
DEEP = RANKS and cpu()["onednn"]
if not DEEP:
    SPEC["deep"] = None  # a build without oneDNN trains the wide part alone


def table(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def item_rows():
    """id, title, genres, price; titles need quoting."""
    source = random.Random(7)
    return [[IDS[i], f'The "{i}", again', "|".join(sorted(source.sample(GENRES, 1 + i % 2))),
             round(source.random() * 9, 2)] for i in range(ITEMS)]


ITEM_ROWS = item_rows()


def likes(job, genres):
    return GENRES[JOBS.index(job)] in genres.split("|")


def click_rows(n, seed):
    source = random.Random(seed)
    rows = []
    for _ in range(n):
        item = source.choice(ITEM_ROWS)
        job, age = source.choice(JOBS), source.randint(18, 80)
        chance = 0.85 if likes(job, item[2]) else 0.2
        rows.append([source.randint(1, 30), age, job, item[2], item[3], int(source.random() < chance)])
    return rows


CLICKS = ["user", "age", "job", "genres", "price", "liked"]


def request_rows(n, seed):
    """age, job, vector, exclude, relevant: what is relevant is near, and of the user's taste."""
    source = random.Random(seed)
    rows = []
    for _ in range(n):
        vector = [x + source.gauss(0, 0.1) for x in source.choice(VECTORS)]
        job = source.choice(JOBS)
        near = sorted(range(ITEMS), key=lambda i: sum((a - b) ** 2 for a, b in zip(vector, VECTORS[i])))[:40]
        relevant = [IDS[i] for i in near if likes(job, ITEM_ROWS[i][2])]
        rows.append([source.randint(18, 80), job, " ".join(f"{x:.6g}" for x in vector), "",
                     "|".join(map(str, relevant))])
    return rows


REQUESTS = ["age", "job", "vector", "exclude", "relevant"]


class RankingTest(CommandTest):
    """The model, the index and the item table are made once for all tests."""

    made = {}

    @classmethod
    def make(cls, name, *arguments):
        """The bytes of what a command writes to `name` in a folder of its own."""
        if name not in cls.made:
            with tempfile.TemporaryDirectory() as folder:
                for source, data in cls.sources().items():
                    with open(os.path.join(folder, source), "wb") as file:
                        file.write(data)
                done = subprocess.run([COMMAND, *arguments, "-o", name], cwd=folder, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                with open(os.path.join(folder, name), "rb") as file:
                    cls.made[name] = file.read()
        return cls.made[name]

    @staticmethod
    def sources():
        return {"spec.json": json.dumps(SPEC).encode(), "clicks.csv": table(CLICKS, click_rows(3000, 1)),
                "items.csv": table(["id", "title", "genres", "price"], ITEM_ROWS),
                "base.fbin": encode(VECTORS, ".fbin"), "ids.npy": npy([[i] for i in IDS], "u64")}

    def setUp(self):
        super().setUp()
        if not RANKS:
            self.skipTest("this build cannot rank")
        for name, data in self.sources().items():
            self.write(name, data)
        self.write("test.csv", table(CLICKS, click_rows(700, 2)))

    def with_model(self):
        self.write("m.slr", self.make("m.slr", "train", "spec.json", "clicks.csv", "--threads", "1"))

    def with_index(self, seed=5, count=60):
        self.write("x.sl", self.make("x.sl", "build", "base.fbin", "--metric", "l2", "--ids", "ids.npy", "--codes",
                                     "f32"))
        self.write("items.sli", self.make("items.sli", "items", "items.csv"))
        self.requests = request_rows(count, seed)
        self.write("requests.csv", table(REQUESTS, self.requests))

    def spec(self, **changes):
        self.write("spec.json", json.dumps({**SPEC, **changes}).encode())

    def lines(self, name):
        return list(csv.reader(io.StringIO(self.read(name).decode())))

    def interrupt_writing(self, *arguments):
        """Sends SIGINT once an output is being written; what was said. The folder is as it was."""
        before = self.snapshot()
        process = subprocess.Popen([COMMAND, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while not any(".tmp-" in name for name in os.listdir(self.folder)):
            self.assertIsNone(process.poll(), "it was through before the signal")
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (-signal.SIGINT, ""), err)
        self.assertEqual(self.snapshot(), before)
        return err


def limit_files():
    """In the child: a limit on file sizes stands for a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
