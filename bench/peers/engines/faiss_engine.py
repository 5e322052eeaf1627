"""Faiss: HNSW over f32 and over 8-bit codes, and IVF with fast-scan codes and f32 refinement.

IVF takes some 4 sqrt(n) lists and PQ of two dimensions a code, as its wiki and ann-benchmarks do. The number of lists
and the codes' size are varied. RaBitQ takes the fast scan of 1 bit and of 4 bits a dimension. The caller makes the
rotation before RaBitQ ("RR"; facebookresearch/faiss pull requests 4235, 4596 and 4722).
"""

import functools
import math

import faiss

from choose import Sweep
from sets import K

from . import base

PACKAGE = "faiss-cpu"
NATIVE = "faiss-cpu holds no C++ headers"
REFINE = (2, 4, 8, 16, 32, 64, 128, 256)


def graphs(data):
    direct = data.raw.dtype.name == "uint8"
    # Walks over SQ8 take twice the time of those over f32 or more, so that one number of links shows enough.
    for m, codes in ((16, ""), (32, ""), (16, "SQ8")):
        if codes and direct:
            continue  # bytes are what these codes would hold
        yield base.Variant(f"HNSW M={m}{' ' + codes if codes else ''}",
                           {"factory": f"HNSW{m}{'_' + codes if codes else ''}", "ef_construction": 200},
                           Sweep("ef", K, 16384))


def inverted(data):
    few, many = round(math.sqrt(data.count)), round(4 * math.sqrt(data.count))
    pq = f"PQ{data.dim // 2}x4fs"
    for lists, codes, before in ((few, pq, ""), (many, pq, ""), (few, "RaBitQfs", "RR,"), (many, "RaBitQfs", "RR,"),
                                 (few, "RaBitQfs4", "RR,")):
        settings = {"factory": f"{before}IVF{lists},{codes},RFlat", "lists": lists}
        yield base.Variant(f"IVF{lists} {codes} refine", settings,
                           Sweep("nprobe", 1, lists, k_factor=REFINE))


def variants(data):
    return [*graphs(data), *inverted(data)]


def build(data, settings, threads, folder):
    faiss.omp_set_num_threads(threads)
    metric = faiss.METRIC_L2 if data.similarity == "l2" else faiss.METRIC_INNER_PRODUCT
    try:
        index = faiss.index_factory(data.dim, settings["factory"], metric)
    except RuntimeError as problem:
        raise base.Skip(f"not in this version: {str(problem).strip().splitlines()[-1]}") from problem
    if "ef_construction" in settings:
        index.hnsw.efConstruction = settings["ef_construction"]
    index.train(data.rows)
    index.add(data.rows)
    faiss.write_index(index, str(folder / "index.faiss"))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(str(folder / "index.faiss"))
        self.inverted = faiss.extract_index_ivf(self.index.base_index) if "lists" in settings else None

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
