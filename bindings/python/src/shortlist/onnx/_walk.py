"""A graph read from its inputs to its output, node by node, into what a wide & deep model is made of."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np
from onnx import TensorProto

from . import _steps
from ._codes import decoded, dequantise, dequantised, quantise, uncoded
from ._nodes import Misfit, Node, array_of, computed, label, opset_of, read_node
from ._values import (
    NOTHING,
    Array,
    Bag,
    Coded,
    Codes,
    Coding,
    Columns,
    Const,
    Gelu,
    Layer,
    Layers,
    Looked,
    Part,
    Ref,
    Rounded,
    Row,
    Sizes,
    Total,
    Value,
)

log = logging.getLogger("shortlist.onnx")

Values = Sequence["Value | None"]
Rule = Callable[[Node, Values], "list[Value]"]
Dims = tuple["int | None", ...]


# ----------------------------------------------------------------------------------------------------------------------
# Operands
# ----------------------------------------------------------------------------------------------------------------------


def _at(values: Values, at: int) -> Value | None:
    return values[at] if len(values) > at else None


def _numbers(value: Value | None, what: str) -> list[int]:
    """Whole numbers of a constant."""
    if not isinstance(value, Const) or value.array.dtype.kind not in "iu":
        raise Misfit(f"its {what} are no constant of whole numbers")
    return [int(number) for number in np.ravel(value.array)]


def _axes(node: Node, values: Values, rank: int) -> list[int] | None:
    """Axes by input, as newer operators have them, or by attribute; from 0 on, rising. None: all."""
    given = _at(values, 1)
    if isinstance(given, Const) and given.array.ndim != 1:
        raise Misfit("its axes are no vector")
    found = node.settings.get("axes") if given is None else _numbers(given, "axes")
    if found is None or len(found) == 0:
        return None
    if any(not -rank <= axis < rank for axis in found):
        raise Misfit(f"an axis is beyond the {rank} there are")
    return sorted(int(axis) % rank for axis in found)


def _shape(value: Value | None) -> Dims:
    """None stands for N, the number of rows."""
    if isinstance(value, Columns):
        return (None, len(value.refs))[: value.rank]
    if isinstance(value, Looked):
        return (None, len(value.parts), value.parts[0].width())
    if isinstance(value, (Row, Layers, Total)):
        return (None, _width(value))[: value.rank]
    if isinstance(value, (Coded, Rounded)):
        return _shape(value.value)
    if isinstance(value, Gelu):
        return _shape(value.layers)
    raise Misfit("its shape is not known")


def _width(value: Row | Layers | Total) -> int:
    if isinstance(value, Row):
        return sum(part.width() for part in value.parts)
    if isinstance(value, Layers):
        return int(value.layers[-1].weight.shape[1])
    widths = [_width(net) for net in value.layers] + [part.width() for part in value.terms]
    return max([*widths, value.bias.size])


def _per_row(shape: Dims) -> int:
    """Numbers that a row of a value has."""
    return math.prod(size for size in shape[1:] if size is not None)


def _as_row(value: Value | None) -> Row:
    if isinstance(value, Row) and value.rank == 2:
        return value
    if isinstance(value, Columns) and not value.ids and value.rank == 2:
        return Row(tuple(Part(ref, None) for ref in value.refs))
    raise Misfit("what it reads is neither numbers of the input nor rows of tables side by side")


def _as_total(value: Value | None) -> Total:
    if isinstance(value, Total):
        return value
    if isinstance(value, Layers):
        return Total(layers=(value,), rank=value.rank)
    if isinstance(value, Row) and all(part.table is not None for part in value.parts) and len(value.parts) == 1:
        return Total(terms=value.parts, rank=value.rank)
    raise Misfit("what it adds is neither a layer's output nor a row of a table")


def _across(array: Array, shape: Dims) -> Array:
    """A constant that is the same for all rows of such a shape, as one row of floats or one number."""
    width = 1 if len(shape) == 1 else shape[-1]
    rows = array.shape[:-1] if len(shape) == 2 else array.shape
    if array.ndim > len(shape) or any(size != 1 for size in rows) or array.size not in (1, width):
        raise Misfit(f"a constant of shape {array.shape} is not one row, or one number, for each sample")
    return np.ravel(array)


def _floats(array: Array) -> Array:
    """A constant as float32."""
    if array.dtype.kind != "f":
        raise Misfit(f"a constant is of type {array.dtype}; numbers are floats")
    return np.asarray(array, np.float32)


def _lying(value: Value | None, dims: Dims) -> Value:
    """The value in another shape of as many numbers a sample."""
    shape = _shape(value)
    if dims == shape:
        return value  # type: ignore[return-value]
    width = _per_row(shape)
    if dims != (None, width) and not (dims == (None,) and width == 1):
        raise Misfit("the shape it gives is not one row a sample")
    if isinstance(value, Looked):
        return Row(value.parts, len(dims))
    assert isinstance(value, (Columns, Row, Layers, Total))
    return replace(value, rank=len(dims))


# ----------------------------------------------------------------------------------------------------------------------
# Shapes
# ----------------------------------------------------------------------------------------------------------------------


def _same(node: Node, values: Values) -> list[Value]:
    training = _at(values, 2) if node.op == "Dropout" else None
    if training is not None and not (isinstance(training, Const) and not training.array.any()):
        raise Misfit("it drops numbers by chance, as in training")
    return [values[0]]  # type: ignore[list-item]


def _sizes_of(node: Node, values: Values) -> list[Value]:
    return [Sizes(_shape(values[0])[node.settings.get("start", 0) : node.settings.get("end")])]


def _of_sizes(node: Node, values: Values) -> list[Value]:
    """Numbers of a shape, chosen and joined."""
    sizes = values[0]
    op = node.op
    if op in ("Identity", "Cast") and isinstance(sizes, Sizes):
        if op == "Cast" and node.settings["to"] not in (TensorProto.INT64, TensorProto.INT32):
            raise Misfit("sizes are whole numbers")
        return [sizes]
    if op == "Concat":
        dims: list[int | None] = []
        for value in values:
            dims += value.dims if isinstance(value, Sizes) else _numbers(value, "sizes")
        return [Sizes(tuple(dims))]
    if not isinstance(sizes, Sizes) or sizes.alone != (op == "Unsqueeze"):
        raise Misfit("only sizes of a vector are chosen")
    if op == "Unsqueeze" and _axes(node, values, 1) == [0]:
        return [Sizes(sizes.dims)]
    if op == "Squeeze" and len(sizes.dims) == 1 and _axes(node, values, 1) in (None, [0]):
        return [Sizes(sizes.dims, alone=True)]
    if op == "Gather" and isinstance(values[1], Const) and values[1].array.ndim < 2:
        chosen = tuple(sizes.dims[i] for i in _numbers(values[1], "indices"))
        return [Sizes(chosen, alone=values[1].array.ndim == 0)]
    if op == "Slice":
        first, end, axis, step = _bounds(node, values)
        if axis in (0, -1):
            return [Sizes(sizes.dims[first:end:step])]
    raise Misfit("sizes of a value are only chosen and joined")


def _target(node: Node, values: Values, shape: Dims) -> Dims:
    """The shape that Reshape gives."""
    given = _at(values, 1)
    dims: list[int | None] = [*given.dims] if isinstance(given, Sizes) else [*_numbers(given, "sizes")]
    if not node.settings.get("allowzero"):
        if any(size == 0 and i >= len(shape) for i, size in enumerate(dims)):
            raise Misfit("the shape it gives keeps an axis that there is not")
        dims = [shape[i] if size == 0 else size for i, size in enumerate(dims)]
    width = _per_row(shape)
    if dims.count(-1) == 1:
        left = math.prod(size for size in dims if size not in (-1, None))
        free = dims.index(-1)
        # Either the rows or what a row has is left free.
        if None not in dims and left == width:
            dims[free] = None
        elif None in dims and left > 0 and width % left == 0:
            dims[free] = width // left
    return tuple(dims)


def _reshape(node: Node, values: Values) -> list[Value]:
    """Reshape, Flatten, Squeeze and Unsqueeze: of one row a sample, whichever way it lies."""
    value = values[0]
    shape = _shape(value)
    if node.op == "Reshape":
        return [_lying(value, _target(node, values, shape))]
    if node.op == "Flatten":
        axis = node.settings["axis"]
        if axis != 1 and axis != 1 - len(shape):
            raise Misfit("only what belongs to one sample is made a row")
        return [_lying(value, (None, _per_row(shape)))]
    axes = _axes(node, values, len(shape) if node.op == "Squeeze" else len(shape) + 1)
    if node.op == "Squeeze":
        if axes is None:
            axes = [axis for axis, size in enumerate(shape) if size == 1]
        if any(shape[axis] != 1 for axis in axes):
            raise Misfit("an axis that it takes away is longer than 1")
        return [_lying(value, tuple(size for axis, size in enumerate(shape) if axis not in axes))]
    if axes is None or len(axes) != 1 or axes[0] == 0:
        raise Misfit("only one axis is added, behind that of samples")
    return [_lying(value, (*shape[: axes[0]], 1, *shape[axes[0] :]))]


# ----------------------------------------------------------------------------------------------------------------------
# Columns and rows
# ----------------------------------------------------------------------------------------------------------------------


def _select(value: Columns, chosen: Sequence[int], rank: int = 2) -> Columns:
    return Columns(tuple(value.refs[i] for i in chosen), rank, value.ids)


def _gather(node: Node, values: Values) -> list[Value]:
    data, at = values[:2]
    axis = int(node.settings["axis"])
    if isinstance(data, Const) and data.array.ndim == 2 and axis in (0, -2):
        if isinstance(at, Columns) and at.ids:
            parts = tuple(Part(ref, data) for ref in at.refs)
            return [Row(parts) if at.rank == 1 else Looked(parts)]
        found = _steps.step("Gather", [data, at])
        if found is not None:
            return [found]
    if isinstance(data, Columns) and data.rank == 2 and axis in (1, -1) and isinstance(at, Const) and at.array.ndim < 2:
        return [_select(data, _numbers(at, "indices"), 1 + at.array.ndim)]
    raise Misfit("it gathers neither rows of a table by ids nor columns of an input")


def _bounds(node: Node, values: Values) -> tuple[int, int, int, int]:
    """First, end, axis and step of a Slice along one axis."""
    names = ("starts", "ends", "axes", "steps")
    given = {name: _at(values, i + 1) for i, name in enumerate(names)}
    if any(isinstance(value, Const) and value.array.ndim != 1 for value in given.values()):
        raise Misfit("its bounds are no vectors")
    found = [node.settings.get(name) if given[name] is None else _numbers(given[name], name) for name in names]
    starts, ends, axes, steps = found
    axes, steps = [0] if axes is None else axes, [1] if steps is None else steps
    if not starts or not ends or any(len(part) != 1 for part in (starts, ends, axes, steps)) or steps[0] == 0:
        raise Misfit("it does not slice along one axis")
    return int(starts[0]), int(ends[0]), int(axes[0]), int(steps[0])


def _slice(node: Node, values: Values) -> list[Value]:
    data = values[0]
    first, end, axis, step = _bounds(node, values)
    if not isinstance(data, Columns) or data.rank != 2 or axis not in (1, -1):
        raise Misfit("only columns of an input are sliced")
    return [_select(data, range(len(data.refs))[first:end:step])]


def _split(node: Node, values: Values) -> list[Value]:
    data, given = values[0], _at(values, 1)
    if not isinstance(data, Columns) or data.rank != 2 or node.settings["axis"] not in (1, -1):
        raise Misfit("only columns of an input are split")
    count, parts = len(data.refs), len(node.outputs)
    sizes = node.settings.get("split") if given is None else _numbers(given, "sizes")
    if sizes is None:
        each = -(-count // parts)
        sizes = [each] * (parts - 1) + [count - each * (parts - 1)]
    if sum(sizes) != count or len(sizes) != parts or min(sizes) < 0:
        raise Misfit(f"its parts are not {count} columns together")
    ends = np.cumsum(sizes)
    return [_select(data, range(end - size, end)) for size, end in zip(sizes, ends.tolist())]


def _cast(node: Node, values: Values) -> list[Value]:
    value, to = values[0], node.settings["to"]
    ids = isinstance(value, Columns) and value.ids
    word = {TensorProto.FLOAT: "float", TensorProto.BOOL: "bool"}.get(to)
    if isinstance(value, Bag):
        return _stepped(node, f"Cast {word}", values)
    if ids != (to in (TensorProto.INT64, TensorProto.INT32)):
        raise Misfit("ids must be whole numbers from the input on, and nothing else is made one")
    if ids:
        return [value]  # type: ignore[list-item]
    if isinstance(value, Rounded) and to == TensorProto.FLOAT:
        return [replace(value, half=False)]
    value = decoded(node, value)
    if to == TensorProto.BFLOAT16 and isinstance(value, (Columns, Looked, Row, Layers, Total)):
        return [Rounded(value, True)]
    if to not in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16):
        raise Misfit("numbers go through float32, or are rounded to bfloat16 in front of a layer")
    if to == TensorProto.FLOAT16:
        log.warning("node %r rounds to float16; the model is read as one of float32", node.name)
    return [value]  # type: ignore[list-item]


def _concat(node: Node, values: Values) -> list[Value]:
    if node.settings["axis"] not in (1, -1):
        raise Misfit("only what lies side by side (axis 1) is joined")
    columns = [value for value in values if isinstance(value, Columns)]
    if any(value.rank != 2 for value in columns):
        raise Misfit("a vector is joined with matrices")
    if len(columns) == len(values) and all(value.ids for value in columns):
        return [Columns(tuple(ref for value in columns for ref in value.refs), 2, True)]
    return [Row(tuple(part for value in values for part in _as_row(value).parts))]


# ----------------------------------------------------------------------------------------------------------------------
# Sums and layers
# ----------------------------------------------------------------------------------------------------------------------


def _shifted(columns: Columns, by: Array) -> Columns:
    if by.dtype.kind not in "iu":
        raise Misfit("what is added to ids is no whole number")
    shifts = np.broadcast_to(_across(by, _shape(columns)), (len(columns.refs),))
    return replace(
        columns, refs=tuple(ref._replace(shift=ref.shift + int(s)) for ref, s in zip(columns.refs, shifts.tolist()))
    )


def _biased(value: Value | None, by: Array) -> Value:
    """A value with a constant added to it."""
    if isinstance(value, Columns) and value.ids:
        return _shifted(value, by)
    flat = _across(_floats(by), _shape(value))
    if isinstance(value, Layers) and value.open() and value.rank == 2 and value.layers[-1].bias is None:
        last = value.layers[-1]
        bias = np.array(np.broadcast_to(flat, last.weight.shape[1:]))
        return replace(value, layers=(*value.layers[:-1], last._replace(bias=bias)))
    total = _as_total(value)
    if total.final:
        raise Misfit("something is added after the last function")
    return replace(total, bias=total.bias + flat)


def _joined(one: Total, other: Total) -> Total:
    if one.final or other.final:
        raise Misfit("something is added after the last function")
    if one.rank != other.rank or _width(one) != _width(other):
        raise Misfit("what it adds is of different shapes")
    return Total(one.layers + other.layers, one.terms + other.terms, one.bias + other.bias, one.rank)


def _add(node: Node, values: Values) -> list[Value]:
    if any(isinstance(value, Gelu) for value in values):
        return _stepped(node, "Add", values)
    consts = [value for value in values if isinstance(value, Const)]
    others = [value for value in values if not isinstance(value, Const)]
    made: Value | None = others[0]
    for value in others[1:]:
        made = _joined(_as_total(made), _as_total(value))
    for const in consts:
        made = _biased(made, const.array)
    return [made]  # type: ignore[list-item]


def _reduce_sum(node: Node, values: Values) -> list[Value]:
    value = values[0]
    if isinstance(value, Bag):
        return _reduce_bag(node, values)
    axes, kept = _axes(node, values, len(_shape(value))), bool(node.settings["keepdims"])
    narrow = isinstance(value, (Looked, Row)) and all(part.width() == 1 for part in value.parts)
    tables = isinstance(value, (Looked, Row)) and all(part.table is not None for part in value.parts)
    if isinstance(value, Looked) and axes == [1] and not kept:
        return [Total(terms=value.parts)]
    if isinstance(value, Looked) and narrow and axes == [1, 2] and not kept:
        return [Total(terms=value.parts, rank=1)]
    if isinstance(value, Row) and value.rank == 2 and tables and narrow and axes == [1]:
        return [Total(terms=value.parts, rank=2 if kept else 1)]
    raise Misfit("only rows of tables are summed, over the columns that chose them")


def _reduce_bag(node: Node, values: Values) -> list[Value]:
    """Reduces (N, L, width) over L."""
    if _axes(node, values, 3) != [1] or node.settings["keepdims"]:
        raise Misfit("rows of a bag are reduced to one row a sample")
    return _stepped(node, f"{node.op} 1", values[:1])


def _unsqueeze(node: Node, values: Values) -> list[Value]:
    if not isinstance(values[0], Bag):
        return _reshape(node, values)
    axes = _axes(node, values, 3)
    return _stepped(node, f"Unsqueeze {axes[0] if axes and len(axes) == 1 else axes}", values[:1])


def _through(value: Value | None, weight: Array, bias: Array | None, codes: Codes | None) -> list[Value]:
    found, cuts, half = None, False, isinstance(value, Rounded)
    if isinstance(value, Coded):
        # Codes without a place for what is below 0 stand for a ReLU, which quantisers leave out then.
        found, cuts = value.range, value.cuts
    if isinstance(value, (Coded, Rounded)):
        if value.whole if isinstance(value, Coded) else value.half:
            raise Misfit("a layer takes float32")
        # A layer in INT8 cuts off what its codes do. Another one has no codes.
        is_coded = isinstance(value, Rounded) or (found is not None and codes is not None and not codes.misfit())
        value = value.value if is_coded else uncoded(value)  # type: ignore[arg-type]
    layer = Layer(weight, bias, Coding(found, codes, half))
    net = _steps.as_layers(value)
    made = Layers(_as_row(value).parts, (layer,)) if net is None else None
    if net is not None:
        if net.open():
            net = _steps.activated(net, "relu" if cuts else "none")
        made = Layers(net.parts, (*net.layers, layer), net.rank)
    assert made is not None
    if made.rank != 2 or (net is not None and _width(net) != len(weight)):
        raise Misfit(f"its weights of {len(weight)} inputs do not fit what it reads")
    return [made]


def _layer(node: Node, values: Values) -> list[Value]:
    settings, given = node.settings, _at(values, 1)
    if not isinstance(given, Const) or given.array.ndim != 2 or settings.get("transA"):
        raise Misfit("a layer's weights must be a constant matrix on the right")
    alpha, beta = np.float32(settings.get("alpha", 1.0)), np.float32(settings.get("beta", 1.0))
    weight, codes = given.array, given.codes if alpha == 1 else None
    if settings.get("transB"):
        weight, codes = weight.T, codes.turned() if codes else None
    weight = _floats(weight) * alpha
    bias, by = None, _at(values, 2)
    if by is not None:
        if not isinstance(by, Const):
            raise Misfit("a layer's bias must be a constant")
        flat = _across(_floats(by.array), (None, weight.shape[1])) * beta
        bias = np.array(np.broadcast_to(flat, weight.shape[1:]))
    return _through(values[0], weight, bias, codes)


def _activate(node: Node, values: Values) -> list[Value]:
    net = _steps.as_layers(values[0])
    if net is not None and node.op == "Relu" and net.layers[-1].active == "relu":
        return [net]
    if net is None or not net.open():
        raise Misfit("an activation follows a layer")
    if node.settings.get("approximate", b"none") != b"none":
        raise Misfit("the model's gelu is the exact one")
    return [_steps.activated(net, node.op.lower())]


def _finish(node: Node, values: Values) -> list[Value]:
    total = _as_total(values[0])
    axis = node.settings.get("axis", 1)
    if total.final or (node.op == "Softmax" and (total.rank != 2 or axis not in (1, -1))):
        raise Misfit("the output has a function already, or one over another axis")
    return [replace(total, final=node.op)]


def _stepped(node: Node, op: str, values: Values) -> list[Value]:
    made = _steps.step(op, values)
    if made is None:
        raise Misfit("it is no step of a bag's sum, mean or maximum, nor of gelu")
    return [made]


def _step(node: Node, values: Values) -> list[Value]:
    return _reduce_bag(node, values) if node.op == "ReduceMax" else _stepped(node, node.op, values)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_steps.KNOWN, _step),
    **dict.fromkeys(("Identity", "Dropout"), _same),
    "Shape": _sizes_of,
    "QuantizeLinear": quantise,
    "DequantizeLinear": dequantise,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze"), _reshape),
    "Unsqueeze": _unsqueeze,
    **dict.fromkeys(("Add", "Sum"), _add),
    **dict.fromkeys(("Gemm", "MatMul"), _layer),
    **dict.fromkeys(("Relu", "Tanh", "Gelu"), _activate),
    **dict.fromkeys(("Sigmoid", "Softmax"), _finish),
    "Cast": _cast,
    "Gather": _gather,
    "Slice": _slice,
    "Split": _split,
    "Concat": _concat,
    "ReduceSum": _reduce_sum,
}

# Nodes that what went through codes passes, or that keep the codes' numbers. Others take floats.
_TAKES_CODES = {"QuantizeLinear", "DequantizeLinear", "Gemm", "MatMul", "Identity", "Cast"}


# ----------------------------------------------------------------------------------------------------------------------
# The walk
# ----------------------------------------------------------------------------------------------------------------------


def _constants(node: Node, opset: int, values: Sequence[Const | None]) -> list[Value]:
    """The values that a node makes of constants. Codes that weights were dequantised from are remembered."""
    if node.op == "DequantizeLinear":
        return [dequantised(node, opset, values)]
    if node.op == "Dropout":
        return _same(node, values)
    made = computed(node, opset, [None if value is None else value.array for value in values])
    codes, first = None, values[0]
    if node.op == "Transpose" and first is not None and first.codes and made[0].ndim == 2:
        turns = list(node.settings["perm"] or [1, 0]) == [1, 0]
        codes = first.codes.turned() if turns else first.codes
    elif node.op == "Identity" and first is not None:
        codes = first.codes
    return [Const(array, name, codes) for name, array in zip(filter(None, node.outputs), made)]


def _input(value: Any) -> Columns | Bag:
    kind = value.type.tensor_type
    dims = [d.dim_value for d in kind.shape.dim]
    ids = kind.elem_type in (TensorProto.INT64, TensorProto.INT32)
    if not ids and kind.elem_type != TensorProto.FLOAT:
        raise ValueError(f"input {value.name!r} is neither float32 nor whole numbers")
    if len(dims) == 1:
        return Columns((Ref(value.name, None),), 1, ids)
    if len(dims) == 2 and dims[1] == 0 and kind.elem_type == TensorProto.INT64:
        return Bag(value.name, "given")
    if len(dims) != 2 or dims[1] < 1:
        raise ValueError(f"input {value.name!r} must be (N,), (N, k) with a fixed k, or a bag's ids, (N, L) of int64")
    return Columns(tuple(Ref(value.name, i) for i in range(dims[1])), 2, ids)


class _Walk:
    def __init__(self, model: Any) -> None:
        graph = model.graph
        self.values: dict[str, Value] = {}
        self.opset = opset_of(model)
        self.functions = {(function.domain, function.name) for function in model.functions}
        for tensor in graph.initializer:
            self.put(tensor.name, Const(array_of(tensor, f"initializer {tensor.name!r}"), tensor.name))
        for value in graph.input:
            if value.name not in self.values:
                self.put(value.name, _input(value))
        for node in graph.node:
            self.node(node)

    def put(self, name: str, value: Value) -> None:
        if not name or name in self.values:
            raise ValueError(f"the graph makes {name!r} twice, or a value without a name")
        self.values[name] = value

    def node(self, proto: Any) -> None:
        where = f"node {label(proto)!r} ({proto.op_type})"
        values: list[Value | None] = []
        for name in proto.input:
            if name and name not in self.values:
                raise ValueError(f"{where}: its input {name!r} is made by no node before it")
            values.append(self.values[name] if name else None)
        while values and values[-1] is None:
            values.pop()
        try:
            if (proto.domain, proto.op_type) in self.functions:
                raise Misfit("the model has a function of its name, and functions are not read")
            made = self.apply(read_node(proto, self.opset), values)
        except Misfit as misfit:
            raise ValueError(f"{where} is not understood as a part of a wide & deep model: {misfit}") from None
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"{where} cannot be read: {type(error).__name__}: {error}") from error
        for name, value in zip(proto.output, made):
            if name:
                self.put(name, value)

    def apply(self, node: Node, values: Values) -> list[Value]:
        if node.op == "Constant":
            (array,) = computed(node, self.opset, [])
            return [Const(array, node.outputs[0])]
        if values and all(value is None or isinstance(value, Const) for value in values):
            return _constants(node, self.opset, values)  # type: ignore[arg-type]
        if any(isinstance(value, Sizes) for value in values) and node.op != "Reshape":
            return _of_sizes(node, values)
        if node.op not in _TAKES_CODES:
            values = [decoded(node, value) for value in values]
        rule = _RULES.get(node.op)
        if rule is None:
            raise Misfit(f"the operators known are {', '.join(sorted([*_RULES, 'Constant']))}")
        return rule(node, values)


def total_of(model: Any) -> Total:
    """The parts that the first output of a model's graph is made of. ValueError names a node that is not understood."""
    walk = _Walk(model)
    if not model.graph.output:
        raise ValueError("the graph has no output")
    name = model.graph.output[0].name
    value = walk.values.get(name)
    if value is None:
        raise ValueError(f"output {name!r} is made by no node")
    try:
        return _as_total(uncoded(value) if isinstance(value, Coded) else value)
    except Misfit as misfit:
        raise ValueError(f"output {name!r} is not that of a wide & deep model: {misfit}") from None
