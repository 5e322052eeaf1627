"""Nodes of a graph, with the attributes that their operator has in the graph's opset, and constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ._values import Array

# The names of the domain of standard operators. ONNX Runtime's own domain has the quantiser's nodes.
STANDARD, CONTRIB = ("", "ai.onnx"), "com.microsoft"
_OLDEST = 7
# The opset whose operators of the same names do what those of ONNX Runtime's domain do.
_CONTRIB_AS = 21

# Attributes of the nodes of the domain com.microsoft that are read, with their defaults. Without an axis, one scale is
# for the whole.
_CONTRIB_NODES = {"QuantizeLinear": {"axis": None}, "DequantizeLinear": {"axis": None}}

# Arrays of so many numbers may be shapes or axes, which other shapes depend on.
SMALL = 1024
# Numbers that a node may make of constants, and more where it is given as many.
_MOST = 1 << 24

# Operators whose result is drawn by chance.
_BY_CHANCE = ("RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout")


class Misfit(Exception):
    """The reason why a node is not understood."""


@dataclass(frozen=True)
class Node:
    """A node. op: its operator; settings: its attributes, defaults included; name: its own, or its first output's;
    outputs: names; contrib: whether it is of ONNX Runtime's domain; proto: as it was given."""

    op: str
    settings: dict[str, Any]
    name: str
    outputs: tuple[str, ...]
    contrib: bool
    proto: Any


def opset_of(model: Any) -> int:
    """The version of the standard operators."""
    found = [entry.version for entry in model.opset_import if entry.domain in STANDARD]
    if not found:
        raise ValueError("the model names no opset of ai.onnx: it is no ONNX model, or a damaged one")
    if found[0] < _OLDEST or any(version != found[0] for version in found):
        raise ValueError(
            f"the model is of opset {found[0]}; {_OLDEST} and later are read: convert it by onnx.version_converter"
        )
    return int(found[0])


def _schema_of(proto: Any, opset: int) -> Any:
    try:
        return onnx.defs.get_schema(proto.op_type, opset, "")
    except Exception:  # the type has moved between versions of onnx
        raise Misfit(f"opset {opset} has no such operator") from None


def _settings(proto: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a node over the defaults of those that are known."""
    settings = dict(known)
    for attribute in proto.attribute:
        if attribute.name not in known:
            raise Misfit(f"it has no attribute {attribute.name!r}")
        if sum(other.name == attribute.name for other in proto.attribute) > 1:
            raise Misfit(f"attribute {attribute.name!r} is given twice")
        if attribute.ref_attr_name:
            raise Misfit(f"attribute {attribute.name!r} refers to a function's")
        settings[attribute.name] = helper.get_attribute_value(attribute)
    return settings


def _standard(proto: Any, opset: int) -> dict[str, Any]:
    """The attributes of a node of a standard operator. Checks their types, and the number of inputs and outputs."""
    schema = _schema_of(proto, opset)
    if not schema.min_input <= len(proto.input) <= schema.max_input:
        raise Misfit(f"it has {len(proto.input)} inputs")
    if not schema.min_output <= len(proto.output) <= schema.max_output:
        raise Misfit(f"it has {len(proto.output)} outputs")
    for i, name in enumerate(proto.input):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if not name and formal.option != onnx.defs.OpSchema.FormalParameterOption.Optional:
            raise Misfit(f"its input {formal.name!r} is left out")
    for attribute in proto.attribute:
        wanted = schema.attributes.get(attribute.name)
        if wanted is not None and int(wanted.type.value) != attribute.type:
            raise Misfit(f"attribute {attribute.name!r} is of another type")
    defaults = {}
    for name, wanted in schema.attributes.items():
        given = wanted.default_value
        defaults[name] = helper.get_attribute_value(given) if given.type else None
        if wanted.required and not any(attribute.name == name for attribute in proto.attribute):
            raise Misfit(f"attribute {name!r} is missing")
    return _settings(proto, defaults)


def read_node(proto: Any, opset: int) -> Node:
    """A node with its attributes. Misfit: its operator is unknown, or it is none of that operator."""
    contrib = proto.domain == CONTRIB
    if not contrib and proto.domain not in STANDARD:
        raise Misfit(f"its domain is {proto.domain!r}, whose operators are not known")
    if contrib and proto.op_type not in _CONTRIB_NODES:
        known = " and ".join(_CONTRIB_NODES)
        raise Misfit(f"its domain is {CONTRIB!r}, of which {known} are known")
    if contrib and not (2 <= len(proto.input) <= 3 and len(proto.output) == 1):
        raise Misfit(f"it has {len(proto.input)} inputs and {len(proto.output)} outputs")
    settings = _settings(proto, _CONTRIB_NODES[proto.op_type]) if contrib else _standard(proto, opset)
    return Node(proto.op_type, settings, label(proto), tuple(proto.output), contrib, proto)


def label(proto: Any) -> str:
    """A node's name, or else its first output's."""
    return str(proto.name or (proto.output[0] if proto.output else ""))


def array_of(tensor: Any, what: str) -> Array:
    """A tensor's numbers. ValueError naming it."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"{what} lies in another file, which was not read; give the model's path, or read that file")
    try:
        array = np.asarray(numpy_helper.to_array(tensor))
    except Exception as error:
        raise ValueError(f"{what} cannot be read: {error}") from error
    return array


def computed(node: Node, opset: int, values: Sequence[Array | None]) -> list[Array]:
    """Computes a node of constants, by ONNX's reference implementation."""
    if node.op in _BY_CHANCE:
        raise Misfit("its result depends on chance")
    kinds = {attribute.type for attribute in node.proto.attribute}
    if kinds & {AttributeProto.GRAPH, AttributeProto.GRAPHS, AttributeProto.SPARSE_TENSOR}:
        raise Misfit("it has a graph or a sparse array of its own")
    if node.contrib:
        opset = min(_CONTRIB_AS, onnx.defs.onnx_opset_version())
    names = [f"in{i}" if value is not None else "" for i, value in enumerate(values)]
    proto = helper.make_node(node.op, names, list(node.outputs))
    proto.attribute.extend(node.proto.attribute)
    feeds = {name: value for name, value in zip(names, values) if value is not None}
    if node.op != "Constant":
        _check_size(proto, opset, feeds)
    # An empty type stands for any.
    given, gives = ([onnx.ValueInfoProto(name=name) for name in names] for names in (feeds, filter(None, node.outputs)))
    graph = helper.make_graph([proto], "made", given, gives)
    return [np.asarray(array) for array in ReferenceEvaluator(graph, opsets={"": opset}).run(None, feeds)]


def _check_size(proto: Any, opset: int, feeds: dict[str, Array]) -> None:
    """Refuses a node that makes far more numbers than it is given: a small file must not fill the memory."""
    most = max([_MOST, *(4 * array.size for array in feeds.values())])
    graph = onnx.GraphProto(name="made", node=[proto])
    for name, array in feeds.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
        if array.size <= SMALL:
            graph.initializer.append(numpy_helper.from_array(array, name))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    found = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph.value_info
    shapes = {value.name: value.type.tensor_type.shape.dim for value in found}
    for name in filter(None, proto.output):
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in shapes.get(name, [])]
        if name not in shapes or None in dims or math.prod(size or 0 for size in dims) > most:
            raise Misfit(f"it makes constants of shape {dims}, which is too large, or is not known before")
