"""An index made anew in its file: as a merge makes it, in the same layout and room, or not at all."""

import fcntl
import os
import resource
import signal
import subprocess
import unittest

from harness import COMMAND, CommandTest, clustered, decode, npy
from indexed import DIM, N, Indexed

GONE = list(range(0, N, 40))  # too few to be taken out by the delete


class Rebuild:
    """An index with tags and keys, of which a few vectors are deleted."""

    built_with, layout, room = (), "arrays", 0

    def setUp(self):
        super().setUp()
        self.write("ids.npy", npy([[2 * i + 1] for i in range(N)], "u64"))
        self.write("gone.npy", npy([[2 * i + 1] for i in GONE], "u64"))
        self.write("words.npy", npy([[i] for i in range(N)], "u64"))
        self.build("--ids", "ids.npy", "--tags", "words.npy", "--keys", "words.npy", "--refine", "bf16", *self.built_with)
        self.run_ok("delete", "x.sl", "--ids", "gone.npy")

    def snapshot(self):
        """Without the superblocks, which each who opens a file with room to write it puts down anew."""
        return {name: content[:-12352] + content[-4160:] if self.room and name == "x.sl" else content
                for name, content in super().snapshot().items()}

    def found(self, index="x.sl"):
        self.run_ok("search", index, "queries.fbin", "-k", 10, "--ef", 100, "-o", "found.npy")
        return decode(self.path("found.npy"))[0]

    def test_is_a_merge_in_its_place(self):
        before = self.run_json("info", "x.sl")
        merged = self.run_json("merge", "x.sl", "-o", "merged.sl", *self.built_with, "--threads", 1)
        told = self.run_json("rebuild", "x.sl", "--threads", 1)
        want = {"index": "x.sl", "output": "x.sl", "n": N - len(GONE), "n_before": N, "deleted": 0, "refine": "bf16",
                "room": self.room, "layout": self.layout, "linked_from": "i8", "threads": 1,
                "bytes_before": before["bytes_total"], "bytes_after": told["bytes_total"]}
        self.assertEqual({key: told[key] for key in want}, want)
        self.assertLess(told["bytes_after"], told["bytes_before"])
        self.assertGreater(told["rebuild_s"], 0)
        self.assertEqual(told["hash"], merged["hash"])
        self.assertEqual(told["hash"] is None, self.room != 0)
        if not self.room:
            self.assertEqual(self.read("x.sl"), self.read("merged.sl"))
        found = self.found()
        self.assertEqual(found, self.found("merged.sl"))
        self.assertFalse({i for row in found for i in row} & {2 * i + 1 for i in GONE})
        after = self.run_json("info", "x.sl")
        for key in ("tags", "keys", "multi", "m", "ef_build", "seed"):
            self.assertEqual(after[key], before[key], key)
        for key in ("room", "record_bytes"):
            self.assertEqual(after["storage"][key], before["storage"][key], key)
        self.assertTrue(self.run_json("check", "x.sl")["ok"])

    def test_takes_changes_as_before(self):
        self.run_ok("rebuild", "x.sl")
        at = os.stat(self.path("x.sl")).st_ino
        self.vectors("more.fbin", clustered(20, DIM, 9))
        self.assertEqual(self.run_json("add", "x.sl", "more.fbin")["n"], N - len(GONE) + 20)
        self.assertEqual(os.stat(self.path("x.sl")).st_ino == at, self.room != 0)
        self.assertEqual(max(i for i in self.ids_now()), 2 * N - 1 + 20)
        self.run_bad(1, "add", "x.sl", "more.fbin", "--ids", "words.npy", says=["more.fbin"])

    def ids_now(self):
        n = self.run_json("info", "x.sl")["n"]
        self.run_ok("search", "x.sl", "more.fbin", "-k", n, "--ef", n, "-o", "all.npy")
        return {i for row in decode(self.path("all.npy"))[0] for i in row}

    def test_text_and_another_file(self):
        before = super().snapshot()["x.sl"]
        out = self.run_ok("rebuild", "x.sl", "-o", "new.sl", "--m", 8, "--max-memory", "64M")
        for says in (rf"^new\.sl: {N - len(GONE)} vectors of 12 f32, .* m 8,",
                     rf"\n{N - len(GONE)} vectors of {N} are left, ",
                     r"\nlinked from codes i8; codes, refinement, ids, tags and keys copied\n", r"copied\n$" if self.room else r"\nhash [0-9a-f]{32}\n$"):
            self.assertRegex(out, says)
        if not self.room:
            self.assertEqual(super().snapshot()["x.sl"], before)
        self.assertEqual(self.run_json("info", "new.sl")["deleted"], 0)
        self.assertEqual(self.run_json("info", "x.sl")["deleted"], len(GONE))
        self.run_ok("rebuild", "x.sl", "-o", "./x.sl", "--room", 2 * N)
        self.assertEqual(self.run_json("info", "x.sl")["storage"]["room"], 2 * N)

    def test_not_at_all(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

        for options, says in ((("--max-memory", "9K"), ["x.sl", "--max-memory"]), (("--m", 1), ["m is 1"]),
                              (("--builder", "leaves"), ["builder leaves"]), (("-o", "none/y.sl"), ["none/y.sl"]),
                              (("--room", "5e9"), ["room for"])):
            self.run_bad(1, "rebuild", "x.sl", *options, says=says)
        if os.environ.get("SANITIZER") != "thread" and not self.room:
            self.run_bad(1, "rebuild", "x.sl", says=["x.sl", "File too large"], preexec_fn=limit)
        self.run_bad(1, "rebuild", "none.sl", says=["none.sl"])
        self.run_bad(1, "rebuild", "base.fbin", says=["base.fbin"])
        self.run_bad(2, "rebuild", says=["INDEX is missing"])
        with open(self.path("x.sl"), "rb") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            self.run_bad(1, "rebuild", "x.sl", "--wait", 0, says=["x.sl", "is being written", "--wait"])
        self.run_ok("rebuild", "x.sl", "--wait", 0)


class Arrays(Rebuild, Indexed):
    pass


class Records(Rebuild, Indexed):
    built_with, layout = ("--layout", "records"), "records"


class WithRoom(Rebuild, Indexed):
    built_with, room = ("--room", 2 * N), 2 * N


class RecordsWithRoom(Rebuild, Indexed):
    built_with, layout, room = ("--layout", "records", "--room", 2 * N), "records", 2 * N


class Ended(CommandTest):
    def test_a_signal_leaves_the_old_file(self):
        self.vectors("many.fbin", clustered(12000, 48, 3))
        self.run_ok("build", "many.fbin", "-o", "x.sl", "--metric", "l2", "--builder", "leaves")
        before = self.snapshot()
        for number, status in ((signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)):
            process = subprocess.Popen([COMMAND, "rebuild", "x.sl", "--builder", "insert", "--ef-build", "3000",
                                        "--threads", "1", "--progress"], cwd=self.folder, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            self.assertRegex(process.stderr.readline(), r"rebuilding +\d+%")
            self.run_bad(1, "rebuild", "x.sl", "--wait", 0, says=["x.sl", "is being written"])
            process.send_signal(number)
            said = process.communicate(timeout=60)[1]
            self.assertEqual(process.returncode, status, said)
            if status == 1:
                self.assertEqual(said.splitlines()[-1], "shortlist rebuild: interrupted; nothing was written")
            self.assertEqual(self.snapshot(), before)
        self.run_ok("rebuild", "x.sl", "--builder", "leaves")


if __name__ == "__main__":
    unittest.main()
