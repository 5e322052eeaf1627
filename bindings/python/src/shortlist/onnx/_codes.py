"""QuantizeLinear and DequantizeLinear: codes of activations and of weights."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Sequence, Union

import numpy as np
from onnx import TensorProto, helper

from . import _steps
from ._nodes import Misfit, Node, computed
from ._values import Array, Coded, Codes, Columns, Const, Floats, Layers, Looked, Range, Rounded, Row, Total, Value

log = logging.getLogger("shortlist.onnx")

# The lowest codes of the types that activations are in.
_LOWEST = {"uint8": 0, "int8": -128, "uint16": 0, "int16": -32768, "uint4": 0, "int4": -8, "uint2": 0, "int2": -2}
_WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "int4", "uint4", "int2", "uint2")

Operand = Union[Value, None]


def _has_negatives(value: Floats, scale: Array) -> bool:
    """Returns True if rows of tables hold numbers that codes from 0 on change. Numbers of inputs are not known."""
    parts = value.parts if isinstance(value, (Looked, Row)) else ()
    rounded = -float(scale.min()) / 2  # what is above it becomes 0 in any codes; a sum of many such does not
    return any(
        part.table.array.min(initial=0) < (0 if part.combine == "sum" else rounded)
        for part in parts
        if part.table is not None
    )


def uncoded(value: Coded) -> Floats:
    """The numbers without their codes. Codes that have none for what is below 0 are a ReLU, which stays."""
    net = _steps.as_layers(value.value)
    if not value.cuts or (isinstance(value.value, Total) and value.value.final):
        return value.value
    if net is not None and net.open():
        return _steps.activated(net, "relu")
    if net is not None and net.layers[-1].active != "relu" or isinstance(value.value, Total):
        raise Misfit(f"the codes of node {value.node!r} cut off what is below 0, and no layer can do so there")
    if _has_negatives(value.value, value.scale):
        raise Misfit(f"the codes of node {value.node!r} cut off what is below 0 in tables")
    if net is None:
        log.warning("the codes of node %r cut off what is below 0 in the inputs; the model keeps it", value.node)
    return value.value


def decoded(node: Node, value: Operand) -> Operand:
    """The value without its codes, which only layers in INT8 have a place for."""
    if isinstance(value, Rounded):
        raise Misfit("it takes numbers rounded to bfloat16, as only layers do")
    if not isinstance(value, Coded):
        return value
    if value.whole:
        raise Misfit("it takes codes, as DequantizeLinear alone does")
    log.info("the codes of node %r lead to node %r (%s), which takes floats", value.node, node.name, node.op)
    return uncoded(value)


def _scale_and_zero(values: Sequence[Operand]) -> tuple[Array, Array | None]:
    """The numbers of codes. The zero point may be left out."""
    scale, zero = values[1], values[2] if len(values) > 2 else None
    if not isinstance(scale, Const) or not (zero is None or isinstance(zero, Const)):
        raise Misfit("the scale and the zero point must be constants")
    if scale.array.dtype.kind != "f":
        raise Misfit(f"its scale is of type {scale.array.dtype}; numbers are floats")
    if zero is not None and zero.array.size != scale.array.size:
        raise Misfit(f"it has {scale.array.size} scales and {zero.array.size} zero points")
    return scale.array, None if zero is None else zero.array


def _type_name(number: int) -> str:
    return str(np.dtype(helper.tensor_dtype_to_np_dtype(number)))


def _type_of_codes(node: Node, zero: Array | None) -> np.dtype[Any]:
    """The codes' type: the zero point's, or the attribute's, or else uint8."""
    said = node.settings.get("output_dtype")
    if said and zero is not None and _type_name(said) != str(zero.dtype):
        raise Misfit(f"its output_dtype is {_type_name(said)}, and its zero point's type {zero.dtype}")
    if zero is not None:
        return zero.dtype
    return np.dtype(helper.tensor_dtype_to_np_dtype(said) if said else np.uint8)


def _axis(node: Node, scale: Array, value: Floats) -> int | None:
    """The axis, from 0 on, that several scales lie along."""
    axis, rank = node.settings.get("axis"), 3 if isinstance(value, Looked) else value.rank
    if scale.size == 1 or axis is None:
        return None
    if not -rank <= axis < rank:
        raise Misfit(f"its axis {axis} is beyond the {rank} there are")
    return int(axis) % rank


def quantise(node: Node, values: Sequence[Operand]) -> list[Value]:
    value = decoded(node, values[0])
    scale, zero = _scale_and_zero(values)
    kind = _type_of_codes(node, zero)
    if not isinstance(value, (Columns, Looked, Row, Layers, Total)) or (isinstance(value, Columns) and value.ids):
        raise Misfit("only numbers are put into codes")
    if str(kind) not in _WHOLE:
        raise Misfit(f"codes of type {kind} are not known")
    zeros = np.zeros_like(scale, kind) if zero is None else zero
    lowest, found = _LOWEST.get(str(kind)), None
    if scale.size == 1 and kind in (np.uint8, np.int8) and lowest is not None:
        found = Range(float(np.ravel(scale)[0]), int(np.ravel(zeros)[0]) - lowest)
    cuts = lowest is not None and bool((zeros == lowest).all())
    return [Coded(value, scale, zeros, _axis(node, scale, value), found, cuts, True, node.name)]


def dequantise(node: Node, values: Sequence[Operand]) -> list[Value]:
    """Takes codes back by the numbers that made them: then inputs have gone through their codes, and nothing else."""
    value = values[0]
    if not isinstance(value, Coded) or not value.whole:
        raise Misfit("what it reads is not made by QuantizeLinear")
    scale, zero = _scale_and_zero(values)
    zeros = np.zeros_like(scale, value.zero.dtype) if zero is None else zero
    axis = _axis(node, scale, value.value)
    if zeros.dtype != value.zero.dtype:
        raise Misfit(f"its zero point is of type {zeros.dtype}, and the codes that it reads are of {value.zero.dtype}")
    pairs = ((scale, value.scale), (zeros, value.zero))
    if not all(np.array_equal(np.ravel(one), np.ravel(other)) for one, other in pairs) or axis != value.axis:
        raise Misfit("its scale and zero point are not those of the codes that it reads")
    if node.settings.get("output_dtype", 0) not in (None, 0, TensorProto.FLOAT):
        raise Misfit(f"it gives {_type_name(node.settings['output_dtype'])}; layers take float32")
    return [replace(value, whole=False)]


def dequantised(node: Node, opset: int, values: Sequence[Const | None]) -> Const:
    """The floats that constant codes stand for. Whole numbers with one scale, or one for each place along an axis, are
    remembered."""
    codes = values[0]
    scale, zero = _scale_and_zero(values)
    if codes is None:
        raise Misfit("it has no codes")
    numbers, name = codes.array, node.outputs[0]
    if zero is not None and zero.dtype != numbers.dtype:
        raise Misfit(f"its zero point is of type {zero.dtype}, and its codes are of {numbers.dtype}")
    if str(numbers.dtype) not in _WHOLE or scale.ndim > 1 or node.settings.get("block_size"):
        (made,) = computed(node, opset, [None if value is None else value.array for value in values])
        return Const(made, name)
    shape = [1] * numbers.ndim
    if scale.size > 1:
        axis = node.settings.get("axis")
        if axis is None or not -numbers.ndim <= axis < numbers.ndim or numbers.shape[axis] != scale.size:
            raise Misfit(f"its {scale.size} scales lie along no axis of its codes, which are {numbers.shape}")
        shape[axis] = scale.size
    whole = numbers.astype(np.int64) - (0 if zero is None else zero.astype(np.int64).reshape(shape))
    scales = scale.astype(np.float32).reshape(shape)
    kind = node.settings.get("output_dtype")
    to = helper.tensor_dtype_to_np_dtype(kind) if kind else scale.dtype
    made = (whole.astype(np.float32) * scales).astype(to)
    return Const(made, name, Codes(whole, scales) if numbers.ndim else None)
