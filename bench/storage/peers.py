"""Adds groups of rows to another library's index and saves all of it after each: one JSON object a group."""

import json
import os
import sys
import time

import numpy

GROUP = 1000
M, EF_CONSTRUCTION = 16, 200


class Hnswlib:
    def __init__(self, dim, most, threads):
        import hnswlib
        self.index = hnswlib.Index(space="cosine", dim=dim)
        self.index.init_index(max_elements=most, M=M, ef_construction=EF_CONSTRUCTION)
        self.threads = threads

    def add(self, rows, first):
        self.index.add_items(rows, numpy.arange(first, first + len(rows)), num_threads=self.threads)

    def save(self, path):
        self.index.save_index(path)


class Usearch:
    def __init__(self, dim, most, threads):
        from usearch.index import Index
        self.index = Index(ndim=dim, metric="cos", dtype="f32", connectivity=M, expansion_add=EF_CONSTRUCTION)
        self.threads = threads

    def add(self, rows, first):
        self.index.add(numpy.arange(first, first + len(rows), dtype=numpy.uint64), rows, threads=self.threads)

    def save(self, path):
        self.index.save(path)


LIBRARIES = {"hnswlib": Hnswlib, "usearch": Usearch}


def save_durably(index, path):
    """As a service would that must not lose what it acknowledged: a new file, synced, in the place of the old one."""
    index.save(path + ".new")
    with open(path + ".new", "rb") as file:
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)


def main():
    name, base, path = sys.argv[1:4]
    first, groups, threads = map(int, sys.argv[4:7])
    dim = int(numpy.fromfile(base, dtype=numpy.uint32, count=2)[1])
    rows = numpy.fromfile(base, dtype=numpy.float32, offset=8, count=(first + groups * GROUP) * dim).reshape(-1, dim)
    index = LIBRARIES[name](dim, len(rows), threads)
    index.add(rows[:first], 0)
    for at in range(first, len(rows), GROUP):
        start = time.perf_counter()
        index.add(rows[at:at + GROUP], at)
        added = time.perf_counter()
        save_durably(index, path)
        saved = time.perf_counter()
        print(json.dumps({"event": "group", "rows": GROUP, "add_s": added - start, "durable_s": saved - added}))


if __name__ == "__main__":
    main()
