"""Exact search: ground truth, and sets too small to need an index."""

from __future__ import annotations

import numpy.typing as npt

from . import _core
from ._arrays import Ids, Scores, alike, choice, count, results
from ._index import Metric


def exact(
    x: npt.ArrayLike, q: npt.ArrayLike, k: int = 100, metric: Metric = "cosine", threads: int = 0
) -> tuple[Ids, Scores]:
    """The true k nearest rows of x for each query, best first: row numbers of x (uint64) and scores (float32).

    x: (n, dim).
    q: (nq, dim), giving (nq, k) arrays; or one query (dim,), giving (k,) arrays.
    metric: as of Index, with the same default.
    threads: 0 for all cores.

    Arrays that share one of the types float32, float16, bfloat16, int8, uint8 and int16 are compared as they are.
    Otherwise both are converted to float32. Ties go to the smaller row. If x has fewer than k rows, the rest is filled
    with the id NO_ID and the score NaN.
    """
    base, queries, dtype, one = alike(x, q)
    wanted = count("k", k)
    ids, scores = results(len(queries), wanted)
    _core.exact(
        base,
        queries,
        _core.DTYPES[dtype],
        choice("metric", metric, _core.METRICS),
        base.shape[1],
        wanted,
        count("threads", threads),
        ids,
        scores,
    )
    return (ids[0], scores[0]) if one else (ids, scores)
