"""A ranker of an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from .._columns import Data, Spec
from .._paths import StrPath
from .._ranker import Feature, GivenLayer, Lookup, Ranker
from . import _meta
from ._nodes import CONTRIB, SMALL, STANDARD, opset_of
from ._values import NOTHING, Array, Coding, Layers, Part, Total
from ._walk import log, total_of

_FINAL = {"logistic": "Sigmoid", "multiclass": "Softmax", "squared": None}

_FLOATS = GivenLayer("f32")


def _is_half(weight: Array) -> bool:
    """Returns True if all numbers are of bfloat16, the upper half of float32."""
    return not (np.ascontiguousarray(weight, np.float32).view(np.uint32) & 0xFFFF).any()


def _given(name: str, coding: Coding, weight: Array) -> GivenLayer:
    """The layer in the precision that a graph's nodes say, exactly; else a layer of floats, and the log says why."""
    found, codes = coding.range, coding.weights
    if found is None and codes is None and not coding.half:
        return _FLOATS
    if coding.half:
        if codes is None and _is_half(weight):
            return GivenLayer("bf16")
        why = "its inputs are rounded to bfloat16, and its weights are not of bfloat16"
    elif found is None or codes is None:
        why = "its inputs are not in codes of 8 bits" if codes is not None else "its weights are not in codes"
    elif not (why := codes.misfit()):
        scales = np.broadcast_to(codes.scales[0], (codes.numbers.shape[1],)).astype(np.float32)
        return GivenLayer("int8", found.scale, found.zero, codes.numbers.astype(np.int8), scales)
    log.warning("layer %s is read as floats: %s", name, why)
    return _FLOATS


class _Weights:
    """A model's weights as they are found in a graph, in the layout of a ranker with its features."""

    def __init__(self, base: Ranker, own: bool) -> None:
        """own: matrices have the columns of Ranker.encode, whatever their names."""
        self.info, self.features, self.spec, self.own = base.info, base.features, base.spec, own
        self.found: dict[str, Array] = {}
        self.ids = [f for f in self.features if f.form == "id"]
        self.numbers = [(f, i) for f in self.features if f.form == "dense" for i in range(f.width)]
        self.wide = np.full((self.info.wide_size, self.info.outputs), NOTHING)
        self.wide_seen: set[str] = set()
        self.matrix: dict[bool, str] = {}
        self.layers: list[GivenLayer] = []

    def check_inputs(self, graph: Any) -> None:
        names = {value.name for value in graph.input}
        for feature in self.features:
            if feature.form == "bag" and not names & {feature.name, f"bag_{feature.name}"}:
                raise ValueError(
                    f"feature {feature.name!r} is multi-valued, and the graph has no input {f'bag_{feature.name}'!r}, "
                    "(N, L) of int64, as Shortlist's own models have"
                )
        free = names - {tensor.name for tensor in graph.initializer} - {feature.name for feature in self.features}
        for value in (value for value in graph.input if self.own and value.name in free):
            kind = value.type.tensor_type
            wanted = self.info.dense_width if kind.elem_type == TensorProto.FLOAT else self.info.id_count
            width = [dim.dim_value for dim in kind.shape.dim][1:]
            if width not in ([0], [wanted]):
                raise ValueError(f"input {value.name!r} has columns {width}; by the metadata it has {wanted}")

    def bag(self, name: str) -> tuple[Feature, int]:
        """The multi-valued feature that an input of ids stands for."""
        for feature in self.features:
            if feature.form == "bag" and name in (feature.name, f"bag_{feature.name}"):
                return feature, 0
        raise ValueError(f"input {name!r} holds bags, and no multi-valued feature is of its name")

    def feature(self, part: Part) -> tuple[Feature, int]:
        """The feature that a piece of a row stands for, and which number of it. The input's name tells the feature, or
        else the column's number, in the spec's order."""
        ref, ids = part.ref, part.table is not None
        if part.combine is not None:
            return self.bag(ref.input)
        form = "id" if ids else "dense"
        named = [f for f in self.features if f.name == ref.input and f.form == form]
        if named:
            if (ref.column or 0) >= (1 if ids else named[0].width):
                raise ValueError(f"input {ref.input!r} has no column {ref.column} in feature {ref.input!r}")
            return named[0], ref.column or 0
        places = [(f, 0) for f in self.ids] if ids else self.numbers
        if self.own or ref.input in ("ids", "dense"):
            places = sorted(places, key=lambda place: place[0].at)
        if ref.column is None or ref.column >= len(places):
            kind = "categorical, bucket or cross features" if ids else "numbers"
            raise ValueError(
                f"input {ref.input!r}, column {ref.column}, is no feature: it is neither the name of one, nor a column "
                f"of a matrix of the spec's {len(places)} {kind}"
            )
        if self.matrix.setdefault(ids, ref.input) != ref.input:
            raise ValueError(
                f"inputs {self.matrix[ids]!r} and {ref.input!r} are two matrices of the same kind, none of them named "
                "as a feature: which features their columns are cannot be told"
            )
        return places[ref.column]

    def rows(self, part: Part, feature: Feature, all_parts: tuple[Part, ...]) -> Array:
        """The rows of a table that belong to a feature, (size, dim). A table may have rows for the values alone.
        The rows for missing and unseen values, which come first, are then zeros."""
        assert part.table is not None
        table, first = part.table.array, part.ref.shift
        if first < 0 or table.dtype.kind != "f":
            raise ValueError(f"table {part.table.name!r} is of {table.dtype}, or is read from row {first} on")
        later = [p.ref.shift for p in all_parts if p.table is part.table and p.ref.shift > first]
        rows = np.asarray(table[first : min(later, default=len(table))], np.float32)
        if len(rows) == feature.size:
            return rows
        if len(rows) == self.values_of(feature):
            return np.concatenate([np.zeros((feature.size - len(rows), rows.shape[1]), np.float32), rows])
        raise ValueError(
            f"table {part.table.name!r} has {len(rows)} rows for feature {feature.name!r}, whose ids are below "
            f"{feature.size}"
        )

    def values_of(self, feature: Feature) -> int:
        """The number of a feature's values, if its spec tells it; else -1."""
        said = next(f for f in self.spec["features"] if f["name"] == feature.name)
        listed = said.get("vocabulary")
        return len(listed) if isinstance(listed, list) else int(said.get("identity", -1))

    def put(self, name: str, array: Array) -> None:
        if name in self.found and not np.array_equal(self.found[name], array):
            raise ValueError(f"the graph has two tables for {name!r}; the spec says that its features share one")
        self.found[name] = array

    def check_layers(self, deep: Layers) -> None:
        info, wanted = self.info, self.spec.get("deep") or {}
        if len(deep.layers) != info.layers:
            raise ValueError(f"the graph's deep part has {len(deep.layers)} layers, the spec's {info.layers}")
        kind = wanted.get("activation", "relu")
        active = [layer.active for layer in deep.layers if layer.active is not None]
        if any(found != kind for found in active[: info.layers - 1]):
            raise ValueError(f"the graph's activations are {', '.join(active)}; the spec's is {kind}")
        if len(active) >= info.layers and active[-1] != "none":
            raise ValueError(f"the graph has {active[-1]} behind its deep part's last layer")

    def add_layers(self, deep: Layers) -> None:
        info, layer = self.info, deep.layers[0]
        self.check_layers(deep)
        weight, codes, given = layer.weight, layer.coding.weights, 0
        numbers = np.zeros((info.deep_inputs, weight.shape[1]), np.int64)
        first = np.full((info.deep_inputs, weight.shape[1]), NOTHING)
        filled = np.zeros(info.deep_inputs, np.bool_)
        places = [self.deep_place(part, deep.parts) for part in deep.parts]
        read = sum(width for _, width in places)
        if read != len(weight):
            raise ValueError(f"the graph's first layer has {len(weight)} inputs, but {read} are given to it")
        for at, width in places:
            first[at : at + width] += weight[given : given + width]
            if codes is not None:
                numbers[at : at + width] += codes.numbers[given : given + width]
            filled[at : at + width] = True
            given += width
        lacking = [f.name for f in self.features if f.deep_at is not None and not filled[f.deep_at]]
        if lacking or not filled.all():
            raise ValueError(f"the graph's deep part lacks the spec's {', '.join(lacking) or 'indicator columns'}")
        if codes is not None:
            codes = codes._replace(numbers=numbers)
        layers = (layer._replace(weight=first, coding=layer.coding._replace(weights=codes)), *deep.layers[1:])
        for i, layer in enumerate(layers):
            bias = np.zeros(layer.weight.shape[1], np.float32) if layer.bias is None else layer.bias
            self.found[f"dense.{i}.weight"], self.found[f"dense.{i}.bias"] = layer.weight, bias
            self.layers.append(_given(f"dense.{i}", layer.coding, layer.weight))

    def deep_place(self, part: Part, parts: tuple[Part, ...]) -> tuple[int, int]:
        """The first input of the deep part that a piece of a row is, and their number. Keeps the table."""
        feature, number = self.feature(part)
        if feature.deep_at is None:
            raise ValueError(f"feature {feature.name!r} is in the graph's deep part, but not in the spec's")
        width = part.width()
        if part.table is not None:
            if width != feature.deep_width:
                raise ValueError(
                    f"the embedding of {feature.name!r} has {width} columns, the spec's {feature.deep_width}"
                )
            if part.combine != (feature.combine if feature.form == "bag" else None):
                raise ValueError(f"the graph takes the {part.combine} of {feature.name!r}, the spec {feature.combine}")
            self.put(str(feature.tensor), self.rows(part, feature, parts))
        return feature.deep_at + number, width

    def wide_rows(self, feature: Feature, first: int, rows: Array) -> None:
        if feature.wide_at is None:
            raise ValueError(f"feature {feature.name!r} is in the graph's wide part, but not in the spec's")
        if rows.shape[1] != self.info.outputs:
            raise ValueError(
                f"the wide weights of {feature.name!r} have {rows.shape[1]} columns, not {self.info.outputs}"
            )
        at = feature.wide_at + first
        self.wide[at : at + len(rows)] += rows
        self.wide_seen.add(feature.name)

    def add_linear(self, linear: Layers) -> Array:
        """Numbers of the input in the wide part; gives their layer's bias."""
        (layer,) = linear.layers
        if layer.active not in (None, "none"):
            raise ValueError(f"the graph has {layer.active} behind a single layer beside its deep part")
        if len(layer.weight) != len(linear.parts):
            raise ValueError(f"a layer beside the deep part has {len(layer.weight)} inputs, not {len(linear.parts)}")
        if layer.coding.half or layer.coding.range is not None or layer.coding.weights is not None:
            how = "its inputs are rounded to bfloat16" if layer.coding.half else "its inputs or its weights are in codes"
            cut = layer.coding.range is not None and layer.coding.range.zero == 0
            log.warning(
                "a layer of the wide part is read as floats: %s%s",
                how,
                ", which cut off what is below 0; the model keeps it" if cut else "",
            )
        for i, part in enumerate(linear.parts):
            if part.table is not None:
                raise ValueError(f"table {part.table.name!r} leads to a single layer beside the deep part")
            feature, number = self.feature(part)
            self.wide_rows(feature, number, layer.weight[i : i + 1])
        return np.zeros(1, np.float32) if layer.bias is None else layer.bias

    def add_total(self, total: Total) -> None:
        info = self.info
        deep = [net for net in total.layers if len(net.layers) > 1]
        linear = [net for net in total.layers if len(net.layers) == 1]
        if len(deep) > 1 or len(deep) != (info.layers > 0):
            raise ValueError(f"the graph has {len(deep)} deep parts, the spec {int(info.layers > 0)}")
        for net in deep:
            self.add_layers(net)
        bias = np.broadcast_to(total.bias, (info.outputs,)).astype(np.float32)
        for net in linear:
            bias = bias + self.add_linear(net)
        for part in total.terms:
            feature, _ = self.feature(part)
            if part.combine not in (None, "sum"):
                raise ValueError(f"the graph's wide part has the {part.combine} of {feature.name!r}; it must be the sum")
            self.wide_rows(feature, 0, self.rows(part, feature, total.terms))
        lacking = [f.name for f in self.features if f.wide_at is not None and f.name not in self.wide_seen]
        if lacking:
            raise ValueError(f"the graph's wide part lacks the spec's {', '.join(lacking)}")
        self.found["bias"] = bias
        if info.wide_size:
            self.found["wide"] = self.wide


def _with_layers(ranker: Ranker, layers: list[GivenLayer]) -> Ranker:
    return ranker if all(layer.precision == "f32" for layer in layers) else ranker._with_layers(layers)


def _read(path: str) -> Any:
    """The model of a file, with the weights that it keeps in others."""
    try:
        proto = onnx.load_model(path, load_external_data=False)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: not an ONNX model; name a file that export or another maker wrote: {error}") from error
    try:
        onnx.load_external_data_for_model(proto, os.path.dirname(path))
    except Exception as error:
        raise ValueError(f"{path}: weights that it keeps in another file cannot be read: {error}") from error
    return proto


def _typed(proto: Any) -> None:
    """Checks that types and shapes fit throughout the graph. Large arrays count by theirs alone."""
    # ONNX Runtime knows its own domain without a word, and a model need not name its version.
    opsets = [helper.make_opsetid("", opset_of(proto)), helper.make_opsetid(CONTRIB, 1)]
    model = onnx.ModelProto(ir_version=proto.ir_version, opset_import=opsets)
    graph, given = model.graph, {value.name for value in proto.graph.input}
    graph.name = "types"
    graph.node.extend(proto.graph.node)
    for node in graph.node:
        node.domain = "" if node.domain in STANDARD else node.domain
    graph.input.extend(proto.graph.input)
    for tensor in proto.graph.initializer:
        if int(np.prod(tensor.dims, dtype=np.int64)) <= SMALL:
            graph.initializer.append(tensor)
        elif tensor.name not in given:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for value in proto.graph.output:
        kind = value.type.tensor_type.elem_type
        graph.output.append(helper.make_tensor_value_info(value.name, kind, None))
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        raise ValueError(f"the graph's types or shapes do not fit together: {error}") from error


def _base(proto: Any, spec: Spec | None, data: Data | None, lookup: Lookup | None) -> Ranker:
    """A ranker that has the features of the graph: the one that was exported, or one of the spec."""
    meta = {prop.key: prop.value for prop in proto.metadata_props}
    if spec is None:
        if _meta.MODEL not in meta:
            raise ValueError(
                "this model was not exported by Shortlist; give the spec of its features, and data to fit them"
            )
        return _meta.restore(meta[_meta.MODEL])
    if data is None:
        raise ValueError("a spec needs data, which statistics and vocabularies are fitted to")
    return Ranker.create(spec, data, lookup=lookup)


def load(
    model: StrPath | Any,
    spec: Spec | None = None,
    data: Data | None = None,
    *,
    lookup: Lookup | None = None,
) -> Ranker:
    """The ranker of an ONNX model: a path or an onnx.ModelProto.

    The graph is read node by node. The ranker gives the graph's scores, but for codes that it has no place for, or the
    graph is refused. A model made by ``export`` needs nothing else: its metadata say which features it has. For
    another maker's model, or with other features, spec says which. data is what statistics and vocabularies are fitted
    to, as in Ranker.create. A graph is read as follows:
    - deep part: Gather of embeddings, Concat, Gemm or MatMul and Add, Relu, Tanh or Gelu, also gelu by Erf;
    - bags of ids: the nodes that ``export`` writes for sum, mean and max, whatever their names;
    - wide part: Gather and ReduceSum, and a Gemm over numbers;
    - layers in INT8: QuantizeLinear and DequantizeLinear around the inputs, and DequantizeLinear behind the weights.
      They become layers in INT8 with the graph's scales and zero points. Inputs may be of u8 or s8. Weights may be of
      either, if with their zero point taken off they are from -128 to 127, with one scale or one an output. Other
      layers are read as floats, with the weights that the codes stand for, and the logger "shortlist.onnx" warns of
      each. Codes whose zero is the lowest one stand for a Relu, and are refused where a model has no place for one.
      Other codes of values that lead to no layer are passed over, and the logger tells of each at level INFO. It warns
      of inputs whose numbers below 0 are cut off by codes that the model has no place for;
    - layers in bf16: Cast of the inputs to bfloat16 and back, with weights that are such numbers;
    - end: the sum of the parts, and Sigmoid (logistic loss), Softmax (multiclass) or nothing (squared).

    Opsets from 7 on are read, of the domain "" or "ai.onnx". QuantizeLinear and DequantizeLinear may be of the domain
    "com.microsoft", as ONNX Runtime's quantiser writes them. Attributes and zero points may be left out.

    An input's name tells the feature of its column, if the name is a feature's. Otherwise the column's number in a
    matrix of all numbers, or of all ids, tells the feature. Columns stand in the order of the spec's features. In a
    matrix named "dense" or "ids", and in models of ``export``, they stand as Ranker.encode gives them. A bag's input is
    named "bag_" and its feature. A table has a row for every id of its feature, or for its values alone ("identity", a
    listed "vocabulary"). In the second case, the rows of missing and unseen values, which come first, are zeros. So a
    model may be trained elsewhere on data from Ranker.encode, and be brought here.

    Weights in other files are read beside a path. A ModelProto must have them read.

    ValueError naming the node that is not understood, the array that cannot be read, the feature that does not fit, or
    a file that is no ONNX model. OSError for a file that cannot be read, TypeError for what is neither a path nor a
    model. Other exceptions come from spec and data, as of Ranker.create.
    """
    proto = _read(os.fsdecode(model)) if isinstance(model, (str, bytes, os.PathLike)) else model
    if not isinstance(proto, onnx.ModelProto):
        raise TypeError(f"model is a path or an onnx.ModelProto, not {type(model).__name__}")
    base = _base(proto, spec, data, lookup)
    weights = _Weights(base, own=spec is None)
    weights.check_inputs(proto.graph)
    total = total_of(proto)
    final = _FINAL[base.info.loss]
    if total.final != final:
        raise ValueError(
            f"the graph ends in {total.final or 'no function'}; {base.info.loss} loss ends in {final or 'none'}"
        )
    weights.add_total(total)
    _typed(proto)
    return _with_layers(base.with_tensors(weights.found), weights.layers)
