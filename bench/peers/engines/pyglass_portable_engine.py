"""pyglass-portable: HNSW of degree 32 (L 200), 8-bit and 4-bit codes re-ranked, after its optimize().

The package is pyglass compiled for AVX2. Its wheel holds no instruction of 512 bits, no dot product of bytes (VNNI) and no
prefetch, so that optimize() has none to tune. No race measures a pyglass that is compiled for one machine.
"""

import functools

import glass
import numpy

from choose import Sweep
from sets import K

from . import base

PACKAGE = "pyglass-portable"
NATIVE = "pyglass-portable holds no C++ headers"
CODE_BYTES = {"SQ8U": 1.0, "SQ4U": 0.5}


def variants(data):
    def variant(codes, refine):
        return base.Variant(f"HNSW R=32 {codes} + {refine}",
                            {"codes": codes, "refine": refine, "degree": 32, "window": 200}, Sweep("ef", K, 16384))

    return [variant("SQ8U", "FP16"), variant("SQ8U", "FP32"), variant("SQ4U", "FP16")]


def metric(data):
    return "L2" if data.similarity == "l2" else "IP"


def build(data, settings, threads, folder):
    glass.set_num_threads(threads)
    # The graph is made over 8-bit codes whatever it is searched over, as the authors do.
    graph = glass.Index("HNSW", metric(data), "SQ8U", R=settings["degree"], L=settings["window"]).build(data.rows)
    graph.save(str(folder / "graph"))
    per_row = data.dim * CODE_BYTES[settings["codes"]] + data.dim * (2 if settings["refine"] == "FP16" else 4)
    (folder / "rows").touch()
    # The library's file holds the graph alone; codes and finer rows are made anew at each start and counted by their
    # size.
    with open(folder / "rows", "r+b") as file:
        file.truncate(int(per_row * data.count))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        glass.set_num_threads(1)
        self.searcher = glass.Searcher(glass.Graph(str(folder / "graph")), data.rows, metric(data), settings["codes"],
                                       settings["refine"])
        del data.rows
        self.searcher.set_ef(64)
        self.searcher.optimize(1)

    def set(self, params):
        self.searcher.set_ef(params["ef"])

    def batch(self, queries):
        return self.searcher.batch_search(queries, K, 1)

    def one(self):
        return functools.partial(self.searcher.search, k=K)
