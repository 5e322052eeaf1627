"""Index files: a flipped bit is found, and no command that writes makes it pass. A check leaves holes alone, and gives
no false alarm beside a writer.

DAMAGE_FLIPS says how many bits of each kind of file are flipped, one in each copy."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import unittest

from harness import COMMAND, CommandTest, clustered, npy
from test_damage import sections

FLIPS = int(os.environ.get("DAMAGE_FLIPS", "24" if os.environ.get("SANITIZER") else "60"))
N = 400
LIVE = 15
# The parts under a record's own checksum: --drop deletes a vector if one of these is damaged.
DROPPABLE = {1: "codes", 3: "ids", 7: "refine", 8: "rest", 28: "sums", 29: "records"}


class Flips:
    """Each flip in a copy of one file with deleted vectors and tuned settings."""

    dim, built_with, first_id, id_step = 8, (), 0, 1
    writing = {"add": ("add", "bad.sl", "more.fbin", "--threads", 1),
               "delete": ("delete", "bad.sl", "--ids", "gone.npy"),
               "tune": ("tune", "bad.sl", "queries.fbin", "-k", 5, "--recall", 0.8, "--threads", 1),
               "rebuild": ("rebuild", "bad.sl", "--threads", 1),
               "snapshot": ("snapshot", "bad.sl", "-o", "copy.sl")}

    def setUp(self):
        super().setUp()
        self.vectors("base.fbin", clustered(N, self.dim, 1))
        self.vectors("queries.fbin", clustered(60, self.dim, 2))
        self.vectors("more.fbin", clustered(30, self.dim, 3))
        ids = [self.first_id + self.id_step * i for i in range(N)]
        self.write("ids.npy", npy([[i] for i in ids], "u64"))
        self.write("dead.npy", npy([[i] for i in ids[:20]], "u64"))
        self.write("gone.npy", npy([[i] for i in ids[100:110]], "u64"))
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--ids", "ids.npy", *self.built_with)
        self.run_json("delete", "x.sl", "--ids", "dead.npy")
        self.run_json("tune", "x.sl", "queries.fbin", "-k", 5, "--recall", 0.9)
        self.whole = self.read("x.sl")
        self.parts = [part for part in sections(self.whole) if part[2]]
        live = [offset for kind, offset, size in self.parts if kind == LIVE]
        self.supers = range(live[0], live[0] + 8192) if live else range(0)

    def places(self):
        """A third in sections, whatever their size, a third near their ends, a third anywhere."""
        source = random.Random(len(self.whole))
        for i in range(FLIPS):
            _, offset, size = source.choice(self.parts)
            near = source.choice((offset - 1 - source.randrange(64), offset + size + source.randrange(64)))
            at = (offset + source.randrange(size), near, source.randrange(len(self.whole)))[i % 3]
            yield at, 1 << source.randrange(8)

    def section_of(self, at):
        return next((kind for kind, offset, size in self.parts if offset <= at < offset + size), None)

    def is_found(self, name):
        done = self.start("check", name, "--sample", 0, "--threads", 1)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(done.stderr.count("\n"), done.returncode, done.stderr)
        return done.returncode == 1

    def without_supers(self, data):
        """Opening a file to write it puts a superblock down."""
        return data[:self.supers.start] + data[self.supers.stop:] if self.supers else data

    def refuses_or_keeps(self, where, changed, command):
        """The command fails and leaves all as it was, or what it wrote fails the check."""
        done = self.start(*command)
        told = f"{where}, {command[0]}: {done.stderr}"
        self.assertIn(done.returncode, (0, 1), told)
        self.assertEqual(done.stderr.count("\n"), done.returncode, told)
        if done.returncode == 1:
            self.assertEqual(self.without_supers(self.read("bad.sl")), self.without_supers(changed), told)
        self.assertTrue(self.is_found("bad.sl"), told)
        if os.path.exists(self.path("copy.sl")):
            self.assertTrue(self.is_found("copy.sl"), told)

    def drops(self, where, kind):
        """Only what was dropped from passes."""
        done = self.start("check", "bad.sl", "--scrub", "--drop", "--json", "--threads", 1)
        self.assertIn(done.returncode, (0, 1), f"{where}: {done.stderr}")
        if self.is_found("bad.sl"):
            return
        self.assertEqual(done.returncode, 0, f"{where}: {done.stderr}")
        self.assertEqual(json.loads(done.stdout)["dropped"], 1, where)
        self.assertIn(kind, DROPPABLE, where)

    def test_damage_stays_damage(self):
        commands = [*self.writing] + (["drop"] if self.supers else [])
        for i, (at, bit) in enumerate(self.places()):
            changed = bytearray(self.whole)
            changed[at] ^= bit
            self.write("bad.sl", changed)
            kind = self.section_of(at)
            where = f"byte {at}, bit {bit}, section {kind}"
            # The superblocks are two, each with a checksum and a page of its own.
            if at in self.supers:
                continue
            self.assertTrue(self.is_found("bad.sl"), where)
            command = commands[i // 3 % len(commands)]
            if command == "drop":
                self.drops(where, kind)
            else:
                self.refuses_or_keeps(where, bytes(changed), self.writing[command])
            for name in ("copy.sl", "bad.sl.log"):
                if os.path.exists(self.path(name)):
                    os.remove(self.path(name))


class Arrays(Flips, CommandTest):
    built_with = ("--refine", "bf16")
    first_id, id_step = 7, 3


class Records(Flips, CommandTest):
    built_with = ("--layout", "records")


class FourBits(Flips, CommandTest):
    dim, built_with = 16, ("--codes", "i4")


class WithRoom(Flips, CommandTest):
    built_with = ("--refine", "bf16", "--room", 2 * N)


class RecordsWithRoom(Flips, CommandTest):
    dim, built_with = 128, ("--codes", "i4", "--refine", "bf16", "--layout", "records", "--room", 2 * N)


class FourBitsWithRoom(Flips, CommandTest):
    dim, built_with = 16, ("--codes", "i4", "--room", 2 * N)


class BesideAWriter(CommandTest):
    ROUNDS = 12

    def is_sound_beside_changes(self, *built_with):
        self.vectors("base.fbin", clustered(1000, 16, 1))
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--room", 20000, *built_with)
        for i in range(self.ROUNDS):
            self.vectors("more.fbin", clustered(50, 16, 10 + i))
            self.write("gone.npy", npy([[5 * i], [5 * i + 1]], "u64"))
            for command in (["add", "x.sl", "more.fbin"], ["delete", "x.sl", "--ids", "gone.npy"]):
                writer = subprocess.Popen([COMMAND, *command], cwd=self.folder, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True)
                while writer.poll() is None:
                    self.run_ok("check", "x.sl", "--sample", 0)
                self.assertEqual(writer.returncode, 0, writer.communicate()[1])
        self.run_ok("check", "x.sl")

    def test_arrays(self):
        self.is_sound_beside_changes()

    def test_records(self):
        self.is_sound_beside_changes("--layout", "records", "--codes", "i4")

    def test_an_add_leaves_nothing_out(self):
        """A small add to lists of few links: a path leads to every vector when the command ends."""
        self.vectors("base.fbin", clustered(2000, 8, 1))
        self.vectors("more.fbin", clustered(120, 8, 3))
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--room", 4000, "--m", 2, "--ef-build", 2,
                      "--threads", 1)
        self.run_ok("add", "x.sl", "more.fbin", "--threads", 1)
        told = self.run_json("check", "x.sl")
        self.assertTrue(told["ok"])
        self.assertEqual((told["unreachable"], told["no_in_link"]), (0, 0))


class Holes(CommandTest):
    """A check allocates no block and reads no hole."""

    def blocks(self, name="x.sl"):
        return os.stat(self.path(name)).st_blocks

    def setUp(self):
        super().setUp()
        # In memory where there is such a place: a look at a mapping fills a hole there.
        if os.access("/dev/shm", os.W_OK):
            self.folder = tempfile.mkdtemp(prefix="shortlist-", dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.vectors("base.fbin", clustered(500, 128, 1))
        self.vectors("more.fbin", clustered(300, 128, 2))

    def check_terabyte(self, *options):
        self.run_json("build", "base.fbin", "-o", "x.sl", "--metric", "l2", "--room", 2_500_000_000, "--refine", "bf16",
                      *options)
        size, blocks = os.stat(self.path("x.sl")).st_size, self.blocks()
        self.assertGreater(size, 1 << 40)
        self.assertLess(512 * blocks, 64 << 20)
        for scrub in ((), ("--scrub",)):
            self.run_ok("check", "x.sl", *scrub)
            self.assertEqual(self.blocks(), blocks)
        self.run_ok("add", "x.sl", "more.fbin")
        blocks = self.blocks()
        self.run_ok("check", "x.sl", "--scrub")
        self.assertEqual(self.blocks(), blocks)

    @unittest.skipIf("thread" in os.environ.get("SANITIZER", ""), "its shadow leaves no terabyte of addresses")
    def test_a_terabyte(self):
        self.check_terabyte()

    @unittest.skipIf("thread" in os.environ.get("SANITIZER", ""), "its shadow leaves no terabyte of addresses")
    def test_a_terabyte_of_records(self):
        self.check_terabyte("--layout", "records", "--codes", "i4")

    def in_full_tmpfs(self, script):
        """The script runs in a mount namespace, in which `full` is a tmpfs without a free block."""
        prefix = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
        mount = "mount -t tmpfs -o size=4m tmpfs full"
        os.mkdir(self.path("full"))
        try:
            probe = subprocess.run([*prefix, "sh", "-c", mount], cwd=self.folder, capture_output=True, check=False)
        except FileNotFoundError:
            self.skipTest("unshare is not installed")
        if probe.returncode:
            self.skipTest("no tmpfs can be mounted here")
        build = '"$1" build base.fbin -o full/x.sl --metric l2 --room 1000000 >/dev/null'
        fill = "cat /dev/zero >full/fill 2>/dev/null || true"
        return subprocess.run([*prefix, "sh", "-ec", f"{mount}; {build}; {fill}; {script}", "sh", COMMAND], cwd=self.folder,
                              capture_output=True, text=True, timeout=120, check=False)

    def test_a_full_file_system(self):
        done = self.in_full_tmpfs('stat -f -c %a full; stat -c %b full/x.sl; "$1" check full/x.sl >/dev/null; '
                                  '"$1" check full/x.sl --scrub >/dev/null; stat -c %b full/x.sl')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        free, before, after = map(int, done.stdout.split())
        self.assertEqual(free, 0)
        self.assertEqual(after, before)


if __name__ == "__main__":
    unittest.main()
