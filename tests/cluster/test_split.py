"""`shortlist-mpi split`, and searches of its parts."""

import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

from harness import clustered, decode
from jobs import MPI_COMMAND, MPIRUN, JobTest, mount_small
from test_mounts import MOUNTS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from coded_model import file_of, sections_of  # noqa: E402

ROWS, DIM, QUERIES, K = 2400, 12, 37, 10
FACTS, PARTS, STARTS, CELLS, GROUPS, REACHES = range(44, 50)
# Fields of section SPLIT_FACTS, and where they lie.
FIELDS = {"n": ("<Q", 0), "stored": ("<Q", 8), "kind": ("<I", 16), "metric": ("<I", 20), "dtype": ("<I", 24),
          "dim": ("<I", 28), "parts": ("<I", 32), "groups": ("<I", 36), "cells": ("<I", 40), "opened": ("<I", 44),
          "gap": ("<f", 48), "reaches": ("<I", 56)}


class SplitTest(JobTest):
    def setUp(self):
        super().setUp()
        rows = clustered(ROWS + QUERIES, DIM, 1, spread=0.8)
        self.vectors("base.fbin", rows[:ROWS])
        self.vectors("queries.fbin", rows[ROWS:])
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", K, "--metric", "cosine", "-o", "truth.ibin")
        self.truth, _ = decode(self.path("truth.ibin"))

    def split(self, ranks, folder, *options):
        return self.job_json(ranks, "split", "base.fbin", "-o", folder, "--metric", "cosine", "--codes", "f32",
                             "--threads", 1, *options)

    def files(self, folder):
        return {name: self.read(os.path.join(folder, name)) for name in os.listdir(self.path(folder))}

    def recall(self, name):
        found, _ = decode(self.path(name))
        hits = sum(len(set(mine) & set(true)) for mine, true in zip(found, self.truth))
        for row in found:
            self.assertEqual(len(set(row)), len(row), "an id came twice")
        return hits / (QUERIES * K)

    def search(self, ranks, folder, *options):
        done = self.job_json(ranks, "search", folder, "queries.fbin", "-k", K, "-o", "found.ibin", *options)
        return done, self.recall("found.ibin")


class SlicesTest(SplitTest):
    def test_finds_what_all_parts_hold(self):
        made = self.split(3, "slices", "--split", "slices")
        self.assertEqual((made["parts"], made["stored"]), ([800, 800, 800], ROWS))
        results = []
        for ranks in (1, 2, 3, 4):
            done, recall = self.search(ranks, "slices", "--ef", 800, "--batch", 5)
            self.assertEqual((done["asked"], recall), (3, 1), ranks)
            results.append(self.read("found.ibin"))
        self.assertEqual(len(set(results)), 1)
        self.assertIn("800 vectors", self.run_ok("info", "slices/part-1.sl"))
        self.run_ok("check", "slices/part-2.sl")

    def test_more_parts_than_vectors(self):
        rows = clustered(3, DIM, 4)
        self.vectors("base.fbin", rows)
        self.split(3, "few", "--split", "slices", "--parts", 7)
        made = self.split(2, "few", "--split", "slices", "--parts", 4)
        # Parts of the earlier split, and of no vectors, are gone.
        held = [f"part-{part}.sl" for part, n in enumerate(made["parts"]) if n]
        self.assertEqual(sorted(self.files("few")), [*held, "routing.sls"])
        self.assertEqual(sum(made["parts"]), 3)
        self.assertIn(0, made["parts"])
        self.job_ok(3, "search", "few", "base.fbin", "-k", 3, "-o", "found.ibin")
        self.assertEqual([sorted(row) for row in decode(self.path("found.ibin"))[0]], [[0, 1, 2]] * 3)


class NeighbourhoodsTest(SplitTest):
    def test_the_same_files_at_any_number_of_ranks(self):
        made = [self.split(ranks, f"x{ranks}", "--parts", 3) for ranks in (1, 2, 3, 4)]
        for ranks in (2, 3, 4):
            self.assertEqual(self.files("x1"), self.files(f"x{ranks}"), ranks)
        self.assertEqual(made[0]["parts"], made[3]["parts"])

    def test_every_vector_is_in_one_part_or_two(self):
        made = self.split(3, "near", "--replicate", "0.2")
        self.assertEqual(sum(made["parts"]), made["stored"])
        self.assertLessEqual(made["stored"], 1.2 * ROWS)
        self.assertGreater(made["stored"], 1.1 * ROWS)
        self.assertLess(max(made["parts"]), 1.6 * ROWS / 3)
        none = self.split(3, "apart", "--replicate", "0")
        self.assertEqual((none["stored"], sum(none["parts"])), (ROWS, ROWS))

    def test_asks_few_parts_and_finds_most(self):
        self.split(4, "near")
        few, low = self.search(4, "near", "--ef", 100, "--cover", "0.8")
        many, high = self.search(4, "near", "--ef", 100, "--cover", "0.99")
        every, all_found = self.search(3, "near", "--ef", 700, "--cover", "1")
        self.assertLess(few["asked"], 1.1)
        self.assertGreater(many["asked"], 1.1)
        self.assertLess(many["asked"], 1.5)
        self.assertGreater(every["asked"], 1.5)
        self.assertLess(every["asked"], 2)
        self.assertLess(few["evaluations"], every["evaluations"])
        self.assertGreater(low, 0.7)
        self.assertGreater(high, 0.93)
        self.assertGreaterEqual(all_found, high)

    def test_batches_and_ranks_do_not_matter(self):
        self.split(3, "near")
        results = set()
        for ranks, batch in ((1, 256), (2, 1), (3, 7), (4, 100), (2, 2**64 - 1)):
            self.search(ranks, "near", "--ef", 50, "--batch", batch)
            results.add(self.read("found.ibin"))
        self.assertEqual(len(results), 1)

    def test_a_bound_spares_evaluations(self):
        made = self.split(2, "near", "--split", "neighbourhoods")
        self.split(2, "slices", "--split", "slices")
        asked = ("queries.fbin", "truth.ibin", "-k", K, "--ef", 100, "--repeat", 1)
        near = self.job_json(2, "eval", "near", *asked, "--cover", "1")
        slices = self.job_json(2, "eval", "slices", *asked)
        self.assertEqual((near["split"], near["parts"], slices["split"]), ("neighbourhoods", 2, "slices"))
        self.assertAlmostEqual(near["replication"], made["replication"])
        near, slices = near["points"][0], slices["points"][0]
        self.assertEqual(slices["asked"], 2)
        self.assertLess(near["evaluations"], 0.8 * slices["evaluations"])
        self.assertGreater(near["recall"], 0.95)
        self.assertGreater(near["messages"], 0)

    def test_names_vectors_by_ids(self):
        self.vectors("ids.npy", [[i * 7 + 5] for i in range(ROWS)], "u64")
        self.split(2, "named", "--ids", "ids.npy")
        self.job_ok(2, "search", "named", "base.fbin", "-k", 1, "--cover", "1", "-o", "self.npy")
        found = [row[0] for row in decode(self.path("self.npy"))[0]]
        self.assertGreater(sum(found[i] == i * 7 + 5 for i in range(ROWS)), 0.99 * ROWS)

    def test_l2_and_bytes(self):
        rows = [[max(0, min(255, int(128 + 40 * x))) for x in row] for row in clustered(1500, DIM, 3)]
        self.vectors("bytes.u8bin", rows[:1480])
        self.vectors("asked.u8bin", rows[1480:])
        self.job_ok(3, "split", "bytes.u8bin", "-o", "bytes", "--metric", "l2")
        self.job_ok(3, "search", "bytes", "asked.u8bin", "-k", 5, "--cover", "1", "--ef", 400, "-o", "found.ibin")
        self.run_ok("truth", "bytes.u8bin", "asked.u8bin", "-k", 5, "--metric", "l2", "-o", "true.ibin")
        found, true = decode(self.path("found.ibin"))[0], decode(self.path("true.ibin"))[0]
        self.assertGreater(sum(len(set(a) & set(b)) for a, b in zip(found, true)), 0.95 * 100)


    def test_any_number_of_cells(self):
        """2048 in all at most, and one for 8 vectors."""
        made = self.split(2, "x", "--parts", 4, "--cells", 2**62 + 1)
        self.assertEqual((made["cells"], made["largest_part"]), (ROWS // 8, max(made["parts"])))
        self.assertEqual(self.split(2, "y", "--parts", 4, "--cells", 3)["cells"], 12)

    def test_a_large_part_draws_a_warning(self):
        rows = clustered(ROWS, DIM, 7)
        self.vectors("base.fbin", [rows[i] if i % 4 == 0 else rows[0] for i in range(ROWS)])
        split = ("split", "base.fbin", "-o", "x", "--metric", "cosine", "--threads", 1)
        done = self.job(2, *split, "--parts", 4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"shortlist-mpi split: warning: part \d gets \d+ vectors, but the mean is \d+")
        self.assertIn("--cells", done.stderr)
        # Slices are even, and no part of two is twice as large as the mean.
        for options in (("--split", "slices"), ("--parts", 2)):
            self.assertNotIn("warning", self.job(2, *split, *options).stderr)


class ZeroVectorsTest(JobTest):
    """Vectors of length zero have no direction, but a place in an index under inner product."""

    def split(self, rows, *options):
        self.vectors("base.fbin", rows)
        return self.job_json(2, "split", "base.fbin", "-o", "x", "--metric", "ip", "--codes", "f32", "--threads", 1,
                             *options)

    def check(self, queries, least, ef=200):
        self.vectors("queries.fbin", queries)
        self.run_ok("truth", "base.fbin", "queries.fbin", "-k", 5, "--metric", "ip", "-o", "truth.ibin")
        self.job_ok(3, "search", "x", "queries.fbin", "-k", 5, "--ef", ef, "--cover", "1", "-o", "found.ibin")
        found, true = decode(self.path("found.ibin"))[0], decode(self.path("truth.ibin"))[0]
        self.assertGreater(sum(len(set(a) & set(b)) for a, b in zip(found, true)), least * 5 * len(queries))
        self.vectors("zero.fbin", [[0.0] * DIM])
        self.job_ok(2, "search", "x", "zero.fbin", "-k", 5, "-o", "found.ibin")
        self.assertEqual(len(set(decode(self.path("found.ibin"))[0][0])), 5)

    def test_some(self):
        rows = clustered(1020, DIM, 1, spread=0.8)
        made = self.split([[0.0] * DIM if i % 4 == 0 else row for i, row in enumerate(rows[:1000])], "--parts", 3)
        self.assertEqual(sum(made["parts"]), made["stored"])
        self.assertGreater(len(made["reaches"]), 10)
        self.check(rows[1000:], 0.95)

    def test_all_but_few(self):
        rows = [[0.0] * DIM for _ in range(400)]
        rows[7], rows[301] = clustered(2, DIM, 2)
        self.split(rows, "--parts", 2)
        self.check([rows[7], rows[301]], 0.19)

    def test_none_but_these(self):
        self.vectors("base.fbin", [[0.0] * DIM] * 100)
        self.job_bad(2, 1, "split", "base.fbin", "-o", "x", "--metric", "ip", says=("base.fbin", "zero", "slices"))
        self.assertEqual(os.listdir(self.path("x")), [])
        self.job_ok(2, "split", "base.fbin", "-o", "x", "--metric", "ip", "--split", "slices")
        self.job_ok(2, "split", "base.fbin", "-o", "y", "--metric", "l2")

    def test_opposite_vectors(self):
        """The mean of their cells is no direction either."""
        rows = [[0.0] * (DIM - 1) + [1.0 + i if i < 16 else -1.0 - i] for i in range(32)]
        self.split(rows, "--parts", 1, "--cells", 2)
        self.check([rows[0], rows[31]], 0.5, 30)

    def test_none_under_cosine(self):
        rows = clustered(100, DIM, 1)
        rows[60] = [0.0] * DIM
        self.vectors("base.fbin", rows)
        self.job_bad(2, 1, "split", "base.fbin", "-o", "x", "--metric", "cosine", says=("base.fbin", "row 60", "zero"))
        self.assertEqual(os.listdir(self.path("x")), [])


class FailureTest(JobTest):
    """Splits that end half-way."""

    N = 20000

    def setUp(self):
        super().setUp()
        source = random.Random(5)
        self.write("base.i8bin", struct.pack("<II", self.N, 32) + source.randbytes(self.N * 32))
        self.write("queries.i8bin", struct.pack("<II", 40, 32) + source.randbytes(40 * 32))

    def command(self, folder, ef_build):
        return ["split", "base.i8bin", "-o", folder, "--metric", "l2", "--parts", "4", "--threads", "1", "--ef-build",
                str(ef_build)]

    def check_whole(self):
        self.assertEqual(sorted(os.listdir(self.path("x"))), [*(f"part-{p}.sl" for p in range(4)), "routing.sls"])
        for part in range(4):
            self.run_ok("check", f"x/part-{part}.sl")
        self.job_ok(2, "search", "x", "queries.i8bin", "-k", 5, "-o", "found.ibin")

    def inode(self, name):
        try:
            return os.stat(self.path(name)).st_ino
        except FileNotFoundError:
            return 0

    def kill(self, ef_build):
        """Kills rank 1 once rank 0 has written its first part."""
        before = self.inode("x/part-0.sl")
        job, pids = self.started(2, *self.command("x", ef_build))
        while self.inode("x/part-0.sl") in (0, before):
            self.assertIsNone(job.poll(), "the split ended before it was killed")
            time.sleep(0.002)
        os.kill(pids[1], signal.SIGKILL)
        job.communicate(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        for name in os.listdir(self.path("x")):
            if name.endswith(".sl"):
                self.run_ok("check", f"x/{name}")
        return ("search", "x", "queries.i8bin", "-k", 5, "-o", "found.ibin")

    def test_a_kill(self):
        search = self.kill(600)
        self.assertNotIn("routing.sls", os.listdir(self.path("x")))
        self.job_bad(2, 1, *search, says=("routing.sls", "No such file"))
        self.job_ok(2, *self.command("x", 100))
        self.check_whole()
        # A split that was whole, half replaced by another one: its parts do not go together.
        search = self.kill(600)
        self.job_bad(2, 1, *search, says=("x/part-", "another split"))
        self.job_ok(2, *self.command("x", 600))
        self.check_whole()

    def test_a_signal_to_one_rank_ends_all(self):
        # Each rank builds two parts. The signal comes when a first one is there.
        said = self.interrupted(*self.command("x", 1500), until=lambda: self.inode("x/part-0.sl") or self.inode("x/part-2.sl"))
        self.assertIn("x holds no whole split, so give the same command again", said)
        self.job_ok(2, *self.command("x", 100))
        self.check_whole()
        self.run_ok("truth", "base.i8bin", "queries.i8bin", "-k", 5, "--metric", "l2", "-o", "truth.ibin")
        self.interrupted("eval", "x", "queries.i8bin", "truth.ibin", "-k", 5, "--ef", "50,60,70,80", "--repeat", 1000)

    # Splits into a file system that a filler leaves 2 MB of, and again without the filler.
    FULL = '''head -c 14000k /dev/zero >small/filler
        "$@" 2>said; echo $? >status; cp -r small/x left
        rm small/filler; "$@" && cp -r small/x x'''

    @unittest.skipUnless(MOUNTS, "this process may not mount")
    def test_a_full_disk(self):
        os.mkdir(self.path("small"))
        for kind in ("neighbourhoods", "slices"):
            command = [*MPIRUN, "2", MPI_COMMAND, *self.command("small/x", 40), "--split", kind]
            done = subprocess.run(["bash", "-c", self.FULL, "bash", *command], cwd=self.folder, capture_output=True,
                                  text=True, timeout=300, preexec_fn=lambda: mount_small(self.path("small"), "16m"))
            self.assertEqual((done.returncode, self.read("status")), (0, b"1\n"), done.stderr)
            line, = [line for line in self.read("said").decode().splitlines() if line.startswith("shortlist-mpi")]
            self.assertRegex(line, r"rank [01] \(.*\): .*small/x/part-\d.sl.*No space left")
            self.assertNotIn("base.i8bin", line)
            for name in os.listdir(self.path("left")):
                self.assertRegex(name, r"^part-\d.sl$")
                self.run_ok("check", f"left/{name}")
            self.job_bad(2, 1, "search", "left", "queries.i8bin", "-k", 5, "-o", "found.ibin", says=("routing.sls",))
            self.check_whole()
            shutil.rmtree(self.path("left"))
            shutil.rmtree(self.path("x"))
            os.unlink(self.path("found.ibin"))


class BadInputTest(SplitTest):
    def setUp(self):
        super().setUp()
        self.split(2, "x")
        self.asked = ("search", "x", "queries.fbin", "-k", K, "-o", "found.ibin")

    def refused(self, *says, ranks=2):
        self.job_bad(ranks, 1, *self.asked, says=says)

    def damage(self, name, change):
        data = self.read(name)
        self.write(name, change(data))
        self.refused(os.path.basename(name))
        self.write(name, data)

    def test_parts(self):
        os.rename(self.path("x/part-1.sl"), self.path("kept.sl"))
        self.refused("rank 1", "part-1.sl", "No such file")
        shutil.copy(self.path("x/part-0.sl"), self.path("x/part-1.sl"))
        self.refused("rank 1", "part-1.sl", "another split")
        os.rename(self.path("kept.sl"), self.path("x/part-1.sl"))
        self.split(2, "y", "--ef-build", 100)
        shutil.copy(self.path("y/part-0.sl"), self.path("x/part-0.sl"))
        self.refused("rank 0", "part-0.sl", "another split")

    def test_routing_file(self):
        self.damage("x/routing.sls", lambda data: data[:len(data) // 2])
        self.damage("x/routing.sls", lambda data: data[:4096 + 8] + b"\xff" + data[4096 + 9:])
        self.damage("x/routing.sls", lambda data: data[:8] + struct.pack("<I", 9) + data[12:])
        for at in range(4096, len(self.read("x/routing.sls")), 3 * 4096):
            self.damage("x/routing.sls", lambda data, at=at: data[:at + 3] + bytes([data[at + 3] ^ 1]) + data[at + 4:])
        os.remove(self.path("x/routing.sls"))
        self.refused("routing.sls", "No such file")

    def resealed(self, changes, *says, folder="x"):
        """Refuses a routing file with changed sections, whose checksums are right. changes: kind -> function of the
        bytes; None removes the section."""
        name = f"{folder}/routing.sls"
        data = self.read(name)
        sections = [(kind, flags, changes.get(kind, bytes)(content)) for kind, flags, content in sections_of(data)
                    if changes.get(kind, bytes)]
        self.write(name, file_of(data, sections))
        self.job_bad(1, 1, "search", folder, *self.asked[2:], says=says)
        self.write(name, data)

    def facts(self, *says, folder="x", **fields):
        def change(content):
            content = bytearray(content)
            for name, value in fields.items():
                struct.pack_into(FIELDS[name][0], content, FIELDS[name][1], value)
            return bytes(content)

        self.resealed({FACTS: change}, *says, folder=folder)

    def test_facts_that_do_not_fit(self):
        for field, value in (("kind", 2), ("metric", 3), ("dtype", 6)):
            self.facts("routing.sls", "kind, metric or type", **{field: value})
        for field, value in (("parts", 0), ("parts", 1025), ("dim", 0), ("dim", 65537), ("n", 0), ("stored", ROWS - 1)):
            self.facts("routing.sls", "counts do not fit", **{field: value})
        for field, value in (("cells", 0), ("cells", 2049), ("groups", 0), ("groups", 257), ("opened", 0), ("gap", -1),
                             ("gap", math.nan), ("reaches", 65), ("kind", 0)):
            self.facts("routing.sls", "cells do not fit", **{field: value})
        for field, value, section in (("parts", 3, "section 45"), ("groups", 9, "section 46"),
                                      ("cells", 200, "section 47"), ("dim", 13, "section 47"),
                                      ("reaches", 3, "section 49")):
            self.facts("routing.sls", section, **{field: value})
        for kind in (FACTS, PARTS, STARTS, CELLS, GROUPS, REACHES):
            self.resealed({kind: None}, "routing.sls", f"section {kind}")

    def put(self, kind, format, at, value, *says):
        """A number of a section has another value. at: from the end if negative."""
        def change(content):
            content = bytearray(content)
            struct.pack_into(format, content, at % len(content), value)
            return bytes(content)

        self.resealed({kind: change}, "routing.sls", *says)

    def test_cells_that_are_not_sound(self):
        for at, value in ((0, 1), (4, 2**32 - 1), (8, 0), (12, 5), (-4, 0)):  # parts' groups, then groups' cells
            self.put(STARTS, "<I", at, value, "not sound")
        for kind in (CELLS, GROUPS):
            for value in (math.nan, math.inf, 3):
                self.put(kind, "<f", 4 * DIM, value, "not sound")
            self.resealed({kind: lambda content: bytes(4 * DIM) + content[4 * DIM:]}, "routing.sls", "not sound")
        for at, format, value in ((0, "<d", 0), (0, "<d", 2), (0, "<d", math.nan), (8, "<f", math.inf),
                                  (16, "<d", 0.1)):
            self.put(REACHES, format, at, value, "reaches")

    def test_parts_of_other_vectors(self):
        """The routing file and the parts are whole, but do not describe the same vectors."""
        self.split(2, "y", "--split", "slices")
        for fields, says in (({"dim": DIM + 1}, "12 f32 elements under cosine"), ({"metric": 2}, "l2"),
                             ({"dtype": 5}, "i16")):
            self.facts("y/part-0.sl", says, folder="y", **fields)
        self.facts("x/part-0.sl", "l2", metric=2)
        self.resealed({PARTS: lambda content: bytes([content[0] ^ 1]) + content[1:]}, "x/part-0.sl", "another split")

    def test_inputs(self):
        self.vectors("wide.fbin", clustered(3, DIM + 1, 1))
        self.job_bad(2, 1, "search", "x", "wide.fbin", "-k", K, "-o", "f.ibin", says=("13", "12"))
        rows = clustered(20, DIM, 1)
        rows[17] = [0.0] * DIM
        self.vectors("zero.fbin", rows)
        self.job_bad(3, 1, "search", "x", "zero.fbin", "-k", K, "-o", "f.ibin", says=("zero.fbin", "row 17"))
        self.job_bad(2, 1, *self.asked, "--batch", 0, says=("--batch",))
        self.job_bad(2, 1, *self.asked, "--cover", 2, says=("--cover",))
        self.job_bad(2, 1, *self.asked, "--recall", "0.9", says=("--ef",))
        self.run_bad(1, "search", "x/routing.sls", "queries.fbin", "-k", 3, says=("routing file",))

    def test_output(self):
        split = ("split", "base.fbin", "--metric", "cosine", "--threads", 1)
        self.job_bad(2, 1, *split, "-o", "no/such", says=("no/such",))
        self.job_bad(2, 1, *split, "-o", "new", "--m", 0, says=("m is 0",))
        self.assertNotIn("new", os.listdir(self.folder))
        os.makedirs(self.path("z/part-1.sl"))
        self.write("z/part-1.sl/taken", b"")
        done = self.job(2, *split, "-o", "z")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 1", done.stderr)
        self.assertIn("part-1.sl", done.stderr)
        self.assertNotIn("routing.sls", os.listdir(self.path("z")))
        self.job_bad(2, 1, *split, "-o", "w", "--parts", 2000, says=("2000",))


if __name__ == "__main__":
    unittest.main()
