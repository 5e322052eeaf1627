"""Intel SVS: Vamana of degree 32 (window 200, alpha 1.2 for l2 and 0.95 for the inner product, as documented) over its
LVQ codes and over plain elements; prefetching calibrated by its own routine on the queries for tuning.

Its LVQ runs on Intel's processors alone: elsewhere its package says so and ends the process, which is recorded.
"""

import functools
import json

import numpy
import svs

from choose import Sweep
from sets import K

from . import base

PACKAGE = "scalable-vs"
LVQ = {"LVQ8": (8, 0), "LVQ4x8": (4, 8)}


def variants(data):
    kinds = ["LVQ8", "LVQ4x8", "f16", "f32"]
    if data.raw.dtype.name == "uint8":
        kinds = ["LVQ8", "LVQ4x8", "u8"]
    # Its calibration takes no whole numbers: there the distance of fetching ahead is swept instead.
    ahead = {"u8": {"ahead": (1, 4, 8, 16)}}
    return [base.Variant(f"Vamana R={degree} {kind}", {"kind": kind, "degree": degree, "window": 200},
                         Sweep("window", K, 16384, **ahead.get(kind, {}))) for kind in kinds for degree in (32, 64)
            if degree == 32 or kind in ("f16", "u8")]


def distance(data):
    return svs.DistanceType.L2 if data.similarity == "l2" else svs.DistanceType.MIP


def build(data, settings, threads, folder):
    parameters = svs.VamanaBuildParameters(alpha=1.2 if data.similarity == "l2" else 0.95,
                                           graph_max_degree=settings["degree"], window_size=settings["window"])
    if settings["kind"] in LVQ:
        rows = folder / "rows.fvecs"
        svs.write_vecs(data.rows, str(rows))
        primary, residual = LVQ[settings["kind"]]
        source = svs.VectorDataLoader(str(rows), svs.DataType.float32, dims=data.dim)
        index = svs.Vamana.build(parameters, svs.LVQLoader(source, primary=primary, residual=residual, padding=32),
                                 distance(data), threads)
        rows.unlink()
    else:
        rows = {"f16": lambda: data.rows.astype(numpy.float16), "f32": lambda: data.rows,
                "u8": lambda: numpy.ascontiguousarray(data.raw)}[settings["kind"]]()
        index = svs.Vamana.build(parameters, rows, distance(data), threads)
    index.save(*(str(folder / part) for part in ("config", "graph", "data")))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        kind = settings["kind"]
        self.native = kind == "u8"
        rows = str(folder / "data")
        element = {"f16": svs.DataType.float16, "f32": svs.DataType.float32, "u8": svs.DataType.uint8}
        loader = svs.LVQLoader(rows, padding=32) if kind in LVQ else svs.VectorDataLoader(rows, element[kind])
        self.index = svs.Vamana(str(folder / "config"), svs.GraphLoader(str(folder / "graph")), loader, distance(data),
                                svs.DataType.uint8 if self.native else svs.DataType.float32, num_threads=1)
        self.ahead = (0, 0) if self.native else self.calibrated(data, folder / "ahead.json")

    def calibrated(self, data, kept):
        """Its own choice of how far ahead to fetch, and in what steps, at the recall in the middle; made once."""
        if kept.exists():
            return json.loads(kept.read_text())
        queries, _, truth = data.part("tune")
        wanted = svs.VamanaCalibrationParameters()
        wanted.train_prefetchers = True
        found = self.index.experimental_calibrate(queries, truth, K, 0.95, wanted)
        ahead = [found.prefetch_lookahead, found.prefetch_step]
        kept.write_text(json.dumps(ahead))
        return ahead

    def set(self, params):
        parameters = self.index.search_parameters
        parameters.buffer_config = svs.SearchBufferConfig(params["window"])
        ahead, step = (params["ahead"], 1) if "ahead" in params else self.ahead
        parameters.prefetch_lookahead, parameters.prefetch_step = ahead, step
        self.index.search_parameters = parameters

    def batch(self, queries):
        return self.index.search(queries, K)

    def one(self):
        return functools.partial(self.index.search, n_neighbors=K)
