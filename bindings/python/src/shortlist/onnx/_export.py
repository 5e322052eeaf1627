"""A ranker as an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from .._columns import Data
from .._paths import StrPath
from .._ranker import Feature, Lookup, Ranker
from . import _meta

OPSET = 13
"""The exported graph's opset: ONNX Runtime 1.7 and later run it."""

_LOWEST = np.float32(np.finfo(np.float32).min)


class _Graph:
    """A graph as it grows. Values are names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.inputs: list[Any] = []

    def constant(self, name: str, array: npt.NDArray[Any]) -> str:
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def add(self, op: str, name: str, *operands: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, list(operands), [name], name=name, **attributes))
        return name

    def input(self, name: str, kind: int, shape: list[Any]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def axis(self, axis: int) -> str:
        return self.constant(f"axis_{axis}", np.array([axis], np.int64))


class _Writer:
    def __init__(self, ranker: Ranker) -> None:
        self.graph = _Graph()
        self.info, self.features, self.spec = ranker.info, ranker.features, ranker.spec
        self.tensors, self.layers = ranker.tensors(), ranker.layers
        if self.info.dense_width:
            self.graph.input("dense", TensorProto.FLOAT, ["N", self.info.dense_width])
        if self.info.id_count:
            self.graph.input("ids", TensorProto.INT64, ["N", self.info.id_count])
        self.columns: dict[str, str] = {}
        self.bags: dict[str, tuple[str, str]] = {}
        for feature in sorted(self.features, key=lambda f: f.at):
            if feature.form == "bag":
                self.graph.input(f"bag_{feature.name}", TensorProto.INT64, ["N", f"L_{feature.name}"])

    def tensor(self, name: str) -> str:
        """A weight under its own name; a bias as a vector."""
        array = self.tensors[name]
        return self.graph.constant(name, array[0] if name.endswith("bias") else array)

    def dense(self, feature: Feature) -> str:
        """(N, width): the columns of a feature of floats."""
        if feature.name not in self.columns:
            graph, name = self.graph, feature.name
            first = graph.constant(f"{name}.first", np.array([feature.at], np.int64))
            end = graph.constant(f"{name}.end", np.array([feature.at + feature.width], np.int64))
            self.columns[name] = graph.add("Slice", f"{name}.columns", "dense", first, end, graph.axis(1))
        return self.columns[feature.name]

    def column(self, feature: Feature) -> str:
        """(N,): the ids of a single-valued feature."""
        if feature.name not in self.columns:
            at = self.graph.constant(f"{feature.name}.at", np.array(feature.at, np.int64))
            self.columns[feature.name] = self.graph.add("Gather", f"{feature.name}.ids", "ids", at, axis=1)
        return self.columns[feature.name]

    def bag(self, feature: Feature) -> tuple[str, str]:
        """(N, L): the ids of a bag with 0 in place of -1, and (N, L, 1): 1.0 where there is an id."""
        if feature.name not in self.bags:
            graph, name, source = self.graph, feature.name, f"bag_{feature.name}"
            zero = graph.constant("zero", np.array(0, np.int64))
            absent = graph.add("Less", f"{name}.absent", source, zero)
            ids = graph.add("Where", f"{name}.ids", absent, zero, source)
            present = graph.add("Not", f"{name}.present", absent)
            mask = graph.add("Cast", f"{name}.mask", present, to=TensorProto.FLOAT)
            self.bags[name] = ids, graph.add("Unsqueeze", f"{name}.mask3", mask, graph.axis(2))
        return self.bags[feature.name]

    def bag_sum(self, name: str, table: str, feature: Feature) -> str:
        """(N, width): the sum of a table's rows over a bag."""
        ids, mask = self.bag(feature)
        rows = self.graph.add("Gather", f"{name}.rows", table, ids, axis=0)
        masked = self.graph.add("Mul", f"{name}.masked", rows, mask)
        return self.graph.add("ReduceSum", f"{name}.sum", masked, self.graph.axis(1), keepdims=0)

    def bag_embedding(self, table: str, feature: Feature) -> str:
        graph, name = self.graph, f"{feature.name}.deep"
        if feature.combine == "max":
            return self.bag_max(name, table, feature)
        total = self.bag_sum(name, table, feature)
        if feature.combine == "sum":
            return total
        _, mask = self.bag(feature)
        number = graph.add("ReduceSum", f"{name}.number", mask, graph.axis(1), keepdims=0)
        one = graph.constant("one", np.array(1, np.float32))
        return graph.add("Div", name, total, graph.add("Max", f"{name}.divisor", number, one))

    def bag_max(self, name: str, table: str, feature: Feature) -> str:
        """The largest of each column over the bag; zeros for an empty one."""
        graph = self.graph
        ids, mask = self.bag(feature)
        rows = graph.add("Gather", f"{name}.rows", table, ids, axis=0)
        present = graph.add("Cast", f"{name}.present", mask, to=TensorProto.BOOL)
        lowest = graph.constant("lowest", np.array(_LOWEST))
        masked = graph.add("Where", f"{name}.masked", present, rows, lowest)
        largest = graph.add("ReduceMax", f"{name}.largest", masked, axes=[1], keepdims=0)
        some = graph.add("ReduceMax", f"{name}.some", mask, axes=[1], keepdims=0)
        any_of = graph.add("Cast", f"{name}.any", some, to=TensorProto.BOOL)
        nothing = graph.constant("nothing", np.array(0, np.float32))
        return graph.add("Where", name, any_of, largest, nothing)

    def deep_input(self, feature: Feature) -> str:
        if feature.form == "dense":
            return self.dense(feature)
        table = self.tensor(str(feature.tensor))
        if feature.form == "bag":
            return self.bag_embedding(table, feature)
        return self.graph.add("Gather", f"{feature.name}.deep", table, self.column(feature), axis=0)

    def quantised(self, layer: int, value: str) -> tuple[str, str]:
        """A layer's inputs through their codes, and its weights from theirs."""
        graph, facts, name = self.graph, self.layers[layer], f"dense.{layer}"
        scale = graph.constant(f"{name}.scale", np.array(facts.scale, np.float32))
        zero = graph.constant(f"{name}.zero", np.array(facts.zero, np.uint8))
        scales = np.array(facts.weight_scales, np.float32)
        # The tensor is codes times scales, so that the quotient is a whole number but for rounding.
        codes = np.rint(self.tensors[f"{name}.weight"] / scales).astype(np.int8)
        zeros = graph.constant(f"{name}.zeros", np.zeros(len(scales), np.int8))
        given = graph.constant(f"{name}.codes", codes), graph.constant(f"{name}.scales", scales), zeros
        inputs = graph.add("QuantizeLinear", f"{name}.quantised", value, scale, zero)
        return (
            graph.add("DequantizeLinear", f"{name}.inputs", inputs, scale, zero),
            graph.add("DequantizeLinear", f"{name}.weight", *given, axis=1),
        )

    def rounded(self, layer: int, value: str) -> tuple[str, str]:
        """A layer's inputs rounded to bfloat16, and its weights, which are such numbers, as float32."""
        name = f"dense.{layer}"
        half = self.graph.add("Cast", f"{name}.rounded", value, to=TensorProto.BFLOAT16)
        inputs = self.graph.add("Cast", f"{name}.inputs", half, to=TensorProto.FLOAT)
        return inputs, self.tensor(f"{name}.weight")

    def activation(self, layer: int, value: str) -> str:
        kind = (self.spec.get("deep") or {}).get("activation", "relu")  # a spec may leave the key away
        graph, name = self.graph, f"dense.{layer}.active"
        if kind == "none":
            return value
        if kind in ("relu", "tanh"):
            return graph.add(kind.capitalize(), name, value)
        half, one = graph.constant("half", np.array(0.5, np.float32)), graph.constant("one", np.array(1, np.float32))
        root = graph.constant("root", np.array(np.sqrt(0.5), np.float32))
        erf = graph.add("Erf", f"{name}.erf", graph.add("Mul", f"{name}.scaled", value, root))
        share = graph.add("Mul", f"{name}.share", graph.add("Add", f"{name}.shifted", erf, one), half)
        return graph.add("Mul", name, value, share)

    def deep(self) -> str | None:
        """(N, outputs) of the layers, or None without a deep part."""
        if self.info.layers == 0:
            return None
        inside = sorted((f for f in self.features if f.deep_at is not None), key=lambda f: f.deep_at or 0)
        value = self.graph.add("Concat", "deep_inputs", *[self.deep_input(f) for f in inside], axis=1)
        for layer in range(self.info.layers):
            if self.layers[layer].precision == "int8":
                value, weight = self.quantised(layer, value)
            elif self.layers[layer].precision == "bf16":
                value, weight = self.rounded(layer, value)
            else:
                weight = self.tensor(f"dense.{layer}.weight")
            value = self.graph.add("Gemm", f"dense.{layer}", value, weight, self.tensor(f"dense.{layer}.bias"))
            if layer + 1 < self.info.layers:
                value = self.activation(layer, value)
        return value

    def wide_terms(self) -> list[str]:
        """(N, outputs) of each feature of the wide part."""
        graph, terms = self.graph, []
        for feature in (f for f in self.features if f.wide_at is not None):
            at, name = int(feature.wide_at or 0), f"{feature.name}.wide"
            if feature.form == "dense":
                weight = graph.constant(f"{name}.weight", self.tensors["wide"][at : at + feature.width])
                terms.append(graph.add("MatMul", name, self.dense(feature), weight))
                continue
            weight = graph.constant(f"{name}.weight", self.tensors["wide"][at : at + feature.size])
            if feature.form == "bag":
                terms.append(self.bag_sum(name, weight, feature))
            else:
                terms.append(graph.add("Gather", name, weight, self.column(feature), axis=0))
        return terms

    def write(self) -> Any:
        graph, info = self.graph, self.info
        deep = self.deep()
        terms = ([] if deep is None else [deep]) + self.wide_terms()
        value = graph.add("Sum", "terms", *terms)
        value = graph.add("Add", "logits", value, self.tensor("bias"))
        if info.outputs == 1:
            value = graph.add("Squeeze", "logit", value, graph.axis(1))
        final = {"logistic": "Sigmoid", "multiclass": "Softmax", "squared": "Identity"}[info.loss]
        graph.add(final, "scores", value, **({"axis": 1} if final == "Softmax" else {}))
        shape: list[Any] = ["N"] if info.outputs == 1 else ["N", info.outputs]
        out = helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape)
        return helper.make_graph(graph.nodes, "shortlist", graph.inputs, [out], list(graph.initializers.values()))


def export(ranker: Ranker, path: StrPath | None = None) -> Any:
    """The model as an onnx.ModelProto. The model is also written to path unless path is None.

    Inputs for N rows; inputs that the model has no use for are absent:
        dense (N, dense_width) float32 and ids (N, id_count) int64, as Ranker.encode gives them;
        bag_NAME (N, L) int64 for each multi-valued feature: its ids, filled up with -1; L is free, at least 1.
    Output: scores, float32, (N,) or (N, classes), as Ranker.predict gives them.

    A layer in INT8 has QuantizeLinear and DequantizeLinear around its inputs, and its weights as codes: scores are those
    of Ranker.predict within a step of the codes. Layers in "int8-dynamic" are exported as floats, because ONNX ranges a
    whole batch where Shortlist ranges a row. A layer in "bf16" casts its inputs to bfloat16 and back; its weights are
    float32. Embedding tables in codes are exported decoded.

    ``inputs`` makes the inputs of data. Vocabularies and statistics, which turn columns into these numbers, are no part
    of the graph. They are in the metadata, for ``load``.
    """
    model = helper.make_model(
        _Writer(ranker).write(),
        producer_name="shortlist",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=7,
    )
    helper.set_model_props(model, _meta.describe(ranker))
    onnx.checker.check_model(model)
    if path is not None:
        onnx.save_model(model, os.fsdecode(path))
    return model


def inputs(ranker: Ranker, data: Data, *, lookup: Lookup | None = None) -> dict[str, npt.NDArray[Any]]:
    """The inputs of the exported model for data, as InferenceSession.run takes them."""
    encoded, info = ranker.encode(data, lookup=lookup), ranker.info
    out: dict[str, npt.NDArray[Any]] = {}
    if info.dense_width:
        out["dense"] = encoded.dense
    if info.id_count:
        out["ids"] = encoded.ids.astype(np.int64)
    n = len(encoded.dense)
    for feature in ranker.features:
        if feature.form != "bag":
            continue
        first = encoded.bag_start[:-1].reshape(n, info.bag_count)[:, feature.at].astype(np.int64)
        end = encoded.bag_start[1:].reshape(n, info.bag_count)[:, feature.at].astype(np.int64)
        lengths = end - first
        padded = np.full((n, max(1, int(lengths.max(initial=0)))), -1, np.int64)
        row = np.repeat(np.arange(n), lengths)
        place = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        padded[row, place] = encoded.bag_ids[first[row] + place]
        out[f"bag_{feature.name}"] = padded
    return out
