"""Shortlist: vector recall to link into a recommendation service.

    import numpy as np
    import shortlist

    ix = shortlist.Index(dim=100, metric="cosine", refine="bf16")
    ix.add(x)                                  # x: (n, 100) array
    ids, scores = ix.search(q, k=10, ef=64)    # (nq, 10) uint64 and float32
    ix.save("items.sl")
    ix = shortlist.open("items.sl")            # mapped: opens in milliseconds, shared between processes

Errors are ValueError (an argument or a vector that cannot be taken), KeyError (no such id), MemoryError, OSError, or
shortlist.Error for the rest, each saying what, where and what to do.
"""

from . import _core
from ._arrays import NO_ID
from ._errors import Error
from ._exact import exact
from ._index import CheckReport, Index, IndexStats, open
from ._system import SystemInfo, cpu

__version__: str = _core.version()

__all__ = [
    "NO_ID",
    "CheckReport",
    "Error",
    "Index",
    "IndexStats",
    "SystemInfo",
    "__version__",
    "cpu",
    "exact",
    "open",
]
