"""usearch: f32, bf16 (the type of its documentation's first example) and i8, connectivity 16 and 32, expansion_add 200.

Under i8 the library takes f32 rows for "cos" alone, and scales them to length one. Other metrics get whole numbers:
bytes moved by 128, which changes no Euclidean distance, or the rows over their largest element. Rows of length one in
f32 and bf16 have the order of "cos" under "ip" too, which is a sixth faster.
"""

import functools

import numpy
from usearch.index import Index as Graph

from choose import Sweep
from sets import K

from . import base

PACKAGE = "usearch"
NATIVE = "usearch's wheel holds no C++ headers"


def variants(data):
    def variant(dtype, m):
        product = {"metric": "ip"} if dtype != "i8" and data.metric == "cosine" else {}
        return base.Variant(f"{dtype} M={m}", {"m": m, "dtype": dtype, "expansion_add": 200, **product},
                            Sweep("ef", K, 16384))

    return [variant(dtype, m) for dtype in ("f32", "bf16", "i8") for m in (16, 32)]


def graph(data, settings):
    metric = settings.get("metric", {"cosine": "cos", "ip": "ip", "l2": "l2sq"}[data.metric])
    return Graph(ndim=data.dim, metric=metric, dtype=settings["dtype"], connectivity=settings["m"],
                 expansion_add=settings["expansion_add"])


def coded(data, settings, rows, scale):
    """The rows in the form that the graph takes: rows of the file for i8, float32 of length one under cosine else."""
    if settings["dtype"] != "i8" or data.metric == "cosine":
        return rows
    if data.raw.dtype.name == "uint8":
        return (rows.astype(numpy.int16) - 128).astype(numpy.int8)
    return numpy.clip(numpy.rint(rows * (127 / scale)), -127, 127).astype(numpy.int8)


def build(data, settings, threads, folder):
    index = graph(data, settings)
    scale = float(numpy.abs(data.rows).max())
    (folder / "scale").write_text(repr(scale))
    index.add(numpy.arange(data.count), coded(data, settings, data.rows, scale), threads=threads)
    index.save(str(folder / "index.usearch"))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        self.index = graph(data, settings)
        self.index.load(str(folder / "index.usearch"))
        scale = float((folder / "scale").read_text())
        self.shape = lambda queries: coded(data, settings, queries, scale)
        if data.metric == "ip":  # the scale of a query changes no order
            self.shape = lambda queries: coded(data, settings, queries / abs(queries).max(axis=1, keepdims=True), 1.0)
        self.made = (None, None)

    def coded(self, queries):
        """The queries' form, kept from the call before."""
        if self.made[0] is not queries:
            self.made = (queries, self.shape(queries))
        return self.made[1]

    def set(self, params):
        self.index.expansion_search = params["ef"]

    def batch(self, queries):
        return self.index.search(self.coded(queries), K, threads=1)

    def rows(self, queries):
        return list(self.coded(queries))

    def one(self):
        return functools.partial(self.index.search, count=K, threads=1)

    def ids(self, answer):
        return answer.keys

    def id_row(self, answer):
        return answer.keys
