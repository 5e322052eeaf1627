"""From a user to the top n: an index that recalls, a ranker that scores, and the items' features."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from . import _core
from ._arrays import Ids, Scores, count, id_array, one_or_many, results, rows
from ._columns import Data, is_path, rows_of_update, table
from ._filter import AnyFilter, Exclude, exclusions, handle_of
from ._index import Index
from ._items import Items
from ._progress import Progress, shown
from ._ranker import Ranker

ItemPart = Literal["layer", "codes", "layer-bf16", "layer-i8"]
_PARTS = {"layer": 0, "codes": 1, "layer-bf16": 2, "layer-i8": 3}


@dataclass(frozen=True)
class Recommendations:
    """Results of recommending, best first.

    ids, scores, recall_scores: uint64, float32 and float32; (nq, n) each, or (n,) for one vector. If fewer were found,
        the rest is filled with NO_ID and NaN.
    candidates: candidates scored, over all requests.
    without_features: scored candidates that the item table lacks.
    version: version of the model and items, as Recommender.version counts. For several requests it is the last one's.
    """

    ids: Ids
    scores: Scores
    recall_scores: Scores
    candidates: int
    without_features: int
    version: int


class Recommender:
    """An index, a ranker and an item table that serve requests.

    ranker: None gives recall alone.
    items: None for a ranker without item columns.
    item_part: values computed ahead for each item. "layer": the item's part of the model's first layer, as floats.
        "layer-bf16" keeps that part in half the memory, "layer-i8" in a quarter, by a byte a value and a scale an item.
        Scores change a little. "codes": the item's encoded features, with less memory and more work a request.
    group: item column of the groups that max_per_group bounds.
    missing_score: score of candidates that the item table lacks. None scores them with missing values in all of their
        features.
    threads: threads that prepare the items; 0 for all cores.
    verify: first hold an item table that was opened from a file to its checksums, which reads all of it.
        shortlist.Error with status SL_ECORRUPT where the table is damaged.

    Any number of threads may use a Recommender, with the GIL released. ``swap``, ``update`` and ``delete`` run beside
    requests.
    Each request sees the old state or the new one. The index may change beside requests, and the next request recalls
    what it has then. To add an item, give it its row (``update``) first and its vector (``index.add``) last.
    KeyError where the items lack a column of the model. ValueError where index, model and items do not fit.
    """

    __slots__ = ("__weakref__", "_core", "_dim", "_dtype", "_index", "_items", "_ranker")

    def __init__(
        self,
        index: Index,
        ranker: Ranker | None = None,
        items: Items | None = None,
        item_part: ItemPart = "layer",
        group: str | None = None,
        missing_score: float | None = None,
        threads: int = 0,
        verify: bool = False,
    ) -> None:
        _check_parts(index, ranker, items)
        if item_part not in _PARTS:
            raise ValueError(f"item_part is {item_part!r}; it must be one of {', '.join(_PARTS)}")
        self._dim, self._dtype, self._index = index.dim, index.dtype, index._core
        self._ranker, self._items = ranker, items
        self._core = _core.Recommender(
            index._core,
            None if ranker is None else ranker._core,
            None if items is None else items._core,
            _PARTS[item_part],
            count("threads", threads),
            float("nan") if missing_score is None else float(missing_score),
            group,
            bool(verify),
        )

    @property
    def ranker(self) -> Ranker | None:
        """The model in use."""
        return self._ranker

    @property
    def items(self) -> Items | None:
        """The item table in use."""
        return self._items

    @property
    def version(self) -> int:
        """Number of swaps so far."""
        return self._core.version

    @property
    def item_bytes(self) -> int:
        """Bytes of what was computed ahead for the items, with rows that updates have replaced since."""
        return self._core.item_bytes

    def _request(self, vectors: npt.ArrayLike, user: Data | None) -> tuple[dict[str, Any], int, bool]:
        array, dtype, one = rows("vectors", vectors, self._dim, self._dtype, allow_one=True)
        features = None if user is None else table(user, "{}" if self._ranker is None else self._ranker.spec_text)
        if features is not None and features.rows != len(array):
            raise ValueError(f"user features have {features.rows} rows for {len(array)} vectors")
        request: dict[str, Any] = {"vectors": array, "dtype": _core.DTYPES[dtype], "user": features}
        request.update(filter=None, exclude_start=None, exclude_ids=None)
        return request, len(array), one

    def recommend(
        self,
        vectors: npt.ArrayLike,
        user_features: Data | None = None,
        n: int = 10,
        candidates: int = 500,
        ef: int = 0,
        exclude: Exclude | None = None,
        accept: AnyFilter = None,
        max_per_group: int = 0,
        threads: int = 1,
        progress: Progress = False,
    ) -> Recommendations:
        """The top n of each vector: (nq, dim), or one of (dim,).

        user_features: a row a vector, as in Ranker. For one vector a dict of single values will do.
        candidates: candidates recalled and scored.
        ef: ef of the search; 0: as many as candidates.
        exclude: ids not to be returned: a list of arrays, one a vector, or a tuple (offsets, ids). Vector i's ids are
            ids[offsets[i]:offsets[i + 1]] then. For one vector, exclude is its ids.
        accept: what may be returned, for all vectors, as the filter of ``Index.search``. As many candidates are found as
            are allowed, up to `candidates`.
        max_per_group: most results of a group; 0 for no bound.
        threads: threads over the vectors; 0 for all cores.
        """
        if is_path(user_features):
            raise ValueError("user features are rows in memory, one a vector")
        request, size, one = self._request(vectors, user_features)
        request["filter"] = handle_of(self._index, accept, "accept")
        request["exclude_start"], request["exclude_ids"] = exclusions(exclude, size, one)
        wanted = count("n", n)
        limit = count("candidates", candidates)
        for what, value in (("n", wanted), ("candidates", limit)):
            if value > _core.MAX_EF:
                raise ValueError(f"{what} is {value}; it must be at most {_core.MAX_EF}")
        options = {
            "n": wanted,
            "candidates": max(limit, wanted),
            "ef": count("ef", ef),
            "max_per_group": count("max_per_group", max_per_group),
            "threads": count("threads", threads),
        }
        ids, scores = results(size, wanted)
        recall = np.empty_like(scores)
        with shown(progress, "recommending", "requests") as tell:
            stats = self._core.recommend(request, options, ids, scores, recall, tell)
        if one:
            ids, scores, recall = ids[0], scores[0], recall[0]
        return Recommendations(
            ids, scores, recall, stats["candidates"], stats["without_features"], stats["version"]
        )

    def score(
        self,
        vector: npt.ArrayLike,
        user: Data | None,
        ids: npt.ArrayLike,
        recall_scores: npt.ArrayLike | None = None,
    ) -> Scores:
        """Ranking alone: scores, (m,), of m ids for one user, in their order; NaN for deleted items.

        recall_scores: (m,), or None: computed where the model asks.
        """
        request, size, _ = self._request(vector, user)
        if size != 1:
            raise ValueError(f"score takes one vector, not {size}")
        labels = id_array(ids) if np.size(ids) else np.zeros(0, np.uint64)
        if labels.ndim != 1:
            raise ValueError(f"ids have shape {labels.shape}; they must be (m,)")
        recall = None
        if recall_scores is not None:
            recall = np.ascontiguousarray(recall_scores, np.float32)
            if recall.shape != labels.shape:
                raise ValueError(f"recall_scores have shape {recall.shape}, but ids {labels.shape}")
        scores = np.empty(labels.size, np.float32)
        self._core.score(request, labels, labels.size, recall, scores)
        return scores

    def swap(self, ranker: Ranker | None = None, items: Items | None = None) -> None:
        """Puts another model, another item table, or both in use at once; None keeps the one in use. On an exception
        the old ones go on serving."""
        self._core.swap(None if ranker is None else ranker._core, None if items is None else items._core)
        self._ranker = ranker if ranker is not None else self._ranker
        self._items = items if items is not None else self._items

    def update(self, data: Data, partial: bool = False) -> None:
        """Updates rows of the item table in use, as Items.update, and what was computed ahead for them."""
        self._core.update(rows_of_update(data), bool(partial))

    def delete(self, ids: npt.ArrayLike) -> None:
        """Deletes ids from the item table in use, as Items.delete. Requests that begin later do not have them.

        ``score`` gives NaN to a deleted id.
        """
        labels = one_or_many(ids)
        self._core.delete(labels, labels.size)

    def __repr__(self) -> str:
        return f"<shortlist.Recommender: {self._ranker!r}, {self._items!r}, version {self.version}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a shortlist.Recommender cannot be copied or pickled; make another of its parts")


class _Kept:
    """The recommender that was last made for an index, and its parts."""

    def __init__(self, made: Recommender, key: tuple[Any, ...], changes: int, size: int) -> None:
        self.made, self.key, self.changes, self.size = made, key, changes, size

    def fits(self, key: tuple[Any, ...], changes: int, size: int) -> bool:
        """A recommender follows its index, but not changes of the table. Requests prepare what the index was added to,
        and from a sixteenth on it takes less time to prepare all once more."""
        same = all(a is b or a == b for a, b in zip(self.key, key))
        return same and self.changes == changes and abs(size - self.size) * 16 <= self.size


def _reads_vectors(ranker: Ranker | None) -> bool:
    """Returns whether the model has items' vectors from the index as features."""
    features = [] if ranker is None else ranker.spec["features"]
    return any(feature.get("source") == "index" and feature.get("side") == "item" for feature in features)


_kept: weakref.WeakKeyDictionary[Index, _Kept] = weakref.WeakKeyDictionary()


def _check_parts(index: object, ranker: object, items: object) -> None:
    for what, given, kind in (("index", index, Index), ("ranker", ranker, Ranker), ("items", items, Items)):
        if not isinstance(given, kind) and (given is not None or kind is Index):
            raise TypeError(f"{what} is of type {type(given).__name__}; it must be a shortlist.{kind.__name__}")


def recommend(
    index: Index,
    ranker: Ranker | None,
    items: Items | None,
    user_vectors: npt.ArrayLike,
    user_features: Data | None = None,
    n: int = 10,
    *,
    item_part: ItemPart = "layer",
    group: str | None = None,
    missing_score: float | None = None,
    candidates: int = 500,
    ef: int = 0,
    exclude: Exclude | None = None,
    accept: AnyFilter = None,
    max_per_group: int = 0,
    threads: int = 1,
    progress: Progress = False,
) -> Recommendations:
    """The top n for users, by a Recommender of these parts. Recommender and Recommender.recommend explain the
    arguments.

    The recommender is kept with the index for later calls with the same parts. It is made anew after items were
    changed. If the model reads items' vectors, it is also made anew after the index has grown by a sixteenth.
    """
    _check_parts(index, ranker, items)
    key = (ranker, items, item_part, group, missing_score)
    changes = 0 if items is None else items._core.changes
    size = len(index) if _reads_vectors(ranker) else 0
    kept = _kept.get(index)
    if kept is None or not kept.fits(key, changes, size):
        kept = _Kept(Recommender(index, ranker, items, item_part, group, missing_score, threads), key, changes, size)
        _kept[index] = kept
    return kept.made.recommend(
        user_vectors, user_features, n, candidates, ef, exclude, accept, max_per_group, threads, progress
    )
