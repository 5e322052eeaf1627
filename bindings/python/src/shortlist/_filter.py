"""Filters: ids that may be found, and ids that may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Protocol, Union, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Index as _Handle
from ._arrays import Ids, count, id_array, unmasked

AnyFilter = Union["Filter", npt.ArrayLike, Callable[[int], object], None]
AnyFilters = Union[AnyFilter, Sequence[Union["Filter", None]]]
Exclude = Union[npt.NDArray[Any], Sequence[npt.ArrayLike], tuple[npt.ArrayLike, npt.ArrayLike]]


def exclusions(exclude: Exclude | None, n: int, one: bool) -> tuple[npt.NDArray[np.int64] | None, Ids | None]:
    """Offsets and ids of the exclusions of n requests. exclude: a tuple of just these, a list of arrays, or the ids of
    one request."""
    if exclude is None:
        return None, None
    if isinstance(exclude, tuple):
        if len(exclude) != 2:
            raise ValueError(f"exclude is a tuple of {len(exclude)}; it must be (offsets, ids), or a list of arrays")
        start = np.ascontiguousarray(exclude[0], np.int64)
        ids = id_array(unmasked("exclude", exclude[1])) if np.size(exclude[1]) else np.zeros(0, np.uint64)
        if start.shape != (n + 1,) or start[0] != 0 or start[-1] != ids.size or (np.diff(start) < 0).any():
            raise ValueError(f"exclude has offsets that are not {n + 1} rising numbers from 0 to {ids.size}")
        return start, ids.reshape(-1)
    lists: list[Any] = [exclude] if one else list(exclude)
    if not one and any(np.ndim(ids) == 0 for ids in lists):
        raise ValueError(f"exclude is one list of ids for {n} vectors; give a list of them for each")
    if len(lists) != n:
        raise ValueError(f"exclude has {len(lists)} lists of ids for {n} vectors")
    arrays = [id_array(unmasked("exclude", ids)).reshape(-1) if np.size(ids) else np.zeros(0, np.uint64) for ids in lists]
    start = np.zeros(n + 1, np.int64)
    np.cumsum([array.size for array in arrays], out=start[1:])
    return start, np.concatenate(arrays) if arrays else np.zeros(0, np.uint64)


def _ids(what: str, given: npt.ArrayLike | None) -> tuple[Ids | None, int]:
    if given is None:
        return None, 0
    given = unmasked(what, given)
    array = np.asarray(given)
    # numpy makes floats of a list of ids some of which are over 2**63.
    ids = id_array(given if array.dtype.kind == "f" else array).reshape(-1) if array.size else np.zeros(0, np.uint64)
    return ids, ids.size


def _words(what: str, bits: npt.ArrayLike | None, dtype: type[np.generic]) -> tuple[npt.NDArray[np.uint64] | None, int]:
    """A boolean array, or packed bits, as words and a number of bits."""
    if bits is None:
        return None, 0
    array = np.asarray(unmasked(what, bits))
    if array.dtype != dtype:
        raise ValueError(f"{what} is an array of {array.dtype}; it must be of {dtype.__name__}")
    if array.ndim != 1:
        raise ValueError(f"{what} has shape {array.shape}; it must be (n,)")
    packed = array if dtype is np.uint8 else np.packbits(array, bitorder="little")
    words = np.zeros((len(packed) + 7) // 8, "<u8")
    words.view(np.uint8)[: len(packed)] = packed
    return words.astype(np.uint64), array.size * (8 if dtype is np.uint8 else 1)


def _key_range(keys: tuple[int | None, int | None] | None) -> tuple[int, int]:
    if keys is None:
        return 0, 2**64 - 1
    if len(keys) != 2:
        raise ValueError(f"keys has {len(keys)} entries; it must be (lo, hi)")
    low, high = keys
    return (
        0 if low is None else count("keys[0]", low, 2**64),
        2**64 - 1 if high is None else count("keys[1]", high, 2**64),
    )


def _made(
    index: _core.Index,
    allow: npt.ArrayLike | Callable[[int], object] | None,
    words: tuple[npt.NDArray[np.uint64] | None, int] = (None, 0),
    exclude: npt.ArrayLike | None = None,
    masks: tuple[int, int, int] = (0, 0, 0),
    keys: tuple[int | None, int | None] | None = None,
    what: str = "allow",
) -> _core.Filter:
    accept, ids = (allow, None) if callable(allow) else (None, allow)
    return _core.Filter(
        index, *words, *_ids(what, ids), *_ids("exclude", exclude), accept, masks, _key_range(keys)
    )


def handle_of(index: _core.Index, filter: AnyFilter, what: str = "filter") -> _core.Filter | None:
    """The handle of a filter. Unless it is a Filter, it is made here: of a boolean array over the ids, of the ids that may
    be found, or of a function of an id. what: the argument's name, for messages."""
    if filter is None or isinstance(filter, Filter):
        return None if filter is None else filter._core
    if not callable(filter) and np.asarray(filter).dtype == np.bool_:
        return _made(index, None, _words(what, filter, np.bool_))
    return _made(index, filter, what=what)


def handles_of(index: _core.Index, filter: AnyFilters) -> _core.Filter | list[_core.Filter | None] | None:
    """The handle of a filter of all queries, or those of a list of filters, one a query."""
    listed = list(cast("Sequence[Filter | None]", filter)) if isinstance(filter, (list, tuple)) else []
    if not any(isinstance(one, Filter) for one in listed) and not (listed and all(one is None for one in listed)):
        return handle_of(index, cast("AnyFilter", filter))
    for i, one in enumerate(listed):
        if one is not None and not isinstance(one, Filter):
            raise ValueError(f"filter[{i}] is {type(one).__name__}; in a list of filters it must be a Filter or None")
    return [handle_of(index, one) for one in listed]


class _Index(Protocol):
    """A shortlist.Index: what a filter needs of it."""

    _core: _Handle


class Filter:
    """The vectors of an index that searches may find, looked up once.

    index: the index. The filter serves no other.
    allow: the ids that may be found: an array of ids, or a function of an id that tells whether it is allowed. Ids that
        the index lacks are passed over. None allows all.
    mask: a boolean array over ids. Ids beyond its end are not allowed.
    bits: as mask, packed into uint8, lowest bit first, as by np.packbits(..., bitorder="little"). Not with mask.
    exclude: ids that may not be found.
    any_tags, all_tags, none_tags: masks over the tags of an index that has them. A vector's tag word must have a bit of
        any_tags, all bits of all_tags, and no bit of none_tags. A mask of 0 allows all.
    keys: (lo, hi): the least and the largest key that may be found, for an index that has keys. None as either leaves
        that end open.

    An id is allowed where all that is given allows it. Deleted vectors are never allowed. ``refresh`` takes in vectors
    that were added or replaced later, and tags and keys that were set. Until then the filter goes by those it was made
    with. A search raises ValueError where the index was renumbered since: after an add, a save, a tuning or a
    compaction. Then call ``refresh``.

    A filter takes an eighth of a byte a vector. Making one takes longer than a search: keep what serves several calls,
    such as the filter of a user, ``Filter(index, exclude=seen)``. ``search`` takes a list of filters, one a query.

    len(filter) is the number of vectors that are allowed now.

    Threads: searches may share a filter. A refresh waits for searches with filters of its index, and holds later ones up.
    """

    __slots__ = ("__weakref__", "_core")

    def __init__(
        self,
        index: _Index,
        allow: npt.ArrayLike | Callable[[int], object] | None = None,
        *,
        mask: npt.ArrayLike | None = None,
        bits: npt.ArrayLike | None = None,
        exclude: npt.ArrayLike | None = None,
        any_tags: int = 0,
        all_tags: int = 0,
        none_tags: int = 0,
        keys: tuple[int | None, int | None] | None = None,
    ) -> None:
        if mask is not None and bits is not None:
            raise ValueError("mask and bits are both given; give one")
        words = _words("mask", mask, np.bool_) if bits is None else _words("bits", bits, np.uint8)
        masks = (
            count("any_tags", any_tags, 2**64),
            count("all_tags", all_tags, 2**64),
            count("none_tags", none_tags, 2**64),
        )
        self._core = _made(index._core, allow, words, exclude, masks, keys)

    def refresh(self) -> None:
        """Brings the filter up to date with the index. It calls a function again for each id. If the function
        raises, the filter stays as it was."""
        self._core.refresh()

    def __len__(self) -> int:
        return self._core.count()
