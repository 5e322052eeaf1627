"""DiskANN by diskannpy's DynamicMemoryIndex. Deletes are lazy until consolidate_delete.

A degree of 2 m is that of HNSW's layer 0. Under cosine the index takes the metric "cosine": with "l2" over the same
rows of length one, recall ends at 0.92 on glove100. The index has room for vectors that are not consolidated yet.
"""

import functools

import diskannpy
import numpy

from . import base

PACKAGE = "diskannpy"
COMPLEXITY = 200
DUE = 0.1  # share of the room that is deleted before a consolidation
SCRATCH = 1024  # the deepest search that needs no new memory


class Living(base.Living):
    depth = "complexity"
    least = base.K
    deletes_are = "mark_deleted; consolidate_delete() once a tenth of the room is deleted"

    def __init__(self, shape):
        self.shape, self.waiting = shape, 0
        self.due = max(1, int(DUE * shape.room))
        self.index = diskannpy.DynamicMemoryIndex(
            {"cosine": "cosine", "ip": "mips", "l2": "l2"}[shape.metric], numpy.float32, shape.dim,
            shape.room + self.due, complexity=COMPLEXITY, graph_degree=2 * shape.m, num_threads=1,
            initial_search_complexity=SCRATCH, search_threads=1)

    def add(self, ids, rows, threads=1):
        self.index.batch_insert(rows, (ids + 1).astype(numpy.uint32), threads)  # it takes no id 0

    def delete(self, ids):
        for id_ in (ids + 1).tolist():
            self.index.mark_deleted(id_)
        self.waiting += len(ids)

    def replace(self, ids, rows):
        self.delete(ids)
        self.tidy()
        self.add(ids, rows)

    def tidy(self):
        if self.waiting >= self.due:
            self.index.consolidate_delete()
            self.waiting = 0

    def set(self, depth):
        self.complexity = depth

    def one(self):
        return functools.partial(self.index.search, k_neighbors=base.K, complexity=self.complexity)

    def ids(self, answer):
        return answer.identifiers.astype(numpy.int64) - 1

    def settings(self):
        return {"graph_degree": 2 * self.shape.m, "complexity": COMPLEXITY, "alpha": 1.2}
