"""Who builds: a name, the package, the engine of bench/peers/engines and its settings.

ScaNN takes its authors' 2,000 leaves, and sqrt(n) as its documentation proposes: 583 for glove100."""

import math

HNSW = {"ef_construction": 200}


def peers(count):
    leaves = sorted({2000, round(math.sqrt(count))}, reverse=True)
    return [
        ("hnswlib M=16", "hnswlib", "hnswlib", {"m": 16, **HNSW}),
        ("SymphonyQG R=32", "rabitqlib", "rabitq", {"kind": "qg", "degree": 32, "bits": 0, **HNSW}),
        *((f"ScaNN {leaf} leaves", "scann-core", "scann-core", {"leaves": leaf, "block": 2}) for leaf in leaves),
        ("Faiss HNSW M=16", "faiss-cpu", "faiss", {"factory": "HNSW16", **HNSW}),
        ("usearch f32 M=16", "usearch", "usearch", {"m": 16, "dtype": "f32", "expansion_add": 200, "metric": "ip"}),
    ]


OURS = ("leaves", "insert")


def our_name(builder):
    return f"shortlist {builder}"
