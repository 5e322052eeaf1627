"""ScaNN: tree, 4-bit asymmetric hashing, exact reordering, as its authors set it for GloVe on ann-benchmarks. Hashing
takes two dimensions a code, with anisotropic loss 0.2. The variants have the authors' 2,000 leaves, or about sqrt(n),
as the documentation proposes, which are the faster. Inner product also has SOAR. Rows of two bytes an element for the
reordering halve the memory.

The package is scann-core, ScaNN's core without TensorFlow and with the same Python module. The authors' wheel scann 1.4.2
never finds AVX2 or AVX-512, and runs the code for any processor.
"""

import functools
import math

from choose import Sweep
from sets import K

from . import base

PACKAGE = "scann-core"
NATIVE = "scann-core's wheel holds no C++ headers"
SOAR, OVER = 1.5, 2.0  # what its own builder takes where nothing is said
REORDER = (30, 60, 100, 150, 250, 400, 700, 1200, 2000, 3500)


def variants(data):
    root = math.sqrt(data.count)

    def variant(leaves, soar=False, rows=""):
        name = f"AH2 {leaves} leaves{' SOAR' if soar else ''}{' + ' + rows if rows else ''}"
        more = {**({"soar": SOAR} if soar else {}), **({"rows": rows} if rows else {})}
        settings = {"leaves": leaves, "block": 2, **more}
        return base.Variant(name, settings, Sweep("leaves", 1, leaves, reorder=REORDER))

    few, many = round(root), max(2000, round(2 * root))
    found = [variant(round(root / 2)), variant(few), variant(many), variant(few, rows="BFLOAT16")]
    if data.similarity == "ip":
        found += [variant(few, True), variant(many, True), variant(few, True, "BFLOAT16")]
    return found


def build(data, settings, threads, folder):
    import scann  # in this library's own environment alone
    from scann.scann_ops.py.scann_builder import ReorderType

    builder = scann.scann_ops_pybind.builder(data.rows, K, "squared_l2" if data.similarity == "l2" else "dot_product")
    builder.set_n_training_threads(threads)
    more = {"soar_lambda": settings["soar"], "overretrieve_factor": OVER} if "soar" in settings else {}
    builder.tree(settings["leaves"], 1, training_sample_size=min(data.count, 250000),
                 spherical=data.metric == "cosine", quantize_centroids=True, **more)
    anisotropic = math.nan if data.similarity == "l2" else 0.2
    builder.score_ah(settings["block"], anisotropic_quantization_threshold=anisotropic)
    builder.reorder(1, quantize=ReorderType[settings.get("rows", "FLOAT32")])
    builder.build().serialize(str(folder.resolve()))


class Index(base.Index):
    def __init__(self, data, settings, folder):
        import scann

        self.index = scann.scann_ops_pybind.load_searcher(str(folder.resolve()))
        self.params = {}

    def set(self, params):
        self.params = {"final_num_neighbors": K, "pre_reorder_num_neighbors": params["reorder"],
                       "leaves_to_search": params["leaves"]}

    def batch(self, queries):
        return self.index.search_batched(queries, **self.params)

    def one(self):
        return functools.partial(self.index.search, **self.params)
