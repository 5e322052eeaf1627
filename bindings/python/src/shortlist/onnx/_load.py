"""A ranker of an ONNX graph."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .._columns import Data, Spec
from .._index import StrPath
from .._ranker import Feature, GivenLayer, Lookup, Ranker
from . import _meta
from ._values import Array, Coding, Layers, Part, Ref, Total
from ._walk import log, total_of

_FINAL = {"logistic": "Sigmoid", "multiclass": "Softmax", "squared": None}


_FLOATS = GivenLayer("f32")


def _given(name: str, coding: Coding) -> GivenLayer:
    """The layer in INT8 that a graph's codes say, exactly; else a layer of floats, and the log says why."""
    found, codes = coding
    if found is None and codes is None:
        return _FLOATS
    if found is None or codes is None:
        why = "its inputs are not in codes of 8 bits" if codes is not None else "its weights are not in codes"
    elif codes.scales.shape[0] != 1:
        why = "its weights have a scale for each input"
    elif codes.numbers.min(initial=0) < -128 or codes.numbers.max(initial=0) > 127:
        why = "its weights are not whole numbers from -128 to 127 times a scale"
    else:
        scales = np.broadcast_to(codes.scales[0], (codes.numbers.shape[1],)).astype(np.float32)
        return GivenLayer("int8", found.scale, found.zero, codes.numbers.astype(np.int8), scales)
    log.warning("layer %s is read as floats: %s", name, why)
    return _FLOATS


class _Weights:
    """A model's weights as they are found in a graph, in the layout of a ranker with its features."""

    def __init__(self, base: Ranker) -> None:
        self.info, self.features, self.spec = base.info, base.features, base.spec
        self.found: dict[str, Array] = {}
        self.ids = [f for f in self.features if f.form == "id"]
        self.numbers = [(f, i) for f in self.features if f.form == "dense" for i in range(f.width)]
        self.wide = np.zeros((self.info.wide_size, self.info.outputs), np.float32)
        self.wide_seen: set[str] = set()
        self.matrix: dict[bool, str] = {}
        self.layers: list[GivenLayer] = []
        for feature in self.features:
            if feature.form == "bag":
                raise ValueError(
                    f"feature {feature.name!r} is multi-valued, which is read from Shortlist's own models only"
                )

    def feature(self, ref: Ref, ids: bool) -> tuple[Feature, int]:
        """The feature that a column of an input stands for, and which number of it. The input's name tells the
        feature, or else the column's number, in the spec's order."""
        form = "id" if ids else "dense"
        named = [f for f in self.features if f.name == ref.input and f.form == form]
        if named:
            return named[0], ref.column or 0
        places = [(f, 0) for f in self.ids] if ids else self.numbers
        if ref.input in ("ids", "dense"):
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

    def add_layers(self, deep: Layers) -> None:
        info, wanted = self.info, self.spec.get("deep") or {}
        if len(deep.layers) != info.layers:
            raise ValueError(f"the graph's deep part has {len(deep.layers)} layers, the spec's {info.layers}")
        kind = wanted.get("activation", "relu")
        if any(active != kind for active in deep.active):
            raise ValueError(f"the graph's activations are {', '.join(deep.active)}; the spec's is {kind}")
        if len(deep.active) >= len(deep.layers):
            raise ValueError(f"the graph has {deep.active[-1]} behind its deep part's last layer")
        weight, given = deep.layers[0][0], 0
        codes = deep.codings[0].weights
        numbers = np.zeros((info.deep_inputs, weight.shape[1]), np.int64)
        first = np.zeros((info.deep_inputs, weight.shape[1]), np.float32)
        filled = np.zeros(info.deep_inputs, np.bool_)
        for part in deep.parts:
            feature, number = self.feature(part.ref, part.table is not None)
            if feature.deep_at is None:
                raise ValueError(f"feature {feature.name!r} is in the graph's deep part, but not in the spec's")
            at, width = feature.deep_at + number, part.width()
            if part.table is not None:
                if width != feature.deep_width:
                    raise ValueError(
                        f"the embedding of {feature.name!r} has {width} columns, the spec's {feature.deep_width}"
                    )
                self.put(str(feature.tensor), self.rows(part, feature, deep.parts))
            first[at : at + width] += weight[given : given + width]
            if codes is not None:
                numbers[at : at + width] += codes.numbers[given : given + width]
            filled[at : at + width] = True
            given += width
        if given != len(weight):
            raise ValueError(f"the graph's first layer has {len(weight)} inputs, but {given} are given to it")
        lacking = [f.name for f in self.features if f.deep_at is not None and not filled[f.deep_at]]
        if lacking or not filled.all():
            raise ValueError(f"the graph's deep part lacks the spec's {', '.join(lacking) or 'indicator columns'}")
        for i, (matrix, bias) in enumerate([(first, deep.layers[0][1]), *deep.layers[1:]]):
            self.found[f"dense.{i}.weight"], self.found[f"dense.{i}.bias"] = matrix, bias
        if codes is not None:
            codes = codes._replace(numbers=numbers)
        codings = (deep.codings[0]._replace(weights=codes), *deep.codings[1:])
        self.layers = [_given(f"dense.{i}", coding) for i, coding in enumerate(codings)]

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
        weight, bias = linear.layers[0]
        for i, part in enumerate(linear.parts):
            if part.table is not None:
                raise ValueError(f"table {part.table.name!r} leads to a single layer beside the deep part")
            feature, number = self.feature(part.ref, False)
            self.wide_rows(feature, number, weight[i : i + 1])
        return bias

    def add_total(self, total: Total) -> None:
        info = self.info
        deep = [net for net in total.layers if len(net.layers) > 1 or (info.layers == 1 and len(total.layers) == 1)]
        linear = [net for net in total.layers if net not in deep]
        if len(deep) > 1 or len(deep) != (info.layers > 0):
            raise ValueError(f"the graph has {len(deep)} deep parts, the spec {int(info.layers > 0)}")
        for net in deep:
            self.add_layers(net)
        bias = np.broadcast_to(total.bias, (info.outputs,)).astype(np.float32)
        for net in linear:
            bias = bias + self.add_linear(net)
        for part in total.terms:
            feature, _ = self.feature(part.ref, True)
            self.wide_rows(feature, 0, self.rows(part, feature, total.terms))
        lacking = [f.name for f in self.features if f.wide_at is not None and f.name not in self.wide_seen]
        if lacking:
            raise ValueError(f"the graph's wide part lacks the spec's {', '.join(lacking)}")
        self.found["bias"] = bias
        if info.wide_size:
            self.found["wide"] = self.wide


def _own_layers(base: Ranker, graph: Any, arrays: dict[str, Array]) -> list[GivenLayer]:
    """The layers of a graph of our own, whose codes and casts have names."""
    nodes = {node.name for node in graph.node}
    layers = []
    for i in range(base.info.layers):
        name = f"dense.{i}"
        if f"{name}.codes" in arrays:
            scale, zero = (arrays[f"{name}.{part}"].item() for part in ("scale", "zero"))
            layers.append(GivenLayer("int8", scale, zero, arrays[f"{name}.codes"], arrays[f"{name}.scales"]))
        else:
            layers.append(GivenLayer("bf16") if f"{name}.rounded" in nodes else _FLOATS)
    return layers


def _with_layers(ranker: Ranker, layers: list[GivenLayer]) -> Ranker:
    return ranker if all(layer.precision == "f32" for layer in layers) else ranker._with_layers(layers)


def _own(base: Ranker, graph: Any) -> Ranker:
    """The ranker of a graph of our own, whose weights have names."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name in [name for name in arrays if name.endswith(".codes")]:
        layer = name.removesuffix(".codes")
        if f"{layer}.scales" in arrays:
            arrays[f"{layer}.weight"] = arrays[name].astype(np.float32) * arrays[f"{layer}.scales"]
    tensors, found = base.tensors(), {}
    wide = np.zeros((base.info.wide_size, base.info.outputs), np.float32)
    names = [name for name in tensors if name != "wide"]
    names += [f"{f.name}.wide.weight" for f in base.features if f.wide_at is not None]
    lacking = [name for name in names if name not in arrays]
    if lacking:
        raise ValueError(f"the graph has no initializer {lacking[0]!r}: it was changed since it was exported")
    for feature in base.features:
        if feature.wide_at is not None:
            rows = arrays[f"{feature.name}.wide.weight"]
            wide[feature.wide_at : feature.wide_at + len(rows)] = rows
    for name in tensors:
        found[name] = wide if name == "wide" else arrays[name]
    return _with_layers(base.with_tensors(found), _own_layers(base, graph, arrays))


def _read(path: str) -> Any:
    try:
        return onnx.load_model(path)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: not an ONNX model; name a file that export or another maker wrote: {error}") from error


def load(
    model: StrPath | Any,
    spec: Spec | None = None,
    data: Data | None = None,
    *,
    lookup: Lookup | None = None,
) -> Ranker:
    """The ranker of an ONNX model: a path or an onnx.ModelProto.

    A model made by ``export`` needs nothing else: features come along in its metadata, weights from its graph. For
    another maker's model, spec says which features it has. data is what statistics and vocabularies are fitted to, as
    in Ranker.create. The graph of such a model is read as follows:
    - deep part: Gather of embeddings, Concat, Gemm or MatMul and Add, Relu, Tanh or Gelu;
    - wide part: Gather and ReduceSum, and a Gemm over numbers;
    - layers in INT8: QuantizeLinear and DequantizeLinear around the inputs, and DequantizeLinear behind the weights. They
      become layers in INT8 with the graph's scales and zero points. Inputs may be of u8 or s8. Weights may be of either,
      if with their zero point taken off they are from -128 to 127, with one scale or one an output. Other layers are
      read as floats, with the weights that the codes stand for, and the logger "shortlist.onnx" warns of each. Codes
      between layers whose zero is the lowest one stand for a Relu. Codes of other values are passed over;
    - end: the sum of the parts, and Sigmoid (logistic loss), Softmax (multiclass) or nothing (squared).

    An input's name tells the feature of its column, if the name is a feature's. Otherwise the column's number in a
    matrix of all numbers, or of all ids, tells the feature. Columns stand in the order of the spec's features. In a
    matrix named "dense" or "ids", they stand as Ranker.encode gives them. A table has a row for every id of its
    feature, or for its values alone ("identity", a listed "vocabulary"). In the second case, the rows of missing and
    unseen values, which come first, are zeros. So a model may be trained elsewhere on data from Ranker.encode, and be
    brought here.

    ValueError naming the node that is not understood, the feature that does not fit, or a file that is no ONNX model.
    """
    proto = _read(os.fsdecode(model)) if isinstance(model, (str, bytes, os.PathLike)) else model
    meta = {prop.key: prop.value for prop in proto.metadata_props}
    if spec is None:
        if _meta.MODEL not in meta:
            raise ValueError(
                "this model was not exported by Shortlist; give the spec of its features, and data to fit them"
            )
        base = _meta.restore(meta[_meta.MODEL])
        return _own(base, proto.graph)
    if data is None:
        raise ValueError("a spec needs data, which statistics and vocabularies are fitted to")
    base = Ranker.create(spec, data, lookup=lookup)
    total = total_of(proto.graph)
    final = _FINAL[base.info.loss]
    if total.final != final:
        raise ValueError(
            f"the graph ends in {total.final or 'no function'}; {base.info.loss} loss ends in {final or 'none'}"
        )
    weights = _Weights(base)
    weights.add_total(total)
    return _with_layers(base.with_tensors(weights.found), weights.layers)
