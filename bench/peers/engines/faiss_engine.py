"""Faiss: HNSW over f32 and over 8-bit codes, and IVF with 4-bit fast-scan PQ and f32 refinement.

IVF: some 4 sqrt(n) lists and PQ of two dimensions a code are what its wiki and ann-benchmarks take; both the number of
lists and the codes' size are varied.
"""

import functools
import math

import faiss

from choose import Sweep
from sets import K

from . import base

PACKAGE = "faiss-cpu"


def variants(data):
    found = [base.Variant(f"HNSW M={m}", {"factory": f"HNSW{m}", "ef_construction": 200}, Sweep("ef", K, 16384))
             for m in (16, 32)]
    codes = "SQ8bit_direct" if data.raw.dtype.name == "uint8" else "SQ8"
    if codes == "SQ8":
        found.append(base.Variant("HNSW M=32 SQ8", {"factory": "HNSW32_SQ8", "ef_construction": 200},
                                  Sweep("ef", K, 16384)))
    for lists in (round(math.sqrt(data.count)), round(4 * math.sqrt(data.count))):
        found.append(base.Variant(f"IVF{lists} PQ{data.dim // 2}x4fs refine",
                                  {"factory": f"IVF{lists},PQ{data.dim // 2}x4fs,RFlat", "lists": lists},
                                  Sweep("nprobe", 1, lists, k_factor=(2, 4, 8, 16, 32, 64, 128, 256))))
    return found


def build(data, settings, threads, folder):
    faiss.omp_set_num_threads(threads)
    metric = faiss.METRIC_L2 if data.similarity == "l2" else faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(data.dim, settings["factory"], metric)
    if "ef_construction" in settings:
        index.hnsw.efConstruction = settings["ef_construction"]
    index.train(data.rows)
    index.add(data.rows)
    faiss.write_index(index, str(folder / "index.faiss"))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(str(folder / "index.faiss"))
        self.inverted = faiss.downcast_index(self.index.base_index) if "lists" in settings else None

    def set(self, params):
        if self.inverted is None:
            self.index.hnsw.efSearch = params["ef"]
        else:
            self.inverted.nprobe = params["nprobe"]
            self.index.k_factor = params["k_factor"]

    def batch(self, queries):
        return self.index.search(queries, K)

    def rows(self, queries):
        return [queries[at:at + 1] for at in range(len(queries))]

    def one(self):
        return functools.partial(self.index.search, k=K)

    def ids(self, answer):
        return answer[1]

    def id_row(self, answer):
        return answer[1][0]
