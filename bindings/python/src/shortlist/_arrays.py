"""The caller's arrays as the library takes them: as they are if their layout allows, else converted."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core

NO_ID: int = _core.NO_ID
"""The id that fills a row of results after the last one found; its score is NaN."""

Ids = npt.NDArray[np.uint64]
Scores = npt.NDArray[np.float32]

# numpy's names of the element types the library takes, to its own.
_NATIVE = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",  # of the package ml_dtypes
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
}
INTEGER = {"i8": np.int8, "u8": np.uint8, "i16": np.int16}

# The same for the common ones in the machine's byte order: making a dtype's name takes longer than a short search.
_QUICK = {np.dtype(name): own for name, own in _NATIVE.items() if name != "bfloat16"}


def _native(dtype: np.dtype[Any]) -> str | None:
    return _QUICK.get(dtype) or _NATIVE.get(dtype.name)


def dtype_name(dtype: object) -> str:
    """The library's name of an element type given by that name, by numpy's, or as a numpy type."""
    if isinstance(dtype, str):
        # The library's own names go first: numpy reads "i8" as eight bytes.
        name = dtype if dtype in _core.DTYPES else _NATIVE.get(dtype, "")
    else:
        try:
            name = _NATIVE.get(np.dtype(dtype).name, "")  # type: ignore[call-overload]
        except TypeError:
            name = ""
    if not name:
        raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(_core.DTYPES)}")
    return name


def choice(what: str, value: str, among: dict[str, int]) -> int:
    """The number of a name of an enumeration."""
    number = among.get(value) if isinstance(value, str) else None
    if number is None:
        raise ValueError(f"{what} is {value!r}; it must be one of {', '.join(among)}")
    return number


def numa_policy(text: str | None) -> tuple[int, int]:
    """The number of a NUMA policy and its node."""
    if text is None:
        return 0, 0
    if not isinstance(text, str):
        raise TypeError(f"numa must be a str or None, not {type(text).__name__}")
    return _core.parse_numa(text)


def count(what: str, value: object, limit: int = 2**63) -> int:
    """A whole number from 0 to below limit; as it is, one the library can take as a size."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a whole number, not {type(value).__name__}") from None
    if not 0 <= number < limit:
        raise ValueError(f"{what} is {number}; it must be from 0 to 2**{limit.bit_length() - 1} - 1")
    return number


def _real(what: str, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} must be a number, not {type(value).__name__}") from None


def amount(what: str, value: object) -> float:
    """A number from 0 on."""
    number = _real(what, value)
    if not number >= 0:
        raise ValueError(f"{what} is {number}; it must be 0 or more")
    return number


def share(what: str, value: object) -> float:
    """A number above 0, up to 1."""
    number = _real(what, value)
    if not 0 < number <= 1:
        raise ValueError(f"{what} is {number}; it must be above 0, up to 1")
    return number


def unmasked(what: str, x: npt.ArrayLike) -> npt.ArrayLike:
    """x, unless it is a masked array: NumPy would drop its mask without a word."""
    if isinstance(x, np.ma.MaskedArray):
        raise ValueError(f"{what} is a masked array; give what is to be used, by filled() or compressed()")
    return x


def _as_matrix(what: str, x: npt.ArrayLike, dim: int | None, allow_one: bool) -> tuple[npt.NDArray[Any], bool]:
    array = np.asarray(unmasked(what, x))
    one = allow_one and array.ndim == 1
    if one:
        array = array[np.newaxis, :]
    if array.ndim != 2:
        allowed = "(n, dim) or (dim,)" if allow_one else "(n, dim)"
        raise ValueError(f"{what} has shape {array.shape}; it must be {allowed}")
    if dim is not None and array.shape[1] != dim:
        raise ValueError(f"{what} has vectors of dimension {array.shape[1]}, where {dim} is needed")
    if array.dtype.kind not in "fiu" and not _native(array.dtype):
        raise ValueError(f"{what} holds {array.dtype}; vectors must be of real numbers")
    return array, one


def _usable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself if the library can read it, else a copy of the same type."""
    if array.flags.c_contiguous and array.dtype in _QUICK and array.flags.aligned:
        return array
    row = array.shape[1] * array.itemsize
    contiguous = array.shape[1] < 2 or array.strides[1] == array.itemsize
    apart = array.shape[0] < 2 or array.strides[0] >= row
    if not (array.size == 0 or (contiguous and apart)) or not array.flags.aligned or not array.dtype.isnative:
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    # The buffer protocol has no word for bfloat16.
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _to_f32(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # A value beyond the range becomes infinite. The library refuses it and names the row.
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float32, order="C")


def rows(
    what: str, x: npt.ArrayLike, dim: int, index_dtype: str, allow_one: bool = False
) -> tuple[npt.NDArray[Any], str, bool]:
    """Vectors for an index: the matrix, its element type, and whether it was given as one vector."""
    array, one = _as_matrix(what, x, dim, allow_one)
    dtype = _native(array.dtype)
    if index_dtype in INTEGER:
        if dtype != index_dtype:
            wanted = INTEGER[index_dtype].__name__
            raise ValueError(
                f"{what} holds {array.dtype}, but this index keeps {wanted} exactly and takes nothing else; "
                f"convert it with astype(np.{wanted}), or make an index with dtype='f32'"
            )
    elif dtype is None or dtype in INTEGER:
        array, dtype = _to_f32(array), "f32"
    return _usable(array), dtype, one


def rows_and_old(
    x: npt.ArrayLike, old: npt.ArrayLike | None, dim: int, index_dtype: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, str]:
    """Vectors for an index and those that they replace, if given: contiguous matrices of one shape. Their element
    type."""
    array, dtype, _ = rows("x", x, dim, index_dtype)
    if old is None:
        return array, None, dtype
    other, other_dtype, _ = rows("old", old, dim, index_dtype)
    if array.shape != other.shape:
        raise ValueError(f"old has {len(other)} rows, but x has {len(array)}")
    if dtype != other_dtype:
        dtype = "f32"
        array, other = (_to_f32(_as_matrix(what, given, dim, False)[0]) for what, given in (("x", x), ("old", old)))
    return np.ascontiguousarray(array), np.ascontiguousarray(other), dtype


def alike(
    x: npt.ArrayLike, q: npt.ArrayLike
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], str, bool]:
    """Base and queries of one element type: theirs if they share one that the library has, else f32."""
    base, _ = _as_matrix("x", x, None, False)
    queries, one = _as_matrix("q", q, base.shape[1], True)
    dtype = _native(base.dtype)
    if dtype is None or dtype != _native(queries.dtype):
        base, queries, dtype = _to_f32(base), _to_f32(queries), "f32"
    return _usable(base), _usable(queries), dtype, one


def results(n: int, k: int) -> tuple[Ids, Scores]:
    """Room for k results of each of n queries."""
    return np.empty((n, k), np.uint64), np.empty((n, k), np.float32)


def id_array(ids: npt.ArrayLike, what: str = "ids", most: int = 2**64 - 2) -> Ids:
    """Ids, or other numbers up to `most`, as a contiguous array of uint64, of the shape given."""
    ids = unmasked(what, ids)
    if not isinstance(ids, np.ndarray):
        # Whole numbers over 2**63 beside smaller ones have no common type of numpy's; as objects they keep their value.
        ids = np.asarray(ids, dtype=None if hasattr(ids, "__array__") else object)
    if ids.dtype.kind == "O":
        return _id_array_of_objects(ids, what, most)
    if ids.dtype.kind not in "iu":
        raise ValueError(f"{what} hold {ids.dtype}; they must be whole numbers")
    if ids.dtype.kind == "i" and ids.size and ids.min() < 0:
        raise ValueError(f"{what} hold {ids.min()}; {_range(what, most)}")
    return np.ascontiguousarray(ids, dtype=np.uint64).reshape(ids.shape)


def _range(what: str, most: int) -> str:
    return f"{'an id' if what == 'ids' else 'each'} must be from 0 to 2**64 - {2**64 - most}"


def _id_array_of_objects(ids: npt.NDArray[np.object_], what: str, most: int) -> Ids:
    out = np.empty(ids.shape, np.uint64)
    for place, value in enumerate(ids.ravel().tolist()):
        try:
            number = operator.index(value)
        except TypeError:
            raise ValueError(f"{what} hold {value!r}; they must be whole numbers") from None
        if not 0 <= number < 2**64:
            raise ValueError(f"{what} hold {number}; {_range(what, most)}")
        out.flat[place] = number
    return out


def one_or_many(ids: npt.ArrayLike) -> Ids:
    """One id, or (n,) of them."""
    labels = id_array(ids)
    if labels.ndim > 1:
        raise ValueError(f"ids have shape {labels.shape}; they must be one id or (n,)")
    return labels


def words(what: str, given: npt.ArrayLike, n: int, of: str) -> npt.NDArray[np.uint64]:
    """One whole number of 64 bits for each of n."""
    array = id_array(unmasked(what, given), what, 2**64 - 1)
    if array.ndim > 1 or array.size != n:
        raise ValueError(f"{what} have shape {array.shape}, but there are {n} {of}")
    return array
