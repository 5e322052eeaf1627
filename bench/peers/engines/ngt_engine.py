"""NGT: ONNG, made by its Optimizer from an ANNG of 100 edges (out 10, in 120), as documented.

Only the command qbg makes the quantized graph (QG). The package ngt does not hold qbg, and can
only search such a graph. The library's own NGTQG::Index::quantize, out of the package's binary, made a graph that found
a tenth of the true neighbours. A row of the graph as a query did not find itself.
"""

import functools
import shutil

import ngtpy
import numpy

from choose import Sweep
from sets import K

from . import base

PACKAGE = "ngt"
NATIVE = "ngt holds no C++ headers"


def variants(data):
    return [base.Variant("ONNG", {"edges": 100, "out": 10, "in": 120}, Sweep("epsilon", 1, 600)),
            base.skipped("QG", "made only by the command qbg, which the package ngt does not hold")]


def build(data, settings, threads, folder):
    start, whole = str(folder / "anng"), str(folder / "onng")
    distance = {"l2": "L2", "cosine": "Normalized Cosine", "ip": "Inner Product"}[data.metric]
    try:
        ngtpy.create(start, data.dim, edge_size_for_creation=settings["edges"], edge_size_for_search=0,
                     distance_type=distance, object_type="Float")
    except RuntimeError as problem:
        raise base.Skip(f"no {distance} in this package: {problem}") from problem
    index = ngtpy.Index(start)
    index.batch_insert(data.rows, num_threads=threads)
    index.save()
    index.close()
    optimizer = ngtpy.Optimizer(num_of_outgoings=settings["out"], num_of_incomings=settings["in"], log_disabled=True)
    optimizer.execute(start, whole)
    shutil.rmtree(start)


class Index(base.Index):
    def __init__(self, data, settings, folder):
        self.index = ngtpy.Index(str(folder / "onng"), read_only=True)

    def set(self, params):
        # In thousandths; at -2 the number of edges looked at follows epsilon by the table that the optimizer made.
        self.index.set(num_of_search_objects=K, epsilon=params["epsilon"] / 1000 - 0.1, edge_size=-2)

    def batch(self, queries):
        results = ngtpy.BatchResults()
        self.index.batch_search(queries, results, K, with_distance=False)
        return results

    def ids(self, answer):
        return numpy.asarray(answer.get_ids()).reshape(-1, K)

    def one(self):
        return functools.partial(self.index.search, size=K, with_distance=False)

    def id_row(self, answer):
        return numpy.asarray(answer)
