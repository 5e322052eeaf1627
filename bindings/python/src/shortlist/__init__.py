"""Shortlist: vector recall and ranking to link into a recommendation service.

    import numpy as np
    import shortlist

    ix = shortlist.Index(dim=100, metric="cosine", refine="bf16")
    ix.add(x)                                  # x: (n, 100) array
    ids, scores = ix.search(q, k=10, ef=64)    # (nq, 10) uint64 and float32
    ix.save("items.sl")
    ix = shortlist.open("items.sl")            # mapped: opens in milliseconds, shared between processes

    rk = shortlist.Ranker.train(spec, clicks)  # a wide & deep model of columns; spec: docs/SPEC.md
    serving = shortlist.Recommender(ix, rk, shortlist.Items(films))
    top = serving.recommend(user_vectors, user_features, n=10)

Errors are ValueError (an argument or a vector that cannot be taken), KeyError (no such id or column), MemoryError and
OSError. All other errors are shortlist.Error. Each error says what, where and what to do.

shortlist.onnx, imported by its name, exchanges rankers with ONNX.
"""

from . import _core
from ._arrays import NO_ID
from ._errors import Error
from ._exact import exact
from ._filter import Filter
from ._index import (
    BuildPlan,
    Index,
    EpochHolder,
    IndexStats,
    NumaPages,
    RebuildReport,
    Tuned,
    TuneReport,
    import_faiss,
    import_hnswlib,
    merge,
    open,
    rebuild,
    snapshot,
)
from ._items import Items
from ._ranker import (
    Embedding,
    Encoded,
    Epoch,
    Feature,
    Layer,
    Metrics,
    PruneReport,
    Quantized,
    QuantizeReport,
    Ranker,
    RankerInfo,
    TrainReport,
    Trial,
)
from ._recommend import Recommendations, Recommender, recommend
from ._reports import CheckReport, ItemsCheckReport, RankerCheckReport, RecallReport
from ._system import SystemInfo, cpu

__version__: str = _core.version()

__all__ = [
    "NO_ID",
    "BuildPlan",
    "CheckReport",
    "Embedding",
    "Encoded",
    "Epoch",
    "Error",
    "Feature",
    "Filter",
    "Index",
    "EpochHolder",
    "IndexStats",
    "Items",
    "ItemsCheckReport",
    "Layer",
    "Metrics",
    "NumaPages",
    "PruneReport",
    "QuantizeReport",
    "Quantized",
    "Ranker",
    "RankerCheckReport",
    "RankerInfo",
    "RebuildReport",
    "RecallReport",
    "Recommendations",
    "Recommender",
    "SystemInfo",
    "TrainReport",
    "Trial",
    "TuneReport",
    "Tuned",
    "__version__",
    "cpu",
    "exact",
    "import_faiss",
    "import_hnswlib",
    "merge",
    "open",
    "rebuild",
    "recommend",
    "snapshot",
]
