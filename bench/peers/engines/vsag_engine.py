"""VSAG: HGraph over uniform 8-bit and 4-bit codes, re-ranked by f32, degree 32 and 64, ef_construction 400, its
documented search-parameter optimizer on. The binding has no call for a matrix of dense queries.

Uniform 4-bit codes find nothing under "ip" and "cosine" (0.18.5). Under "l2", rows of length one have the same order.
"""

import functools
import json

import numpy
import pyvsag

from choose import Sweep
from sets import K

from . import base

PACKAGE = "pyvsag"
NATIVE = "pyvsag holds no C++ headers"
MAX_EF = 1000  # a larger one is refused


def variants(data):
    product = "l2" if data.similarity == "l2" else "ip"
    found = [("sq8_uniform", 32, product), ("sq8_uniform", 64, product)]
    if data.metric != "ip":
        found.append(("sq4_uniform", 32, "l2"))
    return [base.Variant(f"HGraph {codes} degree {degree} + fp32",
                         {"codes": codes, "degree": degree, "ef_construction": 400, **({"metric": metric}
                                                                                       if metric != product else {})},
                         Sweep("ef", K, MAX_EF))
            for codes, degree, metric in found]


def description(data, settings, threads):
    return json.dumps({"dtype": "float32", "dim": data.dim,
                       "metric_type": settings.get("metric", "l2" if data.similarity == "l2" else "ip"),
                       "index_param": {"base_quantization_type": settings["codes"], "max_degree": settings["degree"],
                                       "ef_construction": settings["ef_construction"], "use_reorder": True,
                                       "precise_quantization_type": "fp32", "build_thread_count": threads,
                                       "use_elp_optimizer": True}})


def build(data, settings, threads, folder):
    index = pyvsag.Index("hgraph", description(data, settings, threads))
    index.build(data.rows.reshape(-1), numpy.arange(data.count, dtype=numpy.int64), data.count, data.dim)
    index.save(str(folder / "index.vsag"))


class Index(base.OneByOne):
    def __init__(self, data, settings, folder):
        pyvsag.set_logger_off()
        self.index = pyvsag.Index("hgraph", description(data, settings, 1))
        self.index.load(str(folder / "index.vsag"))
        self.parameters = ""

    def set(self, params):
        self.parameters = json.dumps({"hgraph": {"ef_search": params["ef"]}})

    def one(self):
        return functools.partial(self.index.knn_search, k=K, parameters=self.parameters)
