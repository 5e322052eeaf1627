"""A graph read from its inputs to its output, node by node, into what a wide & deep model is made of."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Callable, Sequence

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ._values import Array, Coded, Codes, Coding, Columns, Const, Layers, Looked, Part, Range, Ref, Row, Sizes, Total, Value

log = logging.getLogger("shortlist.onnx")


class _Misfit(Exception):
    """The reason why a node is not understood."""


# The lowest codes of the types that QuantizeLinear makes.
_LOWEST = {"uint8": 0, "int8": -128, "uint16": 0, "int16": -32768}

Node = Any
Rule = Callable[["_Walk", Node, Sequence[Value]], Value]


def _attributes(node: Node) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in node.attribute}


def _axes(node: Node, values: Sequence[Value], at: int = 1) -> list[int] | None:
    """Axes by input, as newer operators have them, or by attribute."""
    if len(values) > at and isinstance(values[at], Const):
        return [int(axis) for axis in np.ravel(values[at].array)]  # type: ignore[union-attr]
    found = _attributes(node).get("axes")
    return None if found is None else [int(axis) for axis in found]


def _as_row(value: Value) -> Row:
    if isinstance(value, Row):
        return value
    if isinstance(value, Columns) and not value.ids:
        return Row(tuple(Part(ref, None) for ref in value.refs))
    raise _Misfit("what it reads is neither numbers of the input nor rows of tables side by side")


def _as_total(value: Value) -> Total:
    if isinstance(value, Total):
        return value
    if isinstance(value, Layers):
        return Total(layers=(value,))
    if isinstance(value, Row) and all(part.table is not None for part in value.parts) and len(value.parts) == 1:
        return Total(terms=value.parts)
    if isinstance(value, Const):
        return Total(bias=np.ravel(value.array).astype(np.float32))
    raise _Misfit("what it adds is neither a layer's output nor a row of a table")


def _select(value: Columns, chosen: Array) -> Columns:
    rank = value.rank - 1 + min(chosen.ndim, 1)
    return Columns(tuple(value.refs[int(i)] for i in np.ravel(chosen)), rank, value.ids)


class _Walk:
    def __init__(self, graph: Any) -> None:
        self.values: dict[str, Value] = {}
        for tensor in graph.initializer:
            self.values[tensor.name] = Const(numpy_helper.to_array(tensor), tensor.name)
        for value in graph.input:
            if value.name not in self.values:
                self.values[value.name] = self.input(value)
        for node in graph.node:
            self.step(node)

    @staticmethod
    def input(value: Any) -> Columns:
        kind = value.type.tensor_type
        dims = [d.dim_value for d in kind.shape.dim]
        ids = kind.elem_type in (TensorProto.INT64, TensorProto.INT32)
        if not ids and kind.elem_type != TensorProto.FLOAT:
            raise ValueError(f"input {value.name!r} is neither float32 nor whole numbers")
        if len(dims) == 1:
            return Columns((Ref(value.name, None),), 1, ids)
        if len(dims) != 2 or dims[1] < 1:
            raise ValueError(f"input {value.name!r} must be (N,), or (N, k) with a fixed k")
        return Columns(tuple(Ref(value.name, i) for i in range(dims[1])), 2, ids)

    def step(self, node: Node) -> None:
        where = f"node {node.name or node.output[0]!r} ({node.op_type})"
        values = []
        for name in node.input:
            if name and name not in self.values:
                raise ValueError(f"{where}: its input {name!r} is made by no node before it")
            values.append(self.values[name] if name else Sizes())
        try:
            made = self.apply(node, values)
        except _Misfit as misfit:
            raise ValueError(f"{where} is not understood as a part of a wide & deep model: {misfit}") from None
        for name, value in zip(node.output, made):
            self.values[name] = value

    def apply(self, node: Node, values: Sequence[Value]) -> list[Value]:
        if node.op_type == "Constant":
            (array,) = ReferenceEvaluator(node).run(None, {})
            return [Const(np.asarray(array), node.output[0])]
        if values and all(isinstance(value, Const) for value in values):
            return _constants(node, values)  # type: ignore[arg-type]
        if node.op_type not in _TAKES_CODES:
            values = [_decoded(node, value) for value in values]
        if node.op_type == "Split":
            return _split(node, values)
        rule = _RULES.get(node.op_type)
        if rule is None:
            raise _Misfit(f"the operators known are {', '.join(sorted([*_RULES, 'Constant', 'Split']))}")
        if node.op_type == "Shape" or any(isinstance(value, Sizes) for value in values[:1]):
            return [Sizes()]
        return [rule(self, node, values)]


def _same(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    return values[0]


def _constants(node: Node, values: Sequence[Const]) -> list[Value]:
    """The value that a node makes of constants. Codes that weights were dequantised from are remembered."""
    feeds = {name: value.array for name, value in zip(node.input, values)}
    made = [np.asarray(array) for array in ReferenceEvaluator(node).run(None, feeds)]
    codes = None
    if node.op_type == "DequantizeLinear":
        codes = _codes(made[0].ndim, int(_attributes(node).get("axis", 1)), *[value.array for value in values])
    elif node.op_type == "Transpose" and values[0].codes and made[0].ndim == 2:
        turns = list(_attributes(node).get("perm", [1, 0])) == [1, 0]
        codes = values[0].codes.turned() if turns else values[0].codes
    elif node.op_type == "Identity":
        codes = values[0].codes
    return [Const(array, name, codes) for name, array in zip(node.output, made)]


def _codes(rank: int, axis: int, codes: Array, scale: Array, zero: Array | None = None) -> Codes | None:
    if scale.ndim > 1 or rank < 1:
        return None  # in blocks
    shape = [1] * rank
    shape[axis if scale.size > 1 else 0] = scale.size
    zeros = np.zeros(1, np.int64) if zero is None else np.asarray(zero, np.int64)
    zeros = zeros.reshape(shape) if zeros.size > 1 else zeros
    return Codes(codes.astype(np.int64) - zeros, np.asarray(scale, np.float32).reshape(shape))


def _decoded(node: Node, value: Value) -> Value:
    """The value without its codes, which only layers in INT8 have a place for."""
    if not isinstance(value, Coded):
        return value
    log.info("the codes of node %r lead to node %r (%s), which takes floats", value.node, node.name, node.op_type)
    return value.value


def _quantize(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    value = _decoded(node, values[0])
    scale, zero = values[1], values[2] if len(values) > 2 else Const(np.zeros((), np.uint8), "")
    if isinstance(value, (Const, Sizes, Coded)) or not isinstance(scale, Const) or not isinstance(zero, Const):
        raise _Misfit("the scale and the zero point of an activation must be constants")
    kind, one = str(zero.array.dtype), scale.array.size == 1 and zero.array.size == 1
    found, cuts = None, bool(kind in _LOWEST and (zero.array == _LOWEST[kind]).all())
    if one and kind in ("uint8", "int8") and not _attributes(node).get("output_dtype"):
        found = Range(float(np.ravel(scale.array)[0]), int(np.ravel(zero.array)[0]) - _LOWEST[kind])
    return Coded(value, found, cuts, node.name or node.output[0])


def _dequantize(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    """Takes codes back by the numbers that made them: then inputs have gone through their codes, and nothing else."""
    value, scale = values[0], values[1]
    zero = values[2] if len(values) > 2 else Const(np.zeros((), np.uint8), "")
    if not isinstance(value, Coded) or not isinstance(scale, Const) or not isinstance(zero, Const):
        raise _Misfit("what it reads is not made by QuantizeLinear")
    if value.range is None:
        return value
    same = scale.array.size == 1 and float(np.ravel(scale.array)[0]) == value.range.scale
    if not same or int(np.ravel(zero.array)[0]) - _LOWEST.get(str(zero.array.dtype), 0) != value.range.zero:
        raise _Misfit("its scale and zero point are not those of the codes that it reads")
    return value


def _gather(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    data, at = values
    axis = int(_attributes(node).get("axis", 0))
    if isinstance(data, Const) and isinstance(at, Columns) and at.ids and axis == 0 and data.array.ndim == 2:
        parts = tuple(Part(ref, data) for ref in at.refs)
        return Row(parts) if at.rank == 1 else Looked(parts)
    if isinstance(data, Columns) and isinstance(at, Const) and axis in (1, -1) and data.rank == 2:
        return _select(data, at.array)
    raise _Misfit("it gathers neither rows of a table by ids nor columns of an input")


def _slice(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    data, settings = values[0], _attributes(node)
    named = dict(zip(("starts", "ends", "axes", "steps"), values[1:]))
    for name, value in named.items():
        if isinstance(value, Const):
            settings[name] = np.ravel(value.array).tolist()
    axes = settings.get("axes", [0])
    if not isinstance(data, Columns) or data.rank != 2 or len(axes) != 1 or axes[0] not in (1, -1):
        raise _Misfit("only columns of an input are sliced")
    step = settings.get("steps", [1])[0]
    return _select(data, np.arange(len(data.refs))[settings["starts"][0] : settings["ends"][0] : step])


def _split(node: Node, values: Sequence[Value]) -> list[Value]:
    data, settings = values[0], _attributes(node)
    if not isinstance(data, Columns) or data.rank != 2 or settings.get("axis", 0) not in (1, -1):
        raise _Misfit("only columns of an input are split")
    sizes = settings.get("split")
    if len(values) > 1 and isinstance(values[1], Const):
        sizes = values[1].array.tolist()
    if sizes is None:
        sizes = [len(data.refs) // len(node.output)] * len(node.output)
    ends = np.cumsum(sizes)
    return [_select(data, np.arange(end - size, end)) for size, end in zip(sizes, ends)]


def _width(value: Value) -> int:
    if isinstance(value, (Looked, Row)):
        return sum(part.width() for part in value.parts)
    if isinstance(value, Layers):
        return int(value.layers[-1][0].shape[1])
    if isinstance(value, Total):
        widths = [_width(net) for net in value.layers] + [part.width() for part in value.terms]
        return max([*widths, value.bias.size])
    raise _Misfit("its shape is not known")


def _keeps_rows(node: Node, values: Sequence[Value], width: int) -> bool:
    """Tells whether what is made is (N, width) again, or (N,) of width 1."""
    axes = _axes(node, values)
    if node.op_type == "Flatten":
        return bool(_attributes(node).get("axis", 1) == 1)
    if node.op_type == "Squeeze":
        return width == 1 and axes in (None, [1], [-1])
    if node.op_type == "Unsqueeze":
        return width == 1 and axes in ([1], [-1])
    if isinstance(values[1], Const):
        shape = np.ravel(values[1].array).tolist()
        alone = len(shape) == 1 and width == 1
        return alone or (len(shape) == 2 and shape[0] in (0, -1) and shape[1] in (-1, width))
    return isinstance(values[1], Sizes)


def _reshape(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    """Reshape, Flatten, Squeeze and Unsqueeze: of one row a sample, whichever way it lies."""
    value = values[0]
    if isinstance(value, Columns):
        if not _keeps_rows(node, values, len(value.refs)):
            raise _Misfit("the shape it gives is not that of columns")
        if node.op_type == "Reshape" and len(value.refs) == 1:
            raise _Misfit("a single column is made a vector by Squeeze, and a matrix by Unsqueeze")
        return replace(value, rank={"Squeeze": 1}.get(node.op_type, 2))
    if isinstance(value, Looked) and node.op_type == "Squeeze" and len(value.parts) == 1:
        return Row(value.parts)
    if isinstance(value, Const) or not _keeps_rows(node, values, _width(value)):
        raise _Misfit("the shape it gives is not one row a sample")
    return Row(value.parts) if isinstance(value, Looked) else value


def _cast(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    whole = _attributes(node)["to"] in (TensorProto.INT64, TensorProto.INT32)
    if whole != (isinstance(values[0], Columns) and values[0].ids):
        raise _Misfit("ids must be whole numbers from the input on, and nothing else is made one")
    return values[0]


def _concat(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    if _attributes(node).get("axis") not in (1, -1):
        raise _Misfit("only what lies side by side (axis 1) is joined")
    columns = [value for value in values if isinstance(value, Columns)]
    if any(value.rank != 2 for value in columns):
        raise _Misfit("a vector is joined with matrices")
    if len(columns) == len(values) and all(value.ids for value in columns):
        return Columns(tuple(ref for value in columns for ref in value.refs), 2, True)
    return Row(tuple(part for value in values for part in _as_row(value).parts))


def _shifted(columns: Columns, by: Array) -> Columns:
    shifts = np.broadcast_to(np.ravel(by), (len(columns.refs),))
    return replace(
        columns, refs=tuple(ref._replace(shift=ref.shift + int(s)) for ref, s in zip(columns.refs, shifts.tolist()))
    )


def _add(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        if isinstance(total, Const):
            total, value = value, total
        if isinstance(total, Columns) and total.ids and isinstance(value, Const):
            total = _shifted(total, value.array)
        elif isinstance(total, Layers) and total.open() and isinstance(value, Const):
            weight, bias = total.layers[-1]
            last = (weight, bias + np.ravel(value.array).astype(np.float32))
            total = replace(total, layers=(*total.layers[:-1], last))
        else:
            one, other = _as_total(total), _as_total(value)
            if one.final or other.final:
                raise _Misfit("something is added after the last function")
            total = Total(one.layers + other.layers, one.terms + other.terms, one.bias + other.bias)
    return total


def _reduce_sum(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    value, axes = values[0], _axes(node, values)
    narrow = isinstance(value, (Looked, Row)) and all(part.width() == 1 for part in value.parts)
    if isinstance(value, Looked) and (axes == [1] or (narrow and axes in ([1, 2], [-2, -1]))):
        return Total(terms=value.parts)
    tables = isinstance(value, Row) and all(part.table is not None for part in value.parts)
    if isinstance(value, Row) and tables and narrow and axes in ([1], [-1]):
        return Total(terms=value.parts)
    raise _Misfit("only rows of tables are summed, over the columns that chose them")


def _through(value: Value, weight: Array, bias: Array, codes: Codes | None) -> Layers:
    found, kind = None, "none"
    if isinstance(value, Coded):
        # Codes without a place for what is below 0 stand for a ReLU, which quantisers leave out then.
        found, kind, value = value.range, "relu" if value.cuts else "none", value.value
    coding = Coding(found, codes)
    if isinstance(value, Layers):
        active = (*value.active, kind) if value.open() else value.active
        return Layers(value.parts, (*value.layers, (weight, bias)), active, (*value.codings, coding))
    return Layers(_as_row(value).parts, ((weight, bias),), (), (coding,))


def _layer(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    settings = _attributes(node)
    if len(values) < 2 or not isinstance(values[1], Const) or values[1].array.ndim != 2 or settings.get("transA"):
        raise _Misfit("a layer's weights must be a constant matrix on the right")
    weight = values[1].array.T if settings.get("transB") else values[1].array
    codes = values[1].codes if settings.get("alpha", 1.0) == 1.0 else None
    codes = codes.turned() if codes and settings.get("transB") else codes
    weight = np.asarray(weight * np.float32(settings.get("alpha", 1.0)), np.float32)
    bias: Array = np.zeros(weight.shape[1], np.float32)
    if len(values) > 2 and not isinstance(values[2], Sizes):
        if not isinstance(values[2], Const):
            raise _Misfit("a layer's bias must be a constant")
        bias = bias + np.ravel(values[2].array) * np.float32(settings.get("beta", 1.0))
    return _through(values[0], weight, bias, codes)


def _activate(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    value = values[0]
    if not isinstance(value, Layers) or not value.open():
        raise _Misfit("an activation follows a layer")
    if _attributes(node).get("approximate", b"none") != b"none":
        raise _Misfit("the model's gelu is the exact one")
    return replace(value, active=(*value.active, node.op_type.lower()))


def _finish(walk: _Walk, node: Node, values: Sequence[Value]) -> Value:
    total = _as_total(values[0])
    if total.final or _attributes(node).get("axis", 1) not in (1, -1):
        raise _Misfit("the output has a function already, or one over another axis")
    return replace(total, final=node.op_type)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("Identity", "Dropout", "Shape"), _same),
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _reshape),
    **dict.fromkeys(("Add", "Sum"), _add),
    **dict.fromkeys(("Gemm", "MatMul"), _layer),
    **dict.fromkeys(("Relu", "Tanh", "Gelu"), _activate),
    **dict.fromkeys(("Sigmoid", "Softmax"), _finish),
    "Cast": _cast,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "ReduceSum": _reduce_sum,
}


# Nodes that what went through codes passes, or that keep the codes' numbers. Others take floats.
_TAKES_CODES = {"QuantizeLinear", "DequantizeLinear", "Gemm", "MatMul", "Identity"}


def total_of(graph: Any) -> Total:
    """The parts that the first output of a graph is made of. ValueError names a node that is not understood."""
    walk = _Walk(graph)
    name = graph.output[0].name
    value = walk.values.get(name)
    if value is None:
        raise ValueError(f"output {name!r} is made by no node")
    try:
        return _as_total(value.value if isinstance(value, Coded) else value)
    except _Misfit as misfit:
        raise ValueError(f"output {name!r} is not that of a wide & deep model: {misfit}") from None
