"""hnswlib's Python module over Shortlist::

    import shortlist.compat.hnswlib as hnswlib

``Index`` and ``BFIndex`` have hnswlib 0.8's methods, arguments, results and errors. Differences:

- ``Index.save_index`` writes an index file of Shortlist, which ``shortlist.open`` and the command read too. Vectors that
  are marked as deleted go to a second file, ``PATH.deleted.npz``. ``load_index`` reads such files and hnswlib's own.
- ``add_items`` adds all rows or none. Vectors of length zero under cosine, NaN and infinity raise RuntimeError.
- A call before ``init_index`` or ``load_index`` raises RuntimeError; hnswlib crashes.
- ``M`` is 2 to 256.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .. import _index
from .._arrays import NO_ID
from .._exact import exact

__all__ = ["BFIndex", "Index"]

_Filter = Callable[[int], bool]
_METRICS: dict[str, _index.Metric] = {"l2": "l2", "ip": "ip", "cosine": "cosine"}
_LIMIT = "The number of elements exceeds the specified limit"
_SERIAL_VERSION = 1
# The first bytes of a Shortlist file; the header and the mark of a deleted element in an hnswlib file.
_MAGIC = b"SHORTLST"
_HEADER, _DELETED_BYTE = 96, 2


def _metric(space: str) -> _index.Metric:
    if space not in _METRICS:
        raise RuntimeError("Space name must be one of l2, ip, or cosine.")
    return _METRICS[space]


def _matrix(data: npt.ArrayLike, dim: int) -> npt.NDArray[np.float32]:
    rows = np.ascontiguousarray(data, dtype=np.float32)
    if rows.ndim not in (1, 2):
        raise RuntimeError(
            f"Input vector data wrong shape. Number of dimensions {rows.ndim}. Data must be a 1D or 2D array."
        )
    rows = rows.reshape(1, -1) if rows.ndim == 1 else rows
    if rows.shape[1] != dim:
        raise RuntimeError("Wrong dimensionality of the vectors")
    return rows


def _labels(ids: npt.ArrayLike | None, rows: int, first: int) -> npt.NDArray[np.uint64]:
    if ids is None:
        return np.arange(first, first + rows, dtype=np.uint64)
    labels = np.asarray(ids).astype(np.uint64)
    if labels.shape != (rows,) and not (labels.ndim == 0 and rows == 1):
        raise RuntimeError(
            f"The input label shape {labels.ndim} does not match the input data vector shape {rows}"
        )
    return labels.reshape(-1)


def _normalized(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return cast("npt.NDArray[np.float32]", rows / (lengths + np.float32(1e-30))[:, None])


def _with_spare(ef: int) -> int:
    """Codes of 8 bits need a few more candidates than floats to find as many of the nearest."""
    return ef + ef // 8 + 4


def _marked(path: str) -> npt.NDArray[np.uint64]:
    """The labels that are marked as deleted in a file of hnswlib, which has been imported."""
    head = np.fromfile(path, dtype="<u8", count=6)
    count, element, label = int(head[2]), int(head[3]), int(head[4])
    if not count:
        return np.empty(0, np.uint64)
    elements = np.memmap(path, dtype=np.uint8, mode="r", offset=_HEADER, shape=(count, element))
    marked = elements[(elements[:, _DELETED_BYTE] & 1).astype(bool), label : label + 8]
    return np.ascontiguousarray(marked).view("<u8").reshape(-1)


def _saved(index: _index.Index) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "index.sl")
        index.save(path)
        return path.read_bytes()


def _opened(file: bytes) -> _index.Index:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "index.sl")
        path.write_bytes(file)
        return _index.open(path, place="dram", read_only=False)


def _distances(metric: str, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return scores if metric == "l2" else np.float32(1) - scores


class Index:
    """hnswlib.Index: a graph of vectors for approximate search.

    Index(space, dim), with space "l2", "ip" or "cosine". Index(index=other) and Index(params=state) copy one.

    Vectors have codes of 8 bits, and a float32 copy that re-ranks and that ``get_items`` returns.
    """

    def __init__(
        self,
        space: str | Index | Mapping[str, Any] | None = None,
        dim: int = 0,
        *,
        params: Mapping[str, Any] | None = None,
        index: Index | None = None,
    ) -> None:
        if isinstance(space, Index):
            index = space
        elif isinstance(space, Mapping):
            params = space
        if index is not None:
            params = index.__getstate__()[0]
        if params is not None:
            self.__setstate__((params,))
            return
        if not isinstance(space, str):
            raise TypeError("give space and dim, or an index or params to copy")
        self._metric = _metric(space)
        self._begin(space, int(dim))

    def _begin(self, space: str, dim: int) -> None:
        self.space = space
        self.dim = dim
        self.num_threads: int = os.cpu_count() or 1
        self._default_ef = 10
        self._seed = 100
        self._index: _index.Index | None = None
        self._max_elements = 0
        self._replaces = False
        self._next = 0
        self._deleted: dict[int, npt.NDArray[np.float32]] = {}
        self._lock = threading.RLock()

    def _made(self) -> _index.Index:
        if self._index is None:
            raise RuntimeError("The index is not initiated; call init_index or load_index first.")
        return self._index

    def _threads(self, num_threads: int, rows: int) -> int:
        wanted = num_threads if num_threads > 0 else max(1, self.num_threads)
        return 1 if rows <= wanted * 4 else min(wanted, os.cpu_count() or 1)

    # ---- Making

    def init_index(
        self,
        max_elements: int,
        M: int = 16,
        ef_construction: int = 200,
        random_seed: int = 100,
        allow_replace_deleted: bool = False,
    ) -> None:
        """Makes an empty index with room for max_elements."""
        with self._lock:
            if self._index is not None:
                raise RuntimeError("The index is already initiated.")
            self._index = self._empty(M, max(ef_construction, M), random_seed)
            self._max_elements = int(max_elements)
            self._replaces = bool(allow_replace_deleted)
            self._seed = random_seed
            self._next = 0

    def _empty(self, m: int, ef_construction: int, seed: int) -> _index.Index:
        return _index.Index(self.dim, self._metric, refine="f32", m=m, ef_build=ef_construction, seed=seed)

    def add_items(
        self,
        data: npt.ArrayLike,
        ids: npt.ArrayLike | None = None,
        num_threads: int = -1,
        replace_deleted: bool = False,
    ) -> None:
        """Adds vectors. A label that is there gets the new vector.

        ids: one label a row; None goes on counting.
        replace_deleted: each vector takes the place of one that is marked as deleted, while there is one.
        """
        rows = _matrix(data, self.dim)
        with self._lock:
            index = self._made()
            if replace_deleted and not self._replaces:
                raise RuntimeError("Replacement of deleted elements is disabled in constructor")
            labels = _labels(ids, len(rows), self._next)
            self._forget(labels, replace_deleted)
            # The last row of a label counts, as if the rows came one after another.
            kept = len(labels) - 1 - np.unique(labels[::-1], return_index=True)[1]
            kept.sort()
            vectors = _normalized(rows[kept]) if self._metric == "cosine" else rows[kept]
            try:
                index.add(vectors, labels[kept], threads=self._threads(num_threads, len(kept)), replace=True)
            except (ValueError, MemoryError) as error:
                raise RuntimeError(str(error)) from None
            self._next += len(rows)

    def _forget(self, labels: npt.NDArray[np.uint64], replace_deleted: bool) -> None:
        """Drops the deleted elements whose labels or places the new ones take, and checks the limit."""
        index = self._made()
        own = list(dict.fromkeys(labels.tolist()))
        again = [label for label in own if label in self._deleted]
        if again and self._replaces and not replace_deleted:
            raise RuntimeError(
                "Can't use addPoint to update deleted elements if replacement of deleted elements is enabled."
            )
        given = set(again)
        others = [label for label in self._deleted if label not in given] if replace_deleted else []
        places = others[: len(own) - len(again)]
        if self.get_current_count() + len(own) > self._max_elements:
            fresh = sum(label not in given and label not in index for label in own)
            if self.get_current_count() + fresh - min(fresh, len(places)) > self._max_elements:
                raise RuntimeError(_LIMIT)
        for label in again + places:
            del self._deleted[label]

    # ---- Searching

    def knn_query(
        self,
        data: npt.ArrayLike,
        k: int = 1,
        num_threads: int = -1,
        filter: _Filter | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
        """The k nearest of each row: labels (uint64) and distances (float32), both (rows, k).

        filter: a function that takes a label and returns whether it may be found. It is asked once for each element.
        """
        index = self._made()
        rows = _matrix(data, self.dim)
        ids, scores = index.search(
            rows, k=k, ef=_with_spare(max(self.ef, k)), threads=self._threads(num_threads, len(rows)), filter=filter
        )
        if np.any(ids == NO_ID):
            raise RuntimeError(
                "Cannot return the results in a contiguous 2D array. Probably ef or M is too small"
            )
        return ids, _distances(self._metric, scores)

    def set_ef(self, ef: int) -> None:
        """Sets how many candidates a search keeps."""
        self._default_ef = int(ef)

    def set_num_threads(self, num_threads: int) -> None:
        """Sets how many threads calls take that name no number."""
        self.num_threads = int(num_threads) if num_threads > 0 else os.cpu_count() or 1

    # ---- Elements

    def get_items(self, ids: npt.ArrayLike | None = None, return_type: str = "numpy") -> Any:
        """The vectors of labels, as an array or a list of lists. Under cosine they have length 1."""
        if return_type not in ("numpy", "list"):
            raise ValueError('return_type should be "numpy" or "list"')
        labels = np.asarray([] if ids is None else ids)
        if labels.ndim == 0:
            raise ValueError("get_items accepts a list of indices and returns a list of vectors")
        index = self._made()
        if not labels.size:
            return [] if return_type == "list" else np.empty(0, np.float32)
        try:
            vectors = index.get(labels.reshape(len(labels), -1)[:, 0].astype(np.uint64))
        except KeyError:
            raise RuntimeError("Label not found") from None
        return vectors.tolist() if return_type == "list" else vectors

    def get_ids_list(self) -> list[int]:
        """All labels, also those marked as deleted."""
        with self._lock:
            return [int(label) for label in self._made().ids()] + list(self._deleted)

    def mark_deleted(self, label: int) -> None:
        """Leaves an element out of searches."""
        index, own = self._made(), int(label)
        with self._lock:
            if own in self._deleted:
                raise RuntimeError("The requested to delete element is already deleted")
            try:
                vector = index.get([own])[0]
            except KeyError:
                raise RuntimeError("Label not found") from None
            index.delete([own])
            self._deleted[own] = vector

    def unmark_deleted(self, label: int) -> None:
        """Lets searches find an element again."""
        index, own = self._made(), int(label)
        with self._lock:
            if own not in self._deleted:
                known = own in index
                raise RuntimeError(
                    "The requested to undelete element is not deleted" if known else "Label not found"
                )
            index.add(self._deleted[own][None, :], [own])
            del self._deleted[own]

    def resize_index(self, new_size: int) -> None:
        """Changes max_elements."""
        with self._lock:
            if new_size < self.get_current_count():
                raise RuntimeError("Cannot resize, max element is less than the current number of elements")
            self._max_elements = int(new_size)

    def get_max_elements(self) -> int:
        """The number of elements that there is room for."""
        self._made()
        return self._max_elements

    def get_current_count(self) -> int:
        """The number of elements, also those marked as deleted."""
        return len(self._made()) + len(self._deleted)

    @property
    def ef(self) -> int:
        """How many candidates a search keeps."""
        return self._default_ef

    @ef.setter
    def ef(self, ef: int) -> None:
        self.set_ef(ef)

    @property
    def max_elements(self) -> int:
        """As ``get_max_elements``; 0 before there is an index."""
        return self._max_elements

    @property
    def element_count(self) -> int:
        """As ``get_current_count``; 0 before there is an index."""
        return 0 if self._index is None else self.get_current_count()

    @property
    def M(self) -> int:
        """Links a node; 0 before there is an index."""
        return 0 if self._index is None else self._index.stats()["m"]

    @property
    def ef_construction(self) -> int:
        """Candidates while adding; 0 before there is an index."""
        return 0 if self._index is None else self._index.stats()["ef_build"]

    # ---- Files

    def index_file_size(self) -> int:
        """Bytes of the file that ``save_index`` writes."""
        return self._made().stats()["bytes_total"]

    def save_index(self, path_to_index: str | os.PathLike[str]) -> None:
        """Writes an index file of Shortlist, with room for max_elements."""
        path = os.fspath(path_to_index)
        with self._lock:
            index = self._made()
            stats = index.stats()
            if stats["n"] + stats["deleted"] + stats["reusable"] > self._max_elements:
                index.compact()
            index.save(path, room=max(self._max_elements, 1))
            aside = pathlib.Path(f"{path}.deleted.npz")
            aside.unlink(missing_ok=True)
            if self._deleted:
                labels = np.fromiter(self._deleted, dtype=np.uint64, count=len(self._deleted))
                np.savez(aside, labels=labels, vectors=np.stack(list(self._deleted.values())))

    def load_index(
        self,
        path_to_index: str | os.PathLike[str],
        max_elements: int = 0,
        allow_replace_deleted: bool = False,
    ) -> None:
        """Reads a file of ``save_index``, or one that hnswlib itself saved."""
        path = os.fspath(path_to_index)
        if self._index is not None:
            warnings.warn("Calling load_index for an already inited index. Old index is being deallocated.", stacklevel=2)
        with self._lock:
            try:
                index, room, deleted = self._read(path)
            except Exception as error:
                raise RuntimeError(f"Index seems to be corrupted or unsupported: {error}") from None
            self._index, self._deleted = index, deleted
            count = len(index) + len(deleted)
            self._max_elements = max_elements if max_elements >= count else max(room, count)
            self._replaces = bool(allow_replace_deleted)
            self._next = count

    def _read(self, path: str) -> tuple[_index.Index, int, dict[int, npt.NDArray[np.float32]]]:
        with open(path, "rb") as file:
            head = file.read(16)
        if not head.startswith(_MAGIC):
            return self._imported(path, int.from_bytes(head[8:16], "little"))
        with _index.open(path) as mapped:
            room = mapped.stats()["room"]
        index = _index.open(path, place="dram", read_only=False)
        if index.dim != self.dim:
            raise ValueError(f"its vectors have {index.dim} dimensions")
        deleted: dict[int, npt.NDArray[np.float32]] = {}
        aside = pathlib.Path(f"{path}.deleted.npz")
        if aside.exists():
            with np.load(aside) as parts:
                deleted = dict(zip(parts["labels"].tolist(), parts["vectors"]))
        return self._with_metric(index), room, deleted

    def _imported(self, path: str, room: int) -> tuple[_index.Index, int, dict[int, npt.NDArray[np.float32]]]:
        index = _index.import_hnswlib(path, self._metric, dim=self.dim, refine="f32")
        labels = _marked(path)
        if not len(labels):
            return index, room, {}
        index.undelete(labels)
        vectors = index.get(labels)
        index.delete(labels)
        return index, room, dict(zip(labels.tolist(), vectors))

    def _with_metric(self, index: _index.Index) -> _index.Index:
        """The space is the user's to change: another metric links the same vectors anew."""
        if index.metric == self._metric:
            return index
        stats, labels = index.stats(), index.ids()
        changed = self._empty(stats["m"], stats["ef_build"], stats["seed"])
        changed.add(index.get(labels), labels)
        return changed

    # ---- Copies

    def __getstate__(self) -> tuple[dict[str, Any]]:
        with self._lock:
            state: dict[str, Any] = {
                "ser_version": _SERIAL_VERSION,
                "space": self.space,
                "dim": self.dim,
                "num_threads": self.num_threads,
                "seed": self._seed,
                "ef": self._default_ef,
                "max_elements": self._max_elements,
                "allow_replace_deleted": self._replaces,
                "next": self._next,
                "deleted": dict(self._deleted),
                "index": None if self._index is None else _saved(self._index),
            }
            return (state,)

    def __setstate__(self, state: tuple[Mapping[str, Any]]) -> None:
        if len(state) != 1 or "ser_version" not in state[0]:
            raise RuntimeError("Invalid state!")
        (fields,) = state
        if fields["ser_version"] > _SERIAL_VERSION:
            raise RuntimeError("Unpickle Error: Invalid serialization version!")
        self._metric = _metric(fields["space"])
        self._begin(fields["space"], fields["dim"])
        self.num_threads = fields["num_threads"]
        self._seed = fields["seed"]
        self._default_ef = fields["ef"]
        self._max_elements = fields["max_elements"]
        self._replaces = fields["allow_replace_deleted"]
        self._next = fields["next"]
        self._deleted = dict(fields["deleted"])
        self._index = None if fields["index"] is None else _opened(fields["index"])

    def __repr__(self) -> str:
        return f"<hnswlib.Index(space='{self.space}', dim={self.dim})>"


class BFIndex:
    """hnswlib.BFIndex: compares a query with all vectors. BFIndex(space, dim), with space "l2", "ip" or "cosine".

    Under cosine hnswlib does not normalise queries, so its distances are of the query as given; here as there.
    """

    def __init__(self, space: str, dim: int) -> None:
        self._metric = _metric(space)
        self.space = space
        self.dim = int(dim)
        self.num_threads: int = os.cpu_count() or 1
        self._next = 0
        self._rows: npt.NDArray[np.float32] | None = None
        self._labels = np.empty(0, np.uint64)
        self._places: dict[int, int] = {}
        self._lock = threading.RLock()

    def _made(self) -> npt.NDArray[np.float32]:
        if self._rows is None:
            raise RuntimeError("The index is not initiated; call init_index or load_index first.")
        return self._rows

    def init_index(self, max_elements: int) -> None:
        """Makes an empty index with room for max_elements."""
        if self._rows is not None:
            raise RuntimeError("The index is already initiated.")
        self._rows = np.empty((max_elements, self.dim), np.float32)
        self._labels = np.empty(max_elements, np.uint64)

    def add_items(self, data: npt.ArrayLike, ids: npt.ArrayLike | None = None) -> None:
        """Adds vectors. A label that is there gets the new vector."""
        rows = _matrix(data, self.dim)
        with self._lock:
            kept = self._made()
            labels = _labels(ids, len(rows), self._next)
            fresh = {label for label in labels.tolist() if label not in self._places}
            if len(self._places) + len(fresh) > len(kept):
                raise RuntimeError(_LIMIT)
            vectors = _normalized(rows) if self._metric == "cosine" else rows
            for label, vector in zip(labels.tolist(), vectors):
                place = self._places.setdefault(label, len(self._places))
                kept[place], self._labels[place] = vector, label
            self._next += len(rows)

    def delete_vector(self, label: int) -> None:
        """Takes a vector out. A label that is not there changes nothing."""
        with self._lock:
            rows, place = self._made(), self._places.pop(int(label), None)
            last = len(self._places)
            if place is None or place == last:
                return
            rows[place], self._labels[place] = rows[last], self._labels[last]
            self._places[int(self._labels[place])] = place

    def knn_query(
        self,
        data: npt.ArrayLike,
        k: int = 1,
        num_threads: int = -1,
        filter: _Filter | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
        """The k nearest of each row: labels (uint64) and distances (float32), both (rows, k)."""
        queries = _matrix(data, self.dim)
        with self._lock:
            count = len(self._places)
            rows, labels = self._made()[:count], self._labels[:count]
            if filter is not None:
                allowed = np.fromiter((bool(filter(int(label))) for label in labels), bool, count)
                rows, labels = rows[allowed], labels[allowed]
            if len(rows) < k:
                raise RuntimeError(f"{len(rows)} elements may be found, and k is {k}")
            metric: _index.Metric = "l2" if self._metric == "l2" else "ip"
            threads = num_threads if num_threads > 0 else max(1, self.num_threads)
            found, scores = exact(rows, queries, k=k, metric=metric, threads=min(threads, os.cpu_count() or 1))
            return labels[found], _distances(metric, scores)

    def set_num_threads(self, num_threads: int) -> None:
        """Sets how many threads searches take that name no number."""
        self.num_threads = int(num_threads) if num_threads > 0 else os.cpu_count() or 1

    def save_index(self, path_to_index: str | os.PathLike[str]) -> None:
        """Writes a file as hnswlib does: three counts of 64 bits, and each vector with its label."""
        with self._lock:
            rows, count = self._made(), len(self._places)
            elements = np.zeros(len(rows), self._element())
            elements["vector"][:count], elements["label"][:count] = rows[:count], self._labels[:count]
            with open(path_to_index, "wb") as file:
                np.array([len(rows), elements.itemsize, count], "<u8").tofile(file)
                elements.tofile(file)

    def load_index(self, path_to_index: str | os.PathLike[str], max_elements: int = 0) -> None:
        """Reads a file of ``save_index``, or one that hnswlib itself saved."""
        if self._rows is not None:
            warnings.warn("Calling load_index for an already inited index. Old index is being deallocated.", stacklevel=2)
        with open(path_to_index, "rb") as file:
            head = np.fromfile(file, "<u8", 3).tolist()
            if len(head) < 3 or head[1] != self._element().itemsize or head[2] > head[0]:
                raise RuntimeError("Index seems to be corrupted or unsupported")
            elements = np.fromfile(file, self._element(), head[0])
        if len(elements) < head[2]:
            raise RuntimeError("Index seems to be corrupted or unsupported")
        with self._lock:
            room, count = max(head[0], max_elements), head[2]
            self._rows, self._labels = np.empty((room, self.dim), np.float32), np.empty(room, np.uint64)
            self._rows[:count], self._labels[:count] = elements["vector"][:count], elements["label"][:count]
            self._places = {label: place for place, label in enumerate(self._labels[:count].tolist())}
            self._next = count

    def _element(self) -> np.dtype[Any]:
        return np.dtype([("vector", "<f4", (self.dim,)), ("label", "<u8")])

    def get_max_elements(self) -> int:
        """The number of vectors that there is room for."""
        return len(self._made())

    def get_current_count(self) -> int:
        """The number of vectors."""
        self._made()
        return len(self._places)

    def __repr__(self) -> str:
        return f"<hnswlib.BFIndex(space='{self.space}', dim={self.dim})>"
