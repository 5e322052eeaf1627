"""The data sets: what metric they are of, their vectors as the libraries get them, their true neighbours."""

import functools
import hashlib
import pathlib
import sys

import numpy

K = 10
BLOCK = 65536  # rows that are looked at together

# Name, or the beginning of one, and its metric.
METRICS = {"glove100": "cosine", "glove100-ip": "ip", "gloss384": "cosine", "sift128": "l2", "synth": "ip"}
TYPES = {".fbin": numpy.float32, ".u8bin": numpy.uint8, ".i8bin": numpy.int8}
FEW_ROWS, FEW_QUERIES = 64, 200  # of the index that tells what a call costs; half of the queries tune ours


def metric_of(name):
    exact = METRICS.get(name)
    begins = [key for key in METRICS if name.startswith(key + "-") or name.startswith(key + ":")]
    if exact is None and not begins:
        sys.exit(f"bench peers: the metric of the data set '{name}' is not known; add it to bench/peers/sets.py, or "
                 "give --metric")
    return exact or METRICS[max(begins, key=len)]


def find(folder, stem):
    for suffix in TYPES:
        path = folder / (stem + suffix)
        if path.exists():
            return path
    sys.exit(f"bench peers: no {stem}{'|'.join(TYPES)} in {folder}; ./dev data makes data sets")


def write_matrix(path, values):
    with open(path, "wb") as file:
        numpy.array(values.shape, numpy.uint32).tofile(file)
        numpy.ascontiguousarray(values).tofile(file)


def matrix(path, element):
    rows, dim = numpy.fromfile(path, numpy.uint32, 2)
    return numpy.memmap(path, element, "r", 8, (int(rows), int(dim)))


def read_matrix(path, element=numpy.float32):
    """A matrix in memory of its own, aligned."""
    rows, columns = numpy.fromfile(path, numpy.uint32, 2)
    return numpy.fromfile(path, element, offset=8).reshape(int(rows), int(columns))


class Data:
    """A folder of data/: queries of even numbers are for tuning, those of odd numbers are measured."""

    def __init__(self, folder, metric=None):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.resolve().name
        self.metric = metric or metric_of(self.name)
        self.base_path = find(self.folder, "base")
        self.raw = matrix(self.base_path, TYPES[self.base_path.suffix])
        self.count, self.dim = self.raw.shape
        queries = find(self.folder, "queries")
        self.raw_queries = numpy.array(matrix(queries, TYPES[queries.suffix]))
        self.truth = numpy.array(matrix(self.folder / "truth.ibin", numpy.uint32)[:, :K])

    @property
    def similarity(self):
        """"ip" or "l2": under cosine all libraries get rows and queries of length one, before the clock starts."""
        return "l2" if self.metric == "l2" else "ip"

    def prepared(self, rows):
        rows = numpy.array(rows, numpy.float32)  # in memory of its own: the file's is not aligned
        if self.metric == "cosine":
            norms = numpy.linalg.norm(rows, axis=1, keepdims=True)
            rows /= numpy.where(norms == 0, 1, norms)
        return rows

    @functools.cached_property
    def rows(self):
        return self.prepared(self.raw)

    def part(self, name):
        """(queries as the libraries get them, queries as they are, true ids) of the half "tune" or "measure"."""
        half = slice(0 if name == "tune" else 1, None, 2)
        return self.prepared(self.raw_queries[half]), self.raw_queries[half].copy(), self.truth[half]

    def queries_file(self, folder, native):
        """A file of the queries that are measured, as they are or as the libraries get them, and their true ids."""
        rows, raw, truth = self.part("measure")
        rows = raw if native else rows
        suffix = next(suffix for suffix, element in TYPES.items() if element == rows.dtype)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{'raw' if native else 'prepared'}{suffix}"
        write_matrix(path, rows)
        return path, truth

    def few(self, folder):
        """The first rows as a data set of their own, in a folder that is made."""
        folder.mkdir(parents=True, exist_ok=True)
        suffix = self.base_path.suffix
        write_matrix(folder / f"base{suffix}", self.raw[:FEW_ROWS])
        write_matrix(folder / f"queries{suffix}", self.raw_queries[:FEW_QUERIES].astype(self.raw.dtype))
        rows, queries = self.prepared(self.raw[:FEW_ROWS]), self.prepared(self.raw_queries[:FEW_QUERIES])
        far = -queries @ rows.T if self.similarity == "ip" else ((queries[:, None] - rows) ** 2).sum(axis=2)
        write_matrix(folder / "truth.ibin", far.argsort(axis=1)[:, :K].astype(numpy.uint32))
        return Data(folder, self.metric)

    def verify(self, queries=3):
        """Ends the run where the truth is of another metric, or of other rows, than the libraries will be told."""
        for at in range(queries):
            query = self.prepared(self.raw_queries[at:at + 1])[0]
            scores = numpy.empty(self.count, numpy.float32)
            for begin in range(0, self.count, BLOCK):
                rows = self.prepared(self.raw[begin:begin + BLOCK])
                scores[begin:begin + BLOCK] = (rows @ query if self.similarity == "ip"
                                               else -((rows - query) ** 2).sum(axis=1))
            best = numpy.sort(scores)[-K:]
            if not numpy.allclose(numpy.sort(scores[self.truth[at]]), best, rtol=1e-4):
                sys.exit(f"bench peers: {self.folder}/truth.ibin does not hold the nearest under {self.metric}; make "
                         "the data set again, or give --metric")

    def checksum(self):
        digest = hashlib.sha256(self.metric.encode())
        with open(self.base_path, "rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
        return digest.hexdigest()


def recall(found, truth):
    """The share of the true K that were found, ids by ids."""
    return float(numpy.mean([len(set(f[:K]) & set(t)) / K for f, t in
                             zip(numpy.asarray(found).tolist(), truth.tolist())]))
