"""hnswlib: M 16 and 32. ef_construction is 200 as in its own examples, and 500 as ann-benchmarks sets it."""

import functools

import hnswlib

from choose import Sweep
from sets import K

from . import base

PACKAGE = "hnswlib"
NATIVE = base.Native("native_hnswlib", "index.bin", base.param("ef"))


def variants(data):
    return [base.Variant(f"M={m}{'' if ef == 200 else f' efc={ef}'}", {"m": m, "ef_construction": ef},
                         Sweep("ef", K, 16384)) for ef in (200, 500) for m in (16, 32)]


def build(data, settings, threads, folder):
    index = hnswlib.Index(data.similarity, data.dim)
    index.init_index(data.count, ef_construction=settings["ef_construction"], M=settings["m"])
    index.add_items(data.rows, num_threads=threads)
    index.save_index(str(folder / "index.bin"))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        self.index = hnswlib.Index(data.similarity, data.dim)
        self.index.load_index(str(folder / "index.bin"))
        self.index.set_num_threads(1)

    def set(self, params):
        self.index.set_ef(params["ef"])

    def batch(self, queries):
        return self.index.knn_query(queries, k=K, num_threads=1)

    def one(self):
        return functools.partial(self.index.knn_query, k=K, num_threads=1)
