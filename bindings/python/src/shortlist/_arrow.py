"""Columns of Arrow's. The library reads their buffers in place. pyarrow is used where the caller has it."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

F32, F64, I32, I64, TEXT, TEXTS, VECTOR = range(7)  # sl_column_type


class Column(NamedTuple):
    """A column as _core.Table takes it; what a type has no use for is None. Offsets are int64; valid is a bitmap, its
    lowest bits first."""

    name: str
    type: int
    dim: int
    values: Any
    offsets: npt.NDArray[np.int64] | None
    lists: npt.NDArray[np.int64] | None
    valid: Any

    def rows(self) -> int:
        bounds = self.lists if self.lists is not None else self.offsets
        return len(self.values) if bounds is None else len(bounds) - 1


def packed(present: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """A bitmap of truth values."""
    return np.packbits(present, bitorder="little")


def module() -> Any:
    """pyarrow, or None where it is not installed."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        return None


def exported(values: Any) -> Any:
    """One of pyarrow's arrays, or what else offers its values as one; None for other values, and where there is no
    pyarrow."""
    converts, streams = callable(getattr(values, "to_arrow", None)), hasattr(values, "__arrow_c_stream__")
    offers = converts or streams or hasattr(values, "__arrow_c_array__")
    arrow = module() if offers else sys.modules.get("pyarrow")
    if arrow is None:
        return None
    kinds = (arrow.Array, arrow.ChunkedArray)
    if offers and not isinstance(values, kinds):
        values = values.to_arrow() if converts else arrow.chunked_array(values) if streams else arrow.array(values)
    return values if isinstance(values, kinds) else None


def columns(data: Any) -> list[tuple[str, Any]] | None:
    """The columns of a table of Arrow's, or of data that Arrow can take as one: their names and arrays. None for other
    data."""
    arrow = module()
    if arrow is None:
        return None
    if not isinstance(data, (arrow.Table, arrow.RecordBatch)):
        if hasattr(data, "__arrow_c_stream__"):
            data = arrow.table(data)
        elif callable(getattr(data, "to_arrow", None)):
            data = data.to_arrow()
        if not isinstance(data, (arrow.Table, arrow.RecordBatch)):
            return None
    return [(name, data.column(i)) for i, name in enumerate(data.schema.names)]


def _whole(arrow: Any, values: Any) -> Any:
    """One array of the chunks of a column."""
    if not isinstance(values, arrow.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    whole = values.combine_chunks()
    return whole if isinstance(whole, arrow.Array) else arrow.concat_arrays(whole.chunks)


def _valid(values: Any) -> Any:
    """The bitmap of an array, moved to begin at a byte where it does not; None where nothing is missing."""
    if values.null_count == 0:
        return None
    bits = np.frombuffer(values.buffers()[0], np.uint8)
    first, count = values.offset, len(values)
    if first % 8 == 0:
        return bits[first // 8 :]
    return packed(np.unpackbits(bits, bitorder="little")[first : first + count].astype(np.bool_))


def _bounds(values: Any, width: int) -> npt.NDArray[np.int64]:
    """The offsets of a text or list array, widened to 64 bits where they are of 32."""
    buffer = values.buffers()[1]
    if len(values) == 0 or buffer is None or buffer.size == 0:
        return np.zeros(1, np.int64)
    all_bounds = np.frombuffer(buffer, np.int32 if width == 32 else np.int64)
    return all_bounds[values.offset : values.offset + len(values) + 1].astype(np.int64, copy=False)


def _bytes(values: Any) -> Any:
    buffer = values.buffers()[2]
    return b"" if buffer is None else buffer


def _numbers(values: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(len(values), dtype)
    return np.frombuffer(buffer, dtype)[values.offset : values.offset + len(values)]


def _number_column(arrow: Any, name: str, values: Any) -> Column | None:
    types, kind = arrow.types, values.type
    small = types.is_boolean(kind) or types.is_int8(kind) or types.is_int16(kind)
    if small or types.is_uint8(kind) or types.is_uint16(kind):
        values = values.cast(arrow.int32())
    elif types.is_uint32(kind):
        values = values.cast(arrow.int64())
    elif types.is_float16(kind):
        values = values.cast(arrow.float32())
    elif types.is_null(kind):
        values = arrow.nulls(len(values), arrow.float32())
    kind, valid = values.type, _valid(values)
    for number, (own, dtype) in enumerate(
        [(arrow.float32(), "f4"), (arrow.float64(), "f8"), (arrow.int32(), "i4"), (arrow.int64(), "i8")]
    ):
        if kind == own:
            return Column(name, number, 0, _numbers(values, dtype), None, None, valid)
    return None


def _text_column(arrow: Any, name: str, values: Any) -> Column | None:
    types, kind = arrow.types, values.type
    if types.is_string(kind) or types.is_binary(kind):
        return Column(name, TEXT, 0, _bytes(values), _bounds(values, 32), None, _valid(values))
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return Column(name, TEXT, 0, _bytes(values), _bounds(values, 64), None, _valid(values))
    return None


def _list_column(arrow: Any, name: str, values: Any) -> Column | None:
    types, kind = arrow.types, values.type
    inner = kind.value_type
    if types.is_fixed_size_list(kind) and (types.is_floating(inner) or types.is_integer(inner)):
        dim, child = kind.list_size, values.values.cast(arrow.float32())
        rows = _numbers(child, "f4").reshape(-1, dim)[values.offset : values.offset + len(values)]
        return Column(name, VECTOR, dim, rows, None, None, _valid(values))
    if types.is_fixed_size_list(kind):
        values = values.cast(arrow.list_(inner))
        kind = values.type
    if types.is_floating(inner):
        lengths = set(values.drop_null().value_lengths().to_pylist())
        if len(lengths) != 1 or values.null_count:
            raise ValueError(f"column {name!r} holds vectors of different lengths; they must be of one length")
        dim = lengths.pop()
        return _list_column(arrow, name, values.cast(arrow.list_(inner, dim)))
    texts = values.values
    if types.is_boolean(inner):
        texts = texts.cast(arrow.int8())
    try:
        texts = texts.cast(arrow.large_string()).fill_null("")
    except arrow.ArrowNotImplementedError:
        return None
    child = _text_column(arrow, name, texts)
    if child is None:
        return None
    lists = _bounds(values, 64 if types.is_large_list(kind) else 32)
    return Column(name, TEXTS, 0, child.values, child.offsets, lists, _valid(values))


def _is(types: Any, kind: Any, *names: str) -> bool:
    """Returns True if an Arrow type is one of those named, some of which older versions lack."""
    return any(hasattr(types, f"is_{name}") and getattr(types, f"is_{name}")(kind) for name in names)


def flat(name: str, values: Any) -> Any:
    """One array of a column's own values: chunks are joined, dictionaries and views of texts resolved."""
    arrow = module()
    values, types = _whole(arrow, values), arrow.types
    if isinstance(values, arrow.ExtensionArray):
        values = values.storage
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if _is(types, kind, "list_view", "large_list_view"):
        raise ValueError(
            f"column {name!r} holds Arrow's {kind}, whose rows may lie in any order; make lists of it, as by "
            "pyarrow.array(values.to_pylist())"
        )
    if _is(types, kind, "string_view", "binary_view"):
        values = values.cast(arrow.large_string() if _is(types, kind, "string_view") else arrow.large_binary())
    return values


def is_decimal(values: Any) -> bool:
    """Returns True if a flat array holds decimals, or lists of them."""
    types, kind = module().types, values.type
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(types.is_decimal(kind.value_type if lists else kind))


def column(name: str, values: Any) -> Column:
    """A column of a flat Arrow array, in place where its layout is the library's."""
    arrow = module()
    types, kind = arrow.types, values.type
    found: Column | None = None
    if types.is_uint64(kind):
        fits = len(values) == 0 or (importlib.import_module("pyarrow.compute").max(values).as_py() or 0) < 2**63
        values = values.cast(arrow.int64() if fits else arrow.large_string())
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        found = _list_column(arrow, name, values)
    else:
        found = _text_column(arrow, name, values) or _number_column(arrow, name, values)
    if found is None:
        raise ValueError(f"column {name!r} holds Arrow's {kind}; it must hold numbers, texts or lists")
    return found
