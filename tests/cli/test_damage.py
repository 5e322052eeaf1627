"""Damage is found and stays damage, in the files of ranking; and a file that somebody cuts short ends no command by a
signal."""

import os
import random
import struct
import subprocess
import time
import unittest

from harness import COMMAND, CommandTest, children_of, clustered
from ranking import ITEMS, REQUESTS, RankingTest, table

FLIPS = 60 if os.environ.get("SANITIZER") else 300
SECTIONS = {16: "spec", 17: "fitted features", 18: "weights of the wide part", 19: "embeddings",
            20: "weights of the deep part", 24: "directory of the columns", 25: "ids of the items",
            26: "values of the columns", 27: "texts of the columns"}
SHORTER = "became shorter while it was read"


def sections(data):
    """Gives (kind, offset, size) of each entry of the section table."""
    count, = struct.unpack_from("<I", data, 20)
    return [struct.unpack_from("<I4xQQ", data, 512 + 32 * i) for i in range(count)]


def flips(data, seed):
    """Copies with one bit changed, and the kind of the section it is in, None outside of them: half in sections."""
    source = random.Random(seed)
    parts = [part for part in sections(data) if part[2]]
    for i in range(FLIPS):
        kind, offset, size = source.choice(parts)
        at = offset + source.randrange(size) if i % 2 else source.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << source.randrange(8)
        inside = [kind for kind, offset, size in parts if offset <= at < offset + size]
        yield at, bytes(changed), inside[0] if inside else None


class Flips(RankingTest):
    def check_finds(self, name, key, at, kind):
        """Exit status 1, one line that names the file and the damaged section, and the counts as JSON."""
        done = self.start("check", name)
        self.assertEqual(done.returncode, 1, f"byte {at}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stderr.count(name), 1, done.stderr)
        # Opening holds offsets and lists to their rules, and says which it is.
        if kind and "column's" not in done.stderr:
            self.assertIn(SECTIONS[kind], done.stderr)
        return done

    def test_an_item_table(self):
        self.with_index()
        self.write("new.csv", table(["id", "title"], [[5, "new"], [7, "newer"]]))
        whole = self.read("items.sli")
        for i, (at, changed, kind) in enumerate(flips(whole, 1)):
            self.write("bad.sli", changed)
            self.check_finds("bad.sli", "items", at, kind)
            writing = (["--update", "new.csv"], ["--update", "new.csv", "-o", "other.sli"], ["-o", "other.sli"])
            self.run_bad(1, "items", "bad.sli", *writing[i % 3], says=["bad.sli"])

    def test_a_model(self):
        self.with_model()
        whole = self.read("m.slr")
        for i, (at, changed, kind) in enumerate(flips(whole, 2)):
            self.write("bad.slr", changed)
            self.check_finds("bad.slr", "model", at, kind)
            if i % 3 == 0 and (kind or at < 4096):
                self.run_bad(1, "predict", "bad.slr", "test.csv", "-o", "p.npy", says=["bad.slr"])

    def test_sound_files(self):
        self.with_index()
        self.with_model()
        told = self.run_json("check", "items.sli")
        self.assertEqual((told["items"], told["ok"], told["fault"], told["rows"], told["columns"], told["bad_ids"]),
                         ("items.sli", True, None, ITEMS, 4, 0))
        self.assertEqual((told["sections_checked"], told["bytes_checked"]), (4, len(self.read("items.sli"))))
        told = self.run_json("check", "m.slr")
        self.assertEqual((told["model"], told["ok"], told["fault"], told["features"], told["checkpoint"]),
                         ("m.slr", True, None, 5, False))
        self.assertEqual((told["sections_checked"], told["bytes_checked"]),
                         (len(sections(self.read("m.slr"))), len(self.read("m.slr"))))
        self.assertIn(f"items.sli: sound; an item table of {ITEMS} rows and 4 columns\n",
                      self.run_ok("check", "items.sli"))
        self.assertIn("m.slr: sound; a model of 5 features", self.run_ok("check", "m.slr"))
        # The first bytes say what a file is, not its name.
        os.rename(self.path("items.sli"), self.path("items.sl"))
        self.assertEqual(self.run_json("check", "items.sl")["rows"], ITEMS)

    def test_damage_as_json(self):
        self.with_index()
        data = bytearray(self.read("items.sli"))
        kind, offset, size = sections(data)[3]
        data[offset] ^= 1
        self.write("bad.sli", data)
        done = self.start("check", "bad.sli", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertIn('"ok":false', done.stdout.replace(" ", ""))
        self.assertIn(SECTIONS[kind], done.stdout)
        self.assertIn(SECTIONS[kind], done.stderr)

    def test_checkpoints(self):
        self.run_ok("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1, "--checkpoint", "s.slr")
        self.assertTrue(self.run_json("check", "s.slr")["checkpoint"])

    def test_a_damaged_checkpoint_is_not_written_anew(self):
        train = ("train", "spec.json", "clicks.csv", "-o", "m.slr", "--threads", 1, "--checkpoint", "s.slr")
        self.run_ok(*train)
        data = bytearray(self.read("s.slr"))
        _, offset, size = max(sections(data), key=lambda part: part[1])
        data[offset - 1] ^= 1
        self.write("s.slr", data)
        self.run_bad(1, *train, "--resume", says=["s.slr", "is not zero"])

    def test_refuses(self):
        self.with_index()
        self.with_model()
        for name in ("items.sli", "m.slr"):
            self.run_bad(2, "check", name, "--scrub", says=["--scrub is of an index", name])
        self.run_bad(1, "check", "none.sli", says=["none.sli", "No such file"])
        self.run_bad(1, "check", "clicks.csv", says=["clicks.csv", "not a Shortlist index, model or item table"])
        self.run_bad(1, "check", self.folder, says=["a folder"])
        for name in ("items.sli", "m.slr"):
            for size in (5, 100, 4096, len(self.read(name)) - 1):
                self.write("cut" + name, self.read(name)[:size])
                self.assertEqual(self.start("check", "cut" + name).returncode, 1)


class Shortened(CommandTest):
    """The file is cut while it is mapped: where a command waits for a pipe, or works for long."""

    def setUp(self):
        super().setUp()
        self.vectors("b.fbin", clustered(2000, 16, 1))
        self.vectors("q.fbin", clustered(64, 16, 2))
        self.run_ok("build", "b.fbin", "-o", "x.sl", "--metric", "l2")

    def run_until(self, ready, *arguments):
        process = subprocess.Popen([COMMAND, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        while not ready(process):
            self.assertIsNone(process.poll(), "it was through before the file was cut")
            time.sleep(0.001)
        return process

    def ends_with_a_line(self, process, command):
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, f"{out}{err}")
        self.assertTrue(err.startswith(f"shortlist {command}: "), err)
        self.assertIn(SHORTER, err)
        self.assertIn("--place dram", err)
        self.assertEqual(err.count("\n"), 1, err)

    def cut(self, name="x.sl"):
        os.truncate(self.path(name), 4096)

    def many_queries(self):
        """Work of minutes."""
        with open(self.path("many.fbin"), "wb") as file:
            file.write(struct.pack("<II", 4_000_000, 16))
            file.truncate(8 + 4_000_000 * 64)

    def test_search(self):
        self.many_queries()
        before = set(os.listdir(self.folder))
        process = self.run_until(lambda _: any(".tmp-" in name for name in os.listdir(self.folder)), "search", "x.sl",
                                 "many.fbin", "-k", 100, "--ef", 1000, "-o", "r.ibin", "--scores", "s.fbin",
                                 "--threads", 2)
        self.cut()
        self.ends_with_a_line(process, "search")
        self.assertEqual(set(os.listdir(self.folder)), before)

    def works_on(self, pid):
        """Tells whether a process has the file mapped, and has computed for longer than opening takes."""
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/stat") as stat:
            ticks = sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
            return self.path("x.sl") in maps.read() and ticks >= 0.3 * os.sysconf("SC_CLK_TCK")

    def test_eval(self):
        self.run_ok("truth", "b.fbin", "q.fbin", "-k", 10, "--metric", "l2", "-o", "t.ibin")
        process = self.run_until(lambda process: self.works_on(process.pid), "eval", "x.sl", "q.fbin", "t.ibin", "-k", 10,
                                 "--ef", 2000, "--repeat", 1000, "--place", "map", "--tier", "none")
        self.cut()
        self.ends_with_a_line(process, "eval")

    def test_eval_of_several_processes(self):
        self.run_ok("truth", "b.fbin", "q.fbin", "-k", 10, "--metric", "l2", "-o", "t.ibin")
        process = subprocess.Popen([COMMAND, "eval", "x.sl", "q.fbin", "t.ibin", "-k", "10", "--ef", "2000", "--procs",
                                    "2", "--pin", "0", "--repeat", "1000", "--tier", "none"], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        children = children_of(process, 2)
        while not all(self.works_on(child) for child in children):
            self.assertIsNone(process.poll(), "it was through before the file was cut")
            time.sleep(0.001)
        self.cut()
        self.ends_with_a_line(process, "eval")

    def test_check(self):
        process = self.run_until(lambda process: self.works_on(process.pid), "check", "x.sl", "--sample", 100_000_000,
                                 "--threads", 1)
        self.cut()
        out, err = process.communicate(timeout=120)
        # Reading the file against its checksums, it is told that it is damaged; later, by the line.
        self.assertEqual(process.returncode, 1, f"{out}{err}")
        self.assertEqual(err.count("\n"), 1, err)
        self.assertTrue(SHORTER in err or "shorter" in err or "damaged" in err, err)

    def test_other_signals_are_left_alone(self):
        """A SIGBUS that somebody sends is that of any program."""
        self.many_queries()
        process = self.run_until(lambda _: any(".tmp-" in name for name in os.listdir(self.folder)), "search", "x.sl",
                                 "many.fbin", "-k", 100, "--ef", 1000, "-o", "r.ibin")
        process.send_signal(7)
        self.assertEqual(process.wait(timeout=60), -7)

    def test_place_dram_is_a_status(self):
        """A file that is read, and not mapped, fails in the ordinary way: here a file cut while it waits to be read."""
        self.cut()
        self.run_bad(1, "search", "x.sl", "q.fbin", "-k", 1, "-o", "r.ibin", "--place", "dram", says=["truncated"])


class ShortenedItems(RankingTest):
    """Commands that wait for rows at a pipe when their files are mapped."""

    ends_with_a_line = Shortened.ends_with_a_line

    def cut_while_it_waits(self, name, *arguments):
        os.mkfifo(self.path("pipe.csv"))
        process = subprocess.Popen([COMMAND, *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        # Opened once the command opens it too, which is after the file was.
        with open(self.path("pipe.csv"), "wb") as pipe:
            os.truncate(self.path(name), 4096)
            pipe.write(self.rows)
        return process

    def test_items(self):
        self.with_index()
        self.rows = table(["id", "title"], [[5, "new"]])
        before = set(os.listdir(self.folder)) | {"pipe.csv"}
        process = self.cut_while_it_waits("items.sli", "items", "items.sli", "--update", "pipe.csv")
        self.ends_with_a_line(process, "items")
        self.assertEqual(set(os.listdir(self.folder)), before)

    def test_recommend(self):
        self.with_index()
        self.rows = table(REQUESTS, self.requests)
        process = self.cut_while_it_waits("x.sl", "recommend", "x.sl", "none", "none", "pipe.csv", "-n", 10)
        self.ends_with_a_line(process, "recommend")


if __name__ == "__main__":
    unittest.main()
