"""Sets that a benchmark makes for itself, under cosine: evenly drawn rows of one of ./dev data, or synthetic ones."""

import pathlib
import struct
import subprocess
import sys

K = 10
QUERIES = 1000


def call(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: this failed: {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def drawn(count, rows):
    """Numbers of `rows` of `count` rows, evenly spread; all for 0 or too many."""
    rows = count if rows == 0 else min(rows, count)
    return [number * count // rows for number in range(rows)]


def copy_rows(source, target, rows):
    """Copies evenly drawn rows of a .fbin file."""
    with open(source, "rb") as base, open(target, "wb") as out:
        count, dim = struct.unpack("<II", base.read(8))
        numbers = drawn(count, rows)
        out.write(struct.pack("<II", len(numbers), dim))
        for number in numbers:
            base.seek(8 + number * dim * 4)
            out.write(base.read(dim * 4))


def synthetic(build, folder, rows, dim):
    for part, count in (("base", rows), ("queries", QUERIES)):
        call([build / "tools/synth", count, dim, 1, part, folder / f"{part}.fbin"])


def make(build, data, folder, name, rows, dim=100):
    """A folder with base.fbin, queries.fbin and truth.ibin; made once."""
    kind = f"{name}-{dim}" if name == "synth" else name
    folder = pathlib.Path(folder) / f"{kind}-{rows or 'all'}"
    if (folder / "truth.ibin").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if name == "synth":
        synthetic(build, folder, rows, dim)
    else:
        copy_rows(data / name / "base.fbin", folder / "base.fbin", rows)
        copy_rows(data / name / "queries.fbin", folder / "queries.fbin", QUERIES)
    call([build / "shortlist", "truth", folder / "base.fbin", folder / "queries.fbin", "-k", K, "--metric", "cosine",
          "-o", folder / "truth.new.ibin"])
    (folder / "truth.new.ibin").rename(folder / "truth.ibin")
    return folder
