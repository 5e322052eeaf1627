"""Rows of columns as the library takes them: as they lie in memory if their layout allows, else converted."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _arrow, _core
from ._arrow import F32, F64, I32, I64, TEXT, TEXTS, VECTOR, Column, packed

Data = Any
"""Rows of columns: a mapping of names to arrays or lists, a pandas DataFrame, a pyarrow Table or RecordBatch (or what
else has Arrow's C stream), a NumPy structured array, or the path of a CSV file. Columns that a model does not use may be
of any type; names must differ."""

Spec = Union[str, "os.PathLike[str]", Mapping[str, Any]]
"""A model's description (docs/SPEC.md): a dict, JSON text, or a file's path; a str that ends in .json is a path."""

Array = npt.NDArray[Any]


def _plain(array: Array, dtype: npt.DTypeLike) -> Array:
    """The array itself if it is contiguous, aligned and of dtype, else a copy that is."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def _numbers(name: str, array: Array, missing: Array | None = None) -> Column | None:
    """A column of a NumPy array of numbers or truth values; None where it is none."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    valid = None if missing is None or not missing.any() else packed(~missing)
    wanted: npt.DTypeLike
    if kind == "f":
        wanted, number = (np.float32, F32) if size <= 4 else (np.float64, F64)
    elif kind == "b" or (kind in "iu" and (size < 4 or (kind == "i" and size == 4))):
        wanted, number = np.int32, I32
    elif kind == "i" or (kind == "u" and (size < 8 or array.size == 0 or int(array.max()) < 2**63)):
        wanted, number = np.int64, I64
    elif kind == "u":
        return text_column(name, [str(value) for value in array.tolist()], valid)
    else:
        return None
    return Column(name, number, 0, _plain(array, wanted), None, None, valid)


def _offsets(lengths: list[int]) -> Array:
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


_WHOLE = (int, np.integer, np.bool_)
_NARROW = (np.float32, np.float16)
_FLOATS = (float, np.floating)


def _of(kinds: set[type], among: tuple[type, ...]) -> bool:
    return all(issubclass(kind, among) for kind in kinds)


def _float_text(value: float | np.floating[Any]) -> str:
    """The text that the library gives a float: its digits where it is an integer of 64 bits, else the shortest form of
    C's that reads back as itself."""
    number, narrow = float(value), isinstance(value, _NARROW)
    if number.is_integer() and -(2**63) <= number < 2**63:
        return str(int(number))
    least, most = (6, 9) if narrow else (15, 17)
    for digits in range(least, most):
        text = f"{number:.{digits}g}"
        if (np.float32(float(text)) if narrow else float(text)) == number:
            return text
    return f"{number:.{most}g}"


def _decimal_text(value: Decimal) -> str:
    """The text of the float that says the same, else the decimal's own digits without zeros at the end."""
    text = _float_text(float(value))
    if not value.is_finite() or Decimal(text) == value:
        return text
    digits = format(value, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _number_text(value: Any) -> str:
    """A number's text. A whole number keeps all digits: numbers beyond 2**53 never pass through a float."""
    if isinstance(value, _WHOLE):
        return str(int(value))
    return _decimal_text(value) if isinstance(value, Decimal) else _float_text(value)


def _utf8(name: str, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        number = isinstance(value, (*_WHOLE, *_FLOATS, Decimal))
        return (_number_text(value) if number else str(value)).encode()
    except UnicodeEncodeError:
        raise ValueError(f"column {name!r} holds {value!r}, which UTF-8 has no form for") from None


def _joined(name: str, values: list[Any]) -> tuple[bytes, Array]:
    """The bytes of texts, one after the other, and their offsets."""
    if set(map(type, values)) <= {str}:
        text = "".join(values)
        if text.isascii():
            return text.encode("ascii"), _offsets(list(map(len, values)))
    encoded = [_utf8(name, value) for value in values]
    return b"".join(encoded), _offsets([len(text) for text in encoded])


def text_column(name: str, values: list[Any], valid: Array | None = None) -> Column:
    """A column of texts."""
    data, offsets = _joined(name, values)
    return Column(name, TEXT, 0, data, offsets, None, valid)


def _texts_column(name: str, values: list[Any], valid: Array | None) -> Column:
    data, offsets = _joined(name, ["" if _is_missing(one) else one for value in values for one in value])
    return Column(name, TEXTS, 0, data, offsets, _offsets([len(value) for value in values]), valid)


def _is_missing(value: object) -> bool:
    if value is None or (isinstance(value, _FLOATS) and bool(np.isnan(value))):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NAType", "NaTType")  # of pandas


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def _holds_floats(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "f")
    return len(value) > 0 and all(isinstance(one, (float, np.floating)) for one in value)


def _vector_column(name: str, values: list[Any], missing: Array) -> Column:
    lengths = {len(value) for value, gone in zip(values, missing.tolist()) if not gone}
    if len(lengths) != 1:
        raise ValueError(f"column {name!r} holds vectors of lengths {sorted(lengths)[:5]}; they must be of one length")
    (dim,) = lengths
    out = np.full((len(values), dim), np.nan, np.float32)
    for row, value in enumerate(values):
        if not missing[row]:
            out[row] = value
    return Column(name, VECTOR, dim, out, None, None, packed(~missing) if missing.any() else None)


def _numbers_as_texts(name: str, values: list[Any], gone: list[bool]) -> Column:
    texts = ["" if missing else _number_text(value) for value, missing in zip(values, gone)]
    if "inf" in texts or "-inf" in texts:
        raise ValueError(f"column {name!r} holds an infinite number")
    return text_column(name, texts)


def _object_numbers(name: str, values: list[Any], missing: Array, kinds: set[type]) -> Column | None:
    """A column of Python's and NumPy's numbers of one or several types; None where others are among them. Each number
    keeps the category it has alone: where no array holds them all, they go as texts."""
    gone = missing.tolist()
    if _of(kinds, _WHOLE):
        try:
            whole = np.fromiter((0 if hole else int(one) for one, hole in zip(values, gone)), np.int64, len(values))
        except OverflowError:
            return _numbers_as_texts(name, values, gone)
        return _numbers(name, whole, missing)
    if not _of(kinds, (*_WHOLE, *_FLOATS, Decimal)):
        return None
    narrow = [kind for kind in kinds if issubclass(kind, _NARROW)]
    exact = _of(kinds, _WHOLE + _FLOATS) and all(
        abs(int(value)) <= 2**53 for value in values if isinstance(value, _WHOLE)
    )
    if (narrow and len(narrow) < len(kinds)) or not exact:
        return _numbers_as_texts(name, values, gone)
    filled = [np.nan if hole else float(value) for value, hole in zip(values, gone)]
    return _numbers(name, np.array(filled, np.float32 if narrow else np.float64))


def _object_column(name: str, values: list[Any]) -> Column:
    """A column of Python objects: numbers, texts, lists of texts, or lists of floats, any of them missing."""
    if set(map(type, values)) <= {str}:
        return text_column(name, values)
    missing = np.fromiter((_is_missing(value) for value in values), np.bool_, len(values))
    present = [value for value, gone in zip(values, missing.tolist()) if not gone]
    valid = packed(~missing) if missing.any() else None
    if any(_is_list(value) for value in present):
        if not all(_is_list(value) for value in present):
            raise ValueError(f"column {name!r} holds lists beside single values")
        if all(_holds_floats(value) for value in present):
            return _vector_column(name, values, missing)
        return _texts_column(name, [() if gone else value for value, gone in zip(values, missing.tolist())], valid)
    if not any(isinstance(value, (str, bytes)) for value in present):
        if not present:
            return Column(name, F32, 0, np.full(len(values), np.nan, np.float32), None, None, None)
        column = _object_numbers(name, values, missing, set(map(type, present)))
        if column is not None:
            return column
        raise ValueError(f"column {name!r} holds {type(present[0]).__name__}; it must hold numbers, texts or lists")
    return text_column(name, ["" if gone else value for value, gone in zip(values, missing.tolist())], valid)


def _array_column(name: str, array: Array) -> Column:
    if np.ma.isMaskedArray(array):
        missing = np.ma.getmaskarray(array)
        if array.ndim != 1:
            raise ValueError(f"column {name!r} is a masked array of vectors; fill it, or give None for a missing vector")
        column = _numbers(name, array.filled(0), missing)
        return column or _object_column(name, array.tolist())
    kind = array.dtype.kind
    if array.ndim == 2 and kind in "fiub":
        with np.errstate(over="ignore"):
            return Column(name, VECTOR, array.shape[1], _plain(array, np.float32), None, None, None)
    if array.ndim == 2 and kind in "UTSO":
        return _texts_column(name, array.tolist(), None)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} has shape {array.shape}; it must be (n,), or (n, dim) for vectors")
    column = _numbers(name, array)
    if column is None and kind in "UTSO":
        column = _object_column(name, array.tolist())
    if column is None:
        raise ValueError(f"column {name!r} holds {array.dtype}; it must hold numbers, texts or lists")
    return column


def _arrow_column(name: str, values: Any) -> Column:
    """A column of an Arrow array."""
    values = _arrow.flat(name, values)
    if _arrow.is_decimal(values):
        return _object_column(name, values.to_pylist())
    return _arrow.column(name, values)


def _series_column(name: str, series: Any) -> Column:
    """A column of a pandas Series."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return _array_column(name, series.to_numpy())
    if hasattr(series, "cat"):
        values = np.append(np.asarray(series.cat.categories, object), [None])
        return _object_column(name, values[series.cat.codes.to_numpy()].tolist())
    if hasattr(series.array, "__arrow_array__") and _arrow.module() is not None:
        return _arrow_column(name, series.array.__arrow_array__())
    return _object_column(name, series.to_numpy(dtype=object).tolist())


def _any_column(name: str, values: Any) -> Column:
    if type(values).__module__.partition(".")[0] == "pandas" and hasattr(values, "dtype"):
        return _series_column(name, values if hasattr(values, "iloc") else sys.modules["pandas"].Series(values))
    arrow = _arrow.exported(values)
    if arrow is not None:
        return _arrow_column(name, arrow)
    # The array of a column with missing values may be one of floats, which hold no numbers beyond 2**53.
    as_array = hasattr(values, "__array__") and not hasattr(values, "__arrow_c_stream__")
    if isinstance(values, np.ndarray) or as_array:
        return _array_column(name, values if isinstance(values, np.ndarray) else np.asarray(values))
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__"):
        raise ValueError(f"column {name!r} is one {type(values).__name__}; it must hold a value for each row")
    return _object_column(name, values.to_list() if hasattr(values, "to_list") else list(values))


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, bool, int, float, Decimal, np.generic)) or _is_missing(value)


Part = tuple[str, Callable[[], Column]]
"""A column's name, and what makes the column."""


def _mapping_columns(data: Mapping[Any, Any]) -> list[Part]:
    if data and all(_is_scalar(value) for value in data.values()):
        return [(str(name), partial(_object_column, str(name), [value])) for name, value in data.items()]
    return [(str(name), partial(_any_column, str(name), values)) for name, values in data.items()]


def _columns(data: Data) -> list[Part]:
    if isinstance(data, Mapping):
        return _mapping_columns(data)
    if isinstance(data, np.ndarray):
        if data.dtype.names is None:
            raise ValueError(f"data is an array of {data.dtype} without field names; give a dict of columns")
        if data.ndim != 1:
            raise ValueError(f"data has shape {data.shape}; a structured array must be (n,)")
        return [(name, partial(_array_column, name, data[name])) for name in data.dtype.names]
    if hasattr(data, "columns") and hasattr(data, "iloc"):  # pandas
        return [(str(name), partial(_series_column, str(name), data.iloc[:, i])) for i, name in enumerate(data.columns)]
    found = _arrow.columns(data)
    if found is None:
        raise TypeError(
            f"data is {type(data).__name__}; it must be a dict of columns, a pandas DataFrame, a pyarrow Table, a "
            "NumPy structured array or the path of a CSV file"
        )
    return [(name, partial(_arrow_column, name, values)) for name, values in found]


def _strings(value: object) -> set[str]:
    """All texts in what JSON holds."""
    if isinstance(value, str):
        return {value}
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(_strings, values))


def _used(spec: str) -> set[str] | None:
    """Names, with those of all columns that a spec uses among them. None where the spec is no
    JSON; the library reports that."""
    try:
        return _strings(json.loads(spec))
    except ValueError:
        return None


def _made(parts: list[Part], used: set[str] | None) -> list[Column]:
    """The columns, without unused ones that the library does not take."""
    columns = []
    for name, make in parts:
        try:
            columns.append(make())
        except Exception:
            if used is None or name in used:
                raise
    return columns


def table(data: Data, spec: str | None = None, group: str | None = None) -> _core.Table:
    """Rows in memory. With a spec, columns that neither the spec nor group names may be of any type."""
    parts = _columns(data)
    names = [name for name, _ in parts]
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"{times} columns are named {name!r}; names must differ")
    used = None if spec is None else _used(spec)
    columns = _made(parts, None if used is None else used | {group or ""})
    lengths = {column.rows() for column in columns}
    if len(lengths) > 1:
        said = ", ".join(f"{column.name!r} {column.rows()}" for column in columns[:6])
        raise ValueError(f"the columns are of different lengths: {said}")
    return _core.Table(lengths.pop() if lengths else 0, [tuple(column) for column in columns])


def is_path(data: object) -> bool:
    """Returns True if data names a file."""
    return isinstance(data, (str, bytes, os.PathLike))


def rows_of_update(data: Data) -> _core.Table:
    """Rows in memory that change an item table."""
    if is_path(data):
        raise ValueError("an update is of rows in memory; read the file with pandas or pyarrow first")
    return table(data)


def source(
    data: Data, spec: str | None = None, delimiter: str = ",", group: str | None = None
) -> _core.Table | _core.Csv:
    """Rows in memory or of a CSV file. The "csv" of the spec, if there is one, gives the file's form."""
    if is_path(data):
        return _core.Csv(os.fsencode(data), spec, delimiter, None)
    return table(data, spec, group)


def spec_text(spec: Spec) -> str:
    """A spec's JSON text, of a dict, JSON text, or the path of a file."""
    if isinstance(spec, Mapping):
        try:
            return json.dumps(spec, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"spec: {error}") from None
    if isinstance(spec, str) and not spec.endswith(".json"):
        return spec
    with open(spec, encoding="utf-8") as file:
        return file.read()
