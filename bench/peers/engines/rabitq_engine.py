"""rabitqlib: SymphonyQG of degree 32 (raw and 8-bit rows) and 64, RaBitQ codes in HNSW and in IVF, as documented."""

import functools
import math

import rabitqlib

from choose import Sweep
from sets import K

from . import base

PACKAGE = "rabitqlib"
NATIVE = base.Native("native_rabitq", "index.rabitq", base.param("ef"), {"kind": ("qg",)})


def variants(data):
    lists = round(4 * math.sqrt(data.count))
    return [
        base.Variant("SymphonyQG R=32", {"kind": "qg", "degree": 32, "bits": 0, "ef_construction": 200},
                     Sweep("ef", K, 16384)),
        base.Variant("SymphonyQG R=32 8-bit", {"kind": "qg", "degree": 32, "bits": 8, "ef_construction": 200},
                     Sweep("ef", K, 16384)),
        base.Variant("SymphonyQG R=64", {"kind": "qg", "degree": 64, "bits": 0, "ef_construction": 200},
                     Sweep("ef", K, 16384)),
        base.Variant("HNSW RaBitQ 7-bit M=16", {"kind": "hnsw", "m": 16, "bits": 7, "ef_construction": 200,
                                                "centroids": 16}, Sweep("ef", K, 16384)),
        base.Variant(f"IVF{lists} RaBitQ 7-bit", {"kind": "ivf", "bits": 7, "lists": lists}, Sweep("nprobe", 1, lists)),
    ]


def clusters(data, count, threads):
    found = rabitqlib.RaBitQKMeans(data.dim, count, num_threads=threads,
                                   final_assignment=rabitqlib.FinalAssignmentMode.Exact)
    found.train(data.rows)
    return found.centroids, found.assignments


def build(data, settings, threads, folder):
    if settings["kind"] == "qg":
        index = rabitqlib.SymqgIndex(data.dim, settings["degree"], data.similarity, settings["bits"])
        index.build(data.rows, settings["ef_construction"], threads)
    elif settings["kind"] == "hnsw":
        index = rabitqlib.HnswIndex(data.dim, data.count, M=settings["m"], ef_construction=settings["ef_construction"],
                                    nbits=settings["bits"], metric=data.similarity)
        index.build(data.rows, *clusters(data, settings["centroids"], threads), num_threads=threads)
    else:
        index = rabitqlib.IvfIndex(data.dim, data.count, settings["lists"], settings["bits"], data.similarity)
        index.build(data.rows, *clusters(data, settings["lists"], threads), num_threads=threads)
    index.save(str(folder / "index.rabitq"))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        kind = {"qg": rabitqlib.SymqgIndex, "hnsw": rabitqlib.HnswIndex, "ivf": rabitqlib.IvfIndex}[settings["kind"]]
        self.index = kind.load(str(folder / "index.rabitq"))
        self.call = getattr(self.index, "search_batch", self.index.search)
        self.params = {}

    def set(self, params):
        self.params = params

    def batch(self, queries):
        return self.call(queries, K, num_threads=1, **self.params)

    def rows(self, queries):
        return [queries[at:at + 1] for at in range(len(queries))]

    def one(self):
        return functools.partial(self.index.search, k=K, num_threads=1, **self.params)
