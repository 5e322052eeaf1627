"""usearch over bf16, the type of its documentation's first example. An add takes the slot of a removed vector."""

import functools

from usearch.index import Index

from . import base

PACKAGE = "usearch"
EXPANSION_ADD, DTYPE = 200, "bf16"


class Living(base.Living):
    bytes_are = "serialized_length, of a saved file; memory_usage counts blocks of 16 MiB"
    deletes_are = "remove(), which marks; an add uses the slot again"

    def __init__(self, shape):
        self.shape = shape
        self.index = Index(ndim=shape.dim, metric={"l2": "l2sq", "ip": "ip"}[shape.similarity], dtype=DTYPE,
                           connectivity=shape.m, expansion_add=EXPANSION_ADD)

    def add(self, ids, rows, threads=1):
        self.index.add(ids, rows, threads=threads)

    def delete(self, ids):
        self.index.remove(ids, threads=1)

    def set(self, depth):
        self.index.expansion_search = depth

    def one(self):
        return functools.partial(self.index.search, count=base.K, threads=1)

    def ids(self, answer):
        return answer.keys

    def bytes(self):
        return self.index.serialized_length

    def settings(self):
        return {"connectivity": self.shape.m, "expansion_add": EXPANSION_ADD, "dtype": DTYPE}
