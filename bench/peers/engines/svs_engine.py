"""Intel SVS: Vamana of degree 32 and 64 (window 200, alpha 1.2 for l2 and 0.95 for the inner product, as documented).

Walks go over plain elements, over LVQ codes, and for long vectors over LeanVec ("LeanVec4x8" of the documentation).
LeanVec halves the dimension, which is the default, or quarters it, with LVQ4 and LVQ8 behind it. Prefetching and the
search buffer's capacity come from its own calibration at each recall, on the queries for tuning.
"""

import functools
import json
import pathlib

import numpy
import svs

from choose import Sweep
from sets import K

from . import base

PACKAGE = "scalable-vs"
LVQ = {"LVQ8": (8, 0), "LVQ4x8": (4, 8)}
LEANVEC = {"LeanVec4x8 d/2": 2, "LeanVec4x8 d/4": 4}  # by how much less than the vectors' dimension it walks over
LEANVEC_DIM = 256  # its examples and its paper have no shorter vectors
INTEL_ALONE = "LVQ and LeanVec of scalable-vs refuse processors that are not Intel's"
RECALLS = ("0.90", "0.95", "0.99")  # that are calibrated for
CALIBRATED = "calibrated.json"


def search_settings(found, params):
    """(window, the buffer's capacity, how far ahead to fetch, in what steps) by the calibration that was found."""
    window = params["window"]
    ahead, step, more = found[params["calibrated"]] if "calibrated" in params else (params["ahead"], 1, 1.0)
    return window, max(window, round(window * more)), ahead, step


# The headers open plain elements; the Python module alone opens codes.
NATIVE = base.Native("native_svs", "", lambda folder, params: search_settings(
    json.loads((folder / CALIBRATED).read_text()), params), {"kind": ("f16", "f32")}, "kind")


def intel():
    return "GenuineIntel" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")


def kinds(data):
    """Gives the kinds of rows that walks go over."""
    codes = [*LVQ, *(LEANVEC if data.dim >= LEANVEC_DIM else ())]
    return [*codes, "u8"] if data.raw.dtype.name == "uint8" else [*codes, "f16", "f32"]


def variant(kind, degree):
    name = f"Vamana R={degree} {kind}"
    if (kind in LVQ or kind in LEANVEC) and not intel():
        return base.skipped(name, INTEL_ALONE)
    # The calibration takes no whole numbers: there the distance of fetching ahead is swept instead.
    grid = {"ahead": (1, 4, 8, 16)} if kind == "u8" else {"calibrated": RECALLS}
    return base.Variant(name, {"kind": kind, "degree": degree, "window": 200}, Sweep("window", K, 16384, **grid))


def variants(data):
    return [variant(kind, degree) for kind in kinds(data) for degree in (32, 64)]


def distance(data):
    return svs.DistanceType.L2 if data.similarity == "l2" else svs.DistanceType.MIP


def compressed(data, kind, rows):
    """The loader that makes codes of the rows in a file."""
    source = svs.VectorDataLoader(str(rows), svs.DataType.float32, dims=data.dim)
    if kind in LEANVEC:
        return svs.LeanVecLoader(source, data.dim // LEANVEC[kind], primary_kind=svs.LeanVecKind.lvq4,
                                 secondary_kind=svs.LeanVecKind.lvq8, alignment=32)
    primary, residual = LVQ[kind]
    return svs.LVQLoader(source, primary=primary, residual=residual, padding=32)


def build(data, settings, threads, folder):
    kind = settings["kind"]
    parameters = svs.VamanaBuildParameters(alpha=1.2 if data.similarity == "l2" else 0.95,
                                           graph_max_degree=settings["degree"], window_size=settings["window"])
    if kind in LVQ or kind in LEANVEC:
        rows = folder / "rows.fvecs"
        svs.write_vecs(data.rows, str(rows))
        index = svs.Vamana.build(parameters, compressed(data, kind, rows), distance(data), threads)
        rows.unlink()
    else:
        rows = {"f16": lambda: data.rows.astype(numpy.float16), "f32": lambda: data.rows,
                "u8": lambda: numpy.ascontiguousarray(data.raw)}[kind]()
        index = svs.Vamana.build(parameters, rows, distance(data), threads)
    index.save(*(str(folder / part) for part in ("config", "graph", "data")))


def loader(kind, rows):
    if kind in LEANVEC:
        return svs.LeanVecLoader(rows, alignment=32)
    if kind in LVQ:
        return svs.LVQLoader(rows, padding=32)
    element = {"f16": svs.DataType.float16, "f32": svs.DataType.float32, "u8": svs.DataType.uint8}
    return svs.VectorDataLoader(rows, element[kind])


class Index(base.Index):
    def __init__(self, data, settings, folder):
        kind = settings["kind"]
        self.native = kind == "u8"
        self.index = svs.Vamana(str(folder / "config"), svs.GraphLoader(str(folder / "graph")),
                                loader(kind, str(folder / "data")), distance(data),
                                svs.DataType.uint8 if self.native else svs.DataType.float32, num_threads=1)
        self.found = {} if self.native else self.calibrated(data, folder / CALIBRATED)

    def calibrated(self, data, kept):
        """Gives the library's own choice at each recall, made once. The choice is how far ahead to fetch, in what
        steps, and the search buffer's capacity as a multiple of the window."""
        if kept.exists():
            return json.loads(kept.read_text())
        queries, _, truth = data.part("tune")
        found = {}
        for recall in RECALLS:
            wanted = svs.VamanaCalibrationParameters()
            wanted.train_prefetchers = True
            wanted.search_buffer_optimization = svs.VamanaSearchBufferOptimization.All
            best = self.index.experimental_calibrate(queries, truth, K, float(recall), wanted)
            buffer = best.buffer_config
            found[recall] = [best.prefetch_lookahead, best.prefetch_step,
                             buffer.search_buffer_capacity / buffer.search_window_size]
        kept.write_text(json.dumps(found))
        return found

    def set(self, params):
        window, capacity, ahead, step = search_settings(self.found, params)
        parameters = self.index.search_parameters
        parameters.buffer_config = svs.SearchBufferConfig(window, capacity)
        parameters.prefetch_lookahead, parameters.prefetch_step = ahead, step
        self.index.search_parameters = parameters

    def batch(self, queries):
        return self.index.search(queries, K)

    def one(self):
        return functools.partial(self.index.search, n_neighbors=K)
