"""Code that the tests of the command share: running the command, and vector files made and read without it."""

import array
import ast
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["SHORTLIST"]
MAKE_HDF5 = os.environ.get("MAKE_HDF5", "")
PRELOAD = os.environ.get("PRELOAD", "")
SANITIZER = os.environ.get("SANITIZER", "")

# struct's letter and numpy's name of each element type
LETTERS = {"f32": "f", "f16": "e", "f64": "d", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I",
           "i64": "q", "u64": "Q"}
NUMPY = {"f32": "f4", "f16": "f2", "f64": "f8", "i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "i32": "i4",
         "u32": "u4", "i64": "i8", "u64": "u8"}
TYPES = {".fbin": "f32", ".u8bin": "u8", ".i8bin": "i8", ".ibin": "i32", ".fvecs": "f32", ".bvecs": "u8",
         ".ivecs": "i32"}


def packed(rows, kind, order="<"):
    return b"".join(struct.pack(f"{order}{len(row)}{LETTERS[kind]}", *row) for row in rows)


def npy(rows, kind, order="<", fortran=False, version=1, shape=None):
    """The bytes of a .npy file."""
    shape = shape or f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '{order}{NUMPY[kind]}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    wide = 2 if version == 1 else 4
    header += " " * (-(8 + wide + len(header) + 1) % 64) + "\n"
    body = [list(column) for column in zip(*rows)] if fortran else rows
    return (b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(wide, "little") + header.encode("latin1") +
            packed(body, kind, order))


def encode(rows, ending, kind=None):
    """The bytes of a vector file of this ending."""
    if ending == ".npy":
        return npy(rows, kind or "f32")
    kind = TYPES[ending]
    if ending.endswith("vecs"):
        return b"".join(struct.pack("<i", len(row)) + packed([row], kind) for row in rows)
    return struct.pack("<II", len(rows), len(rows[0])) + packed(rows, kind)


def decode(path):
    """The rows of a vector file, and its element type."""
    with open(path, "rb") as file:
        data = file.read()
    ending = os.path.splitext(path)[1]
    if ending == ".npy":
        length = struct.unpack_from("<H", data, 8)[0]
        header = ast.literal_eval(data[10:10 + length].decode("latin1"))
        assert not header["fortran_order"] and (10 + length) % 64 == 0
        kind = next(k for k, name in NUMPY.items() if name == header["descr"][1:])
        (n, dim), body = header["shape"], data[10 + length:]
    elif ending.endswith("vecs"):
        kind = TYPES[ending]
        dim = struct.unpack_from("<i", data)[0]
        pitch = 4 + dim * struct.calcsize(LETTERS[kind])
        n = len(data) // pitch
        assert len(data) % pitch == 0
        body = b"".join(data[i * pitch + 4:(i + 1) * pitch] for i in range(n))
    else:
        kind = TYPES[ending]
        n, dim = struct.unpack_from("<II", data)
        body = data[8:]
    size = struct.calcsize(LETTERS[kind])
    assert len(body) == n * dim * size, (path, len(body), n, dim)
    return [list(struct.unpack_from(f"<{dim}{LETTERS[kind]}", body, i * dim * size)) for i in range(n)], kind


def clustered(n, dim, seed, spread=0.4):
    """Vectors around a few centres, as f32 holds them."""
    source = random.Random(seed)
    centres = [[random.Random(c * 1000 + i).gauss(0, 1) for i in range(dim)] for c in range(8)]
    rows = [[x + source.gauss(0, spread) for x in source.choice(centres)] for _ in range(n)]
    return [array.array("f", row).tolist() for row in rows]


def children_of(process, count):
    """Waits until a process has this many children; their ids."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            pids = [int(pid) for pid in file.read().split()]
        if len(pids) == count:
            return pids
        time.sleep(0.01)
    raise AssertionError(f"not {count} children in a minute")


class CommandTest(unittest.TestCase):
    """A folder a test, and the command run in it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="shortlist-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def vectors(self, name, rows, kind=None):
        return self.write(name, encode(rows, os.path.splitext(name)[1], kind))

    def long_build(self, name):
        """Writes 60,000 vectors to a file of .i8bin, and gives the command that inserts them in half a minute or more."""
        source = random.Random(4)
        self.write(name, struct.pack("<II", 60000, 64) + source.randbytes(60000 * 64))
        return [COMMAND, "build", name, "-o", "x.sl", "--metric", "l2", "--ef-build", "600", "--threads", "1",
                "--builder", "insert", "--progress"]

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def start(self, *arguments, **options):
        return subprocess.run([COMMAND, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, **options)

    def run_ok(self, *arguments, **options):
        done = self.start(*arguments, **options)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        self.assertEqual(done.stderr, "", arguments)
        return done.stdout

    def run_json(self, *arguments, **options):
        """Exactly one JSON object is on stdout, in one line."""
        out = self.run_ok(*arguments, "--json", **options)
        self.assertEqual(out.count("\n"), 1, out)
        return json.loads(out)

    def run_bad(self, status, *arguments, says=(), **options):
        """Fails with this status and one line, which holds all of `says`; leaves the folder as it was."""
        before = self.snapshot()
        done = self.start(*arguments, **options)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertEqual(done.stdout, "", arguments)
        self.assertEqual(done.stderr.count("\n"), 1, f"{arguments}: {done.stderr!r}")
        self.assertTrue(done.stderr.startswith("shortlist"), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr, arguments)
        self.assertEqual(self.snapshot(), before, f"{arguments} changed the folder")
        return done.stderr

    def snapshot(self):
        return {name: self.read(name) for name in os.listdir(self.folder) if os.path.isfile(self.path(name))}
