"""Exchange with ONNX. An exported model gives the same scores in ONNX Runtime, and comes back. A model that others made
is read, or refused by its node."""

from __future__ import annotations

import io
import json
import pathlib
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
from clicks import DIM, columns, spec

import shortlist

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "support"))

import coded_model  # noqa: E402
import shortlist.onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return columns(500)


def run(model, inputs):
    options = runtime.SessionOptions()
    # Products of codes saturate in 16 bits on processors with AVX2 and without VNNI, unless the session asks for all bits.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (scores,) = session.run(None, inputs)
    return scores


def with_tags(**changes):
    features = [{**f, **changes} if f["name"] == "tags" else f for f in spec()["features"]]
    shared = {"name": "more_tags", "type": "multi", "column": "tags", "shared": "tags", "side": "item"}
    return [*features, shared, {"name": "recall", "type": "score", "column": "price"}]


CROSSED_BAG = {"name": "x", "type": "cross", "of": ["city", "tags"], "hash": 30}
SPECS = {
    "all forms": spec(),
    "bags summed": spec(features=with_tags(combine="sum")),
    "largest of bags": spec(features=with_tags(combine="max")),
    "gelu": spec(deep={"hidden": [8], "activation": "gelu"}),
    "tanh": spec(deep={"hidden": [8, 4, 4], "activation": "tanh"}),
    "no activation": spec(deep={"hidden": [8], "activation": "none"}),
    "wide alone": spec(deep=None),
    "deep alone": spec(wide=None),
    "a crossed bag": spec(features=[*spec()["features"], CROSSED_BAG]),
    "squared": spec(label={"column": "price", "loss": "squared"}),
    "several classes": spec(label={"column": "shop", "loss": "multiclass"}),
    "ids alone": spec(features=[{"name": "city", "type": "categorical", "dim": 2}], deep={"hidden": [4]}),
    "numbers alone": spec(features=[{"name": "age", "type": "numeric"}], deep={"hidden": [4]}),
}


@pytest.mark.parametrize("which", SPECS)
def test_exported_models_give_the_same_scores_and_come_back(which, data, tmp_path):
    rk = shortlist.Ranker.train(SPECS[which], data, threads=1)
    model = shortlist.onnx.export(rk, tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == shortlist.onnx.OPSET
    expected, scale = rk.predict(data), max(1.0, float(np.abs(rk.predict(data)).max()))
    inputs = shortlist.onnx.inputs(rk, data)
    assert set(inputs) == {value.name for value in model.graph.input}
    scores = run(model, inputs)
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, atol=1e-5 * scale)
    few = {name: values[:3] for name, values in data.items()}
    np.testing.assert_allclose(run(model, shortlist.onnx.inputs(rk, few)), expected[:3], atol=1e-5 * scale)
    for source in (model, tmp_path / "m.onnx", str(tmp_path / "m.onnx")):
        again = shortlist.onnx.load(source)
        np.testing.assert_array_equal(again.predict(data), expected)
        assert again.spec == rk.spec and again.features == rk.features
        for name, array in rk.tensors().items():
            np.testing.assert_array_equal(again.tensors()[name], array)


def test_tables_in_codes_are_exported_decoded(data, tmp_path):
    rk = shortlist.Ranker.train(spec(), data, threads=1)
    rk.save(tmp_path / "m.slr")
    shapes = [(table.size, table.dim) for table in rk.embeddings]
    types = ["i4" if i % 2 else "i8" for i in range(len(shapes))]
    (tmp_path / "c.slr").write_bytes(coded_model.code_tables((tmp_path / "m.slr").read_bytes(), shapes, types))
    coded = shortlist.Ranker.open(tmp_path / "c.slr")
    model = shortlist.onnx.export(coded)
    expected = coded.predict(data)
    np.testing.assert_allclose(run(model, shortlist.onnx.inputs(coded, data)), expected, atol=1e-5)
    again = shortlist.onnx.load(model)
    assert {table.type for table in again.embeddings} == {"f32"}
    np.testing.assert_allclose(again.predict(data), expected, atol=1e-5)


@pytest.mark.parametrize("hidden, activation", [([24, 16], "relu"), ([12], "tanh")])
def test_layers_in_int8_are_exported_as_codes(hidden, activation, data, tmp_path):
    rk = shortlist.Ranker.train(spec(deep={"hidden": hidden, "activation": activation}), data, threads=1)
    made, _ = rk.quantize(data, tables="f32", max_drop=1, mode="static", trials=1)
    model = shortlist.onnx.export(made, tmp_path / "q.onnx")
    onnx.checker.check_model(model, full_check=True)
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("QuantizeLinear") == len(made.layers)
    assert operators.count("DequantizeLinear") == 2 * len(made.layers)
    codes = [t for t in model.graph.initializer if t.name.endswith(".codes")]
    assert all(t.data_type == TensorProto.INT8 for t in codes) and len(codes) == len(made.layers)
    scores, expected = run(model, shortlist.onnx.inputs(made, data)), made.predict(data)
    # Nearly all are equal. A tie that is rounded the other way in an earlier layer is a few steps in the last one.
    last = made.layers[-1]
    step = last.scale * 127 * max(last.weight_scales)
    logits = np.log(scores / (1 - scores)) - np.log(expected / (1 - expected))
    assert np.abs(logits).max() <= 8 * step
    assert np.median(np.abs(logits)) < 1e-5
    again = shortlist.onnx.load(model)
    assert again.layers == made.layers and again.to_bytes() == made.to_bytes()
    np.testing.assert_array_equal(again.predict(data), expected)


NUMBERS = spec(
    features=[{"name": name, "type": "numeric"} for name in ("age", "price")], deep={"hidden": [12, 8]}, wide=None
)


def rows_of_numbers(n=400):
    age, price = np.random.default_rng(5).normal(size=(2, n)).astype(np.float32)
    return {"age": age, "price": price, "click": (age * price + age > 0.3).astype(np.float32)}


def test_layers_in_int8_without_metadata():
    """The graph of a model in INT8 is read node by node as well, codes included."""
    rows = rows_of_numbers()
    rk = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    made, _ = rk.quantize(rows, max_drop=1, mode="static", trials=1)
    assert [layer.precision for layer in made.layers] == ["int8"] * 3
    model = shortlist.onnx.export(made)
    del model.metadata_props[:]
    again = shortlist.onnx.load(model, NUMBERS, rows)
    assert again.layers == made.layers
    np.testing.assert_allclose(again.predict(rows), made.predict(rows), rtol=1e-6)


@pytest.mark.parametrize("how", ["transB", "Transpose"])
def test_weights_in_codes_may_lie_the_other_way(how):
    rows = rows_of_numbers()
    rk = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    made, _ = rk.quantize(rows, max_drop=1, mode="static", trials=1)
    model = shortlist.onnx.export(made)
    del model.metadata_props[:]
    codes = next(tensor for tensor in model.graph.initializer if tensor.name == "dense.1.codes")
    codes.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(numpy_helper.to_array(codes).T), codes.name))
    nodes = {node.name: (i, node) for i, node in enumerate(model.graph.node)}
    nodes["dense.1.weight"][1].attribute[0].i = 0
    at, layer = nodes["dense.1"]
    if how == "transB":
        layer.attribute.append(helper.make_attribute("transB", 1))
    else:
        layer.input[1] = "turned"
        model.graph.node.insert(at, helper.make_node("Transpose", ["dense.1.weight"], ["turned"], perm=[1, 0]))
    assert np.median(np.abs(run(model, shortlist.onnx.inputs(rk, rows)) - made.predict(rows))) < 1e-5
    again = shortlist.onnx.load(model, NUMBERS, rows)
    assert again.layers == made.layers
    np.testing.assert_allclose(again.predict(rows), made.predict(rows), rtol=1e-6)


class Rows:
    """Rows to calibrate on, as ONNX Runtime reads them."""

    def __init__(self, inputs):
        self.left = [inputs]

    def get_next(self):
        return self.left.pop() if self.left else None


def by_onnxruntime(ranker, rows, tmp_path, **options):
    """The ranker's graph as ONNX Runtime's tool quantises it, and the scores that it gives."""
    tool = pytest.importorskip("onnxruntime.quantization")
    inputs = shortlist.onnx.inputs(ranker, rows)
    shortlist.onnx.export(ranker, tmp_path / "f32.onnx")
    for name in ("activation_type", "weight_type"):
        options[name] = getattr(tool.QuantType, options.get(name, "QInt8"))
    tool.quantize_static(
        tmp_path / "f32.onnx", tmp_path / "qdq.onnx", Rows(inputs), quant_format=tool.QuantFormat.QDQ, **options
    )
    model = onnx.load(tmp_path / "qdq.onnx")
    del model.metadata_props[:]
    return model, run(model, inputs)


def logits(scores):
    return np.log(scores / (1 - scores))


# The tool puts the ReLU behind a layer into the codes of its outputs.
CODED = {"op_types_to_quantize": ["Gemm", "Relu"]}


@pytest.mark.parametrize(
    "options",
    [
        {"per_channel": True, "activation_type": "QUInt8"},
        {"per_channel": True, "activation_type": "QInt8"},
        {"per_channel": False, "activation_type": "QUInt8"},
        {"activation_type": "QInt8", "extra_options": {"ActivationSymmetric": True}},
        {"activation_type": "QUInt8", "weight_type": "QUInt8", "extra_options": {"WeightSymmetric": True}},
    ],
)
def test_graphs_that_onnxruntime_quantised(options, tmp_path):
    rows = rows_of_numbers()
    rk = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    model, expected = by_onnxruntime(rk, rows, tmp_path, **CODED, **options)
    again = shortlist.onnx.load(model, NUMBERS, rows)
    assert [layer.precision for layer in again.layers] == ["int8"] * 3
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    shift = 128 if options["activation_type"] == "QInt8" else 0
    for layer, name in zip(again.layers, ("deep_inputs", "dense.0.active", "dense.1.active")):
        name = next(found for found in arrays if found.endswith("_scale") and found.startswith(name))
        assert layer.scale == arrays[name]
        assert layer.zero == int(arrays[name.replace("_scale", "_zero_point")]) + shift
    # The graph puts the last layer's outputs into codes, too, and cuts them off at the first and the last code.
    step = float(arrays["dense.2_scale"])
    inside = (expected > expected.min()) & (expected < expected.max())
    found = logits(again.predict(rows)) - logits(expected)
    assert inside.mean() > 0.95 and np.abs(found[inside]).max() <= 0.51 * step
    assert np.abs(logits(rk.predict(rows)) - logits(expected))[inside].max() > 0.6 * step


def test_graphs_that_onnxruntime_quantised_as_a_whole(data, tmp_path):
    """Codes of gathered rows, sums and scores are passed over; the layers keep theirs."""
    features = [feature for feature in spec()["features"] if feature["type"] != "multi"]
    whole = spec(features=features, deep={"hidden": [16, 8]})
    rk = shortlist.Ranker.train(whole, data, threads=1)
    model, expected = by_onnxruntime(rk, data, tmp_path, per_channel=True, activation_type="QUInt8")
    again = shortlist.onnx.load(model, whole, data)
    assert [layer.precision for layer in again.layers] == ["int8"] * 3
    assert np.abs(again.predict(data) - expected).max() < 0.02
    assert shortlist.onnx.load(shortlist.onnx.export(again)).to_bytes() == again.to_bytes()


@pytest.mark.parametrize(
    "options, layers, says",
    [
        ({"nodes_to_exclude": ["dense.1"]}, ["int8", "f32", "int8"], "weights are not in codes"),
        ({"activation_type": "QUInt16"}, ["f32"] * 3, "not in codes of 8 bits"),
        ({"weight_type": "QInt16"}, ["f32"] * 3, "whole numbers from -128 to 127"),
    ],
)
def test_layers_that_ours_cannot_hold_are_read_as_floats(options, layers, says, tmp_path, caplog):
    rows = rows_of_numbers()
    rk = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    model, expected = by_onnxruntime(rk, rows, tmp_path, **CODED, **{"activation_type": "QUInt8", **options})
    caplog.clear()
    again = shortlist.onnx.load(model, NUMBERS, rows)
    assert [layer.precision for layer in again.layers] == layers
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == layers.count("f32") and all(says in message for message in warned)
    assert np.abs(again.predict(rows) - expected).max() < 0.02


@pytest.mark.parametrize("inputs", [True, False])
def test_a_wide_layer_in_codes_is_read_as_floats_and_told(inputs, caplog):
    def change(made):
        made.arrays |= {"s": np.float32(0.03), "z": np.uint8(128), "codes": np.array([[5]], np.int8)}
        at = next(i for i, node in enumerate(made.nodes) if node.output[0] == "WA")
        put = [
            helper.make_node("QuantizeLinear", ["a", "s", "z"], ["qa"]),
            helper.make_node("DequantizeLinear", ["qa", "s", "z"], ["da"]),
        ]
        taken = helper.make_node("DequantizeLinear", ["codes", "s"], ["dw"])
        made.nodes[at].input[:] = ["da" if inputs else "a", "dw"]
        made.nodes[at:at] = [*(put if inputs else []), taken]

    model, d = edited(by_names, change), foreign_data()
    names = {value.name for value in model.graph.input}
    rows = {name: np.asarray(d[name]) if name in "ui" else d[name][:, None] for name in names}
    found = shortlist.onnx.load(model, FOREIGN, d).predict(d)
    assert np.abs(found - np.ravel(run(model, rows))).max() < 0.02
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and "a layer of the wide part is read as floats" in warned[0]


def test_an_activation_behind_the_last_layer_is_refused():
    model = edited(by_names, lambda made: relu_at_the_end(made))
    with pytest.raises(ValueError, match="relu behind its deep part's last layer"):
        shortlist.onnx.load(model, FOREIGN, foreign_data())


def relu_at_the_end(made):
    """A ReLU on the deep part's output, in front of the sum."""
    at = next(i for i, node in enumerate(made.nodes) if node.output[0] == "A2")
    made.nodes[at].output[0] = "A3"
    made.nodes.insert(at + 1, helper.make_node("Relu", ["A3"], ["A2"], name="the_node"))


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_in_bf16_cast_their_inputs(activation, data):
    rk = shortlist.Ranker.train(spec(deep={"hidden": [16, 8], "activation": activation}), data, threads=1)
    made, _ = rk.quantize(data, tables="f32", max_drop=1, mode="bf16", trials=1)
    assert [layer.precision for layer in made.layers[:2]] == ["bf16"] * 2
    model = shortlist.onnx.export(made)
    onnx.checker.check_model(model, full_check=True)
    scores, expected = run(model, shortlist.onnx.inputs(made, data)), made.predict(data)
    # A tie of bf16 that is rounded the other way is a step of 1/256 of one input.
    assert np.median(np.abs(scores - expected)) < 1e-6
    assert np.abs(scores - expected).max() < 2e-3
    assert np.abs(rk.predict(data) - expected).max() > 1e-5
    again = shortlist.onnx.load(model)
    assert again.layers == made.layers and again.to_bytes() == made.to_bytes()


def test_codes_stand_in_for_a_relu(data):
    """ONNX Runtime's quantiser leaves a Relu out where the codes behind it have no zero but the lowest."""
    numbers = spec(features=[{"name": "age", "type": "numeric"}], deep={"hidden": [4, 3]}, wide=None)
    rk = shortlist.Ranker.train(numbers, data, threads=1)
    made, _ = rk.quantize(data, tables="f32", max_drop=1, mode="static", trials=1)
    model = shortlist.onnx.export(made)
    del model.metadata_props[:]
    passed = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "Relu"}
    assert len(passed) == 2
    for node in [node for node in model.graph.node if node.op_type == "Relu"]:
        model.graph.node.remove(node)
    for node in model.graph.node:
        node.input[:] = [passed.get(name, name) for name in node.input]
    again = shortlist.onnx.load(model, numbers, data)
    for name, array in made.tensors().items():
        if name.endswith(".weight"):
            np.testing.assert_allclose(again.tensors()[name], array, rtol=1e-6)
    # Codes that keep what is below 0 stand for none.
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.UINT8:
            tensor.CopyFrom(numpy_helper.from_array(np.uint8(7), tensor.name))
    with pytest.raises(ValueError, match="activations are none"):
        shortlist.onnx.load(model, numbers, data)


def test_layers_ranged_by_rows_are_exported_as_floats(data):
    rk = shortlist.Ranker.train(spec(), data, threads=1)
    made, _ = rk.quantize(data, tables="f32", max_drop=1, mode="dynamic", trials=1)
    model = shortlist.onnx.export(made)
    assert "QuantizeLinear" not in [node.op_type for node in model.graph.node]
    assert np.abs(run(model, shortlist.onnx.inputs(made, data)) - made.predict(data)).mean() < 0.02


def test_what_the_metadata_says(data):
    rk = shortlist.Ranker.create(spec(), data)
    meta = {prop.key: prop.value for prop in shortlist.onnx.export(rk).metadata_props}
    assert json.loads(meta["shortlist.spec"]) == spec()
    assert [f["name"] for f in json.loads(meta["shortlist.features"])] == [f["name"] for f in spec()["features"]]


def test_changed_weights_come_back_changed(data):
    rk = shortlist.Ranker.train(spec(), data)
    model = shortlist.onnx.export(rk)
    (bias,) = (tensor for tensor in model.graph.initializer if tensor.name == "bias")
    bias.CopyFrom(numpy_helper.from_array(np.array([3.5], np.float32), "bias"))
    assert shortlist.onnx.load(model).tensors()["bias"][0, 0] == 3.5
    bias.name = "else"
    with pytest.raises(ValueError, match="'bias'"):
        shortlist.onnx.load(model)
    for prop in model.metadata_props:
        if prop.key == "shortlist.model":
            prop.value = "AAAA"
    with pytest.raises(ValueError, match="spec and data"):
        shortlist.onnx.load(model)
    del model.metadata_props[:]
    with pytest.raises(ValueError, match="spec"):
        shortlist.onnx.load(model)
    with pytest.raises(ValueError, match="data"):
        shortlist.onnx.load(model, spec())


# A wide & deep model of another maker's: two ids and three numbers; tables for the values alone.

SIZES, WIDE, DEEP = (7, 5), 12, (6, 3)
FOREIGN = {
    "label": {"column": "y"},
    "features": [
        {"name": "u", "type": "categorical", "identity": SIZES[0], "dim": 3},
        {"name": "a", "type": "numeric", "scale": "none", "missing": 0},
        {"name": "i", "type": "categorical", "identity": SIZES[1], "dim": 2, "side": "item"},
        {"name": "b", "type": "numeric", "scale": "none", "missing": 0, "side": "item"},
        {"name": "c", "type": "numeric", "scale": "none", "missing": 0},
    ],
    "wide": {"features": ["u", "i", "a"]},
    "deep": {"hidden": list(DEEP)},
}


def foreign_data(n=40):
    rng = np.random.default_rng(1)
    numbers = {name: rng.standard_normal(n).astype(np.float32) for name in "abc"}
    return {"u": rng.integers(0, 7, n), "i": rng.integers(0, 5, n), "y": np.arange(n) % 2, **numbers}


def weights():
    rng = np.random.default_rng(2)

    def made(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "eu": made(7, 3), "ei": made(5, 2), "wu": made(7, 1), "wi": made(5, 1), "wa": made(1, 1), "bias": made(1),
        "w0": made(8, 6), "b0": made(6), "w1": made(6, 3), "b1": made(3), "w2": made(3, 1), "b2": made(1),
    }  # fmt: skip


def formula(w, d):
    """Gives the scores that the model below must give."""
    numbers = np.stack([d["a"], d["b"], d["c"]], 1)
    x = np.concatenate([numbers, w["ei"][d["i"]], w["eu"][d["u"]]], 1)
    for layer in "01":
        x = np.maximum(x @ w["w" + layer] + w["b" + layer], 0)
    wide = w["wu"][d["u"]] + w["wi"][d["i"]] + d["a"][:, None] * w["wa"]
    return (1 / (1 + np.exp(-(x @ w["w2"] + w["b2"] + wide + w["bias"]))))[:, 0]


class Made:
    """Makes a graph by hand. Names with a capital are nodes' results."""

    def __init__(self, inputs, arrays):
        self.inputs, self.nodes = inputs, []
        self.arrays = {name: np.asarray(array) for name, array in arrays.items()}

    def __call__(self, op, out, *operands, **attributes):
        self.nodes.append(helper.make_node(op, list(operands), [out], **attributes))
        return self

    def model(self, out="Out", opset=13):
        initializers = [numpy_helper.from_array(array, name) for name, array in self.arrays.items()]
        output = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "made", self.inputs, [output], initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


def by_matrices(w):
    """All ids in one matrix, all numbers in another; MatMul and Add; one wide table with offsets."""
    ids, numbers = value("cats", TensorProto.INT64, "N", 2), value("nums", TensorProto.FLOAT, "N", 3)
    table = np.concatenate([w["wu"], w["wi"]])
    arrays = {**w, "table": table, "offsets": np.array([0, 7]), "one": np.array(1), "zero": np.array(0),
              "ax1": np.array([1]), "first": np.array([0]), "last": np.array([1])}  # fmt: skip
    return (
        Made([ids, numbers], arrays)("Gather", "U", "cats", "zero", axis=1)("Gather", "I", "cats", "one", axis=1)
        ("Gather", "EU", "eu", "U")("Gather", "EI", "ei", "I")("Concat", "X", "nums", "EI", "EU", axis=-1)
        ("MatMul", "M0", "X", "w0")("Add", "A0", "b0", "M0")("Relu", "R0", "A0")
        ("MatMul", "M1", "R0", "w1")("Add", "A1", "M1", "b1")("Relu", "R1", "A1")
        ("MatMul", "M2", "R1", "w2")("Add", "A2", "M2", "b2")
        ("Add", "Shifted", "cats", "offsets")("Gather", "G", "table", "Shifted")
        ("ReduceSum", "W", "G", "ax1", keepdims=0)
        ("Slice", "A", "nums", "first", "last", "ax1")("Gemm", "L", "A", "wa", "bias")
        ("Add", "S", "A2", "W")("Add", "T", "L", "S")("Sigmoid", "P", "T")("Squeeze", "Out", "P", "ax1")
    )  # fmt: skip


def by_names(w):
    """An input a feature; Gemm with transB; wide rows added one by one, reduced."""
    one_by_one = [value(name, TensorProto.INT64, "N") for name in "ui"]
    numbers = [value(name, TensorProto.FLOAT, "N", 1) for name in "abc"]
    arrays = {**w, **{f"t{i}": np.ascontiguousarray(w[f"w{i}"].T) for i in range(3)}, "ax1": np.array([1]),
              "shape": np.array([-1, 8])}  # fmt: skip
    return (
        Made([*one_by_one, *numbers], arrays)
        ("Unsqueeze", "U1", "u", "ax1")("Gather", "EU3", "eu", "U1")("Flatten", "EU", "EU3")("Gather", "EI", "ei", "i")
        ("Concat", "X0", "a", "b", "c", "EI", "EU", axis=1)("Reshape", "X", "X0", "shape")
        ("Gemm", "A0", "X", "t0", "b0", transB=1)("Relu", "R0", "A0")("Dropout", "D0", "R0")
        ("Gemm", "A1", "D0", "t1", "b1", transB=1)("Relu", "R1", "A1")
        ("Gemm", "A2", "R1", "t2", "b2", transB=1, alpha=1.0)
        ("Gather", "WU", "wu", "u")("Gather", "WI", "wi", "i")("MatMul", "WA", "a", "wa")
        ("Sum", "T", "WU", "A2", "WI", "WA", "bias")("Sigmoid", "Out", "T")
    )  # fmt: skip


@pytest.mark.parametrize("make", [by_matrices, by_names])
def test_models_of_other_makers(make):
    w, d = weights(), foreign_data()
    model = make(w).model()
    names = {value.name for value in model.graph.input}
    if "cats" in names:
        inputs = {"cats": np.stack([d["u"], d["i"]], 1), "nums": np.stack([d["a"], d["b"], d["c"]], 1)}
    else:
        inputs = {name: d[name] if name in "ui" else d[name][:, None] for name in "uiabc"}
    np.testing.assert_allclose(np.ravel(run(model, inputs)), formula(w, d), atol=1e-6)
    rk = shortlist.onnx.load(model, FOREIGN, d)
    np.testing.assert_allclose(rk.predict(d), formula(w, d), atol=1e-5)
    missing = rk.predict({**d, "u": [None] * 40})
    assert np.isfinite(missing).all() and not np.allclose(missing, formula(w, d))
    again = shortlist.onnx.load(shortlist.onnx.export(rk))
    np.testing.assert_array_equal(again.predict(d), rk.predict(d))


def test_a_model_trained_elsewhere_on_encoded_rows():
    """Inputs named as export names them have the columns of encode, whose order is not the spec's."""
    d = foreign_data()
    base = shortlist.Ranker.create({**FOREIGN, "deep": {"hidden": list(DEEP)}}, d)
    w = {**weights(), "eu": np.eye(8, 3, dtype=np.float32), "ei": np.eye(6, 2, dtype=np.float32)}
    w["wu"], w["wi"] = np.arange(8, dtype=np.float32)[:, None], np.arange(6, dtype=np.float32)[:, None]
    made = by_matrices(w)
    made.arrays["offsets"] = np.array([0, 8])
    model = made.model()
    for node in [*model.graph.input, *model.graph.node]:
        for field in ("name",) if hasattr(node, "type") else ("input",):
            found = {"cats": "ids", "nums": "dense"}
            if field == "name":
                node.name = found[node.name]
            else:
                node.input[:] = [found.get(name, name) for name in node.input]
    rk = shortlist.onnx.load(model, FOREIGN, d)
    encoded = base.encode(d)
    assert [f.name for f in sorted(rk.features, key=lambda f: f.at) if f.form == "dense"] == ["a", "c", "b"]
    scores = run(model, {"ids": encoded.ids.astype(np.int64), "dense": encoded.dense})
    np.testing.assert_allclose(rk.predict(d), np.ravel(scores), atol=1e-5)


def test_two_matrices_cannot_be_told_apart():
    made = by_matrices(weights())
    made.inputs.append(value("more", TensorProto.INT64, "N", 2))
    made.nodes[1].input[0] = "more"
    with pytest.raises(ValueError, match="'(cats|more)' and '(cats|more)'"):
        shortlist.onnx.load(made.model(), FOREIGN, foreign_data())


def reshaped(made):
    made.arrays["shape"] = np.array([-1, 4])
    made.nodes[4].output[0] = "X0"
    made.nodes.insert(5, helper.make_node("Reshape", ["X0", "shape"], ["X"], name="the_node"))


def edited(make, change):
    made = make(weights())
    change(made)
    return made.model()


def replaced(op, **wanted):
    """Puts another operator in place of the first of a kind."""

    def change(made):
        node = next(node for node in made.nodes if node.op_type == op)
        node.op_type = wanted["to"]
        node.name = "the_node"

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (replaced("Relu", to="Celu"), "the_node.*Celu.*not understood"),
        (replaced("Relu", to="Tanh"), "activations are tanh, relu; the spec's is relu"),
        (replaced("Sigmoid", to="Relu"), "the_node"),
        (reshaped, "the_node.*one row a sample"),
        (replaced("Add", to="Mul"), "the_node.*Mul.*not understood"),
        (lambda made: made.nodes.pop(), "made by no node"),
        (lambda made: made.arrays.update(eu=np.ones((6, 3), np.float32)), "'eu' has 6 rows for feature 'u'"),
        (lambda made: made.arrays.update(eu=np.ones((7, 4), np.float32)), "embedding of 'u' has 4 columns"),
        (lambda made: made.arrays.update(offsets=np.array([0, 6])), "'table' has 6 rows for feature 'u'"),
    ],
)
def test_models_that_are_no_wide_and_deep(change, message):
    with pytest.raises(ValueError, match=message):
        shortlist.onnx.load(edited(by_matrices, change), FOREIGN, foreign_data())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"deep": {"hidden": [6]}}, "3 layers, the spec's 2"),
        ({"deep": {"hidden": [6, 4]}}, "dense"),
        ({"deep": None}, "1 deep parts, the spec 0"),
        ({"wide": {"features": ["u", "i"]}}, "'a' is in the graph's wide part, but not in the spec's"),
        ({"wide": {"features": ["u", "i", "a", "b"]}}, "wide part lacks the spec's b"),
        ({"deep": {"hidden": [6, 3], "features": ["u", "i", "a", "b"]}}, "'c' is in the graph's deep part"),
        ({"label": {"column": "a", "loss": "squared"}}, "ends in Sigmoid"),
        ({"features": FOREIGN["features"][:-1], "deep": {"hidden": [6, 3]}}, "column 2"),
    ],
)
def test_specs_that_do_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        shortlist.onnx.load(by_matrices(weights()).model(), {**FOREIGN, **change}, foreign_data())


def test_bags_of_other_makers_are_refused(data):
    with pytest.raises(ValueError, match="'tags' is multi-valued"):
        shortlist.onnx.load(by_matrices(weights()).model(), spec(), data)


def test_a_model_of_pytorchs_exporter():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.u, self.i = torch.nn.Embedding(7, 3), torch.nn.Embedding(5, 2)
            self.wide_u, self.wide_i = torch.nn.Embedding(7, 1), torch.nn.Embedding(5, 1)
            self.wide = torch.nn.Linear(1, 1)
            self.deep = torch.nn.Sequential(
                torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(6, 3), torch.nn.ReLU(),
                torch.nn.Linear(3, 1),
            )  # fmt: skip

        def forward(self, cats, nums):
            u, i = cats[:, 0], cats[:, 1]
            x = torch.cat([self.u(u), self.i(i), nums], dim=1)
            wide = self.wide_u(u) + self.wide_i(i) + self.wide(nums[:, :1])
            return torch.sigmoid(wide + self.deep(x)).squeeze(1)

    torch.manual_seed(3)
    net, d = Net().eval(), foreign_data()
    cats = torch.from_numpy(np.stack([d["u"], d["i"]], 1))
    nums = torch.from_numpy(np.stack([d["a"], d["b"], d["c"]], 1))
    expected = net(cats, nums).detach().numpy()
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"input_names": ["cats", "nums"], "output_names": ["out"], "opset_version": 14}
        free = {"cats": {0: "N"}, "nums": {0: "N"}}
        torch.onnx.export(net, (cats, nums), file, dynamo=False, dynamic_axes=free, **names)
    rk = shortlist.onnx.load(onnx.load_model_from_string(file.getvalue()), FOREIGN, d)
    np.testing.assert_allclose(rk.predict(d), expected, atol=1e-5)


def test_a_spec_may_leave_its_parts_away():
    plain = {"label": {"column": "y"}, "features": [{"name": "x", "type": "numeric"}, {"name": "c", "type": "categorical"}]}
    rows = {"x": np.arange(40.0), "c": ["a", "b"] * 20, "y": [0, 1] * 20}
    rk = shortlist.Ranker.create(plain, rows)
    scores = run(shortlist.onnx.export(rk), shortlist.onnx.inputs(rk, rows))
    np.testing.assert_allclose(scores, rk.predict(rows), atol=1e-6)


def test_a_file_of_another_kind_is_named(tmp_path):
    for name in ("rows.csv", "spec.json", "model.onnx"):
        path = tmp_path / name
        path.write_bytes(b"age,label\n1,2\n")
        with pytest.raises(ValueError, match=f"{name}: not an ONNX model"):
            shortlist.onnx.load(path)
    with pytest.raises(FileNotFoundError, match="none.onnx"):
        shortlist.onnx.load(tmp_path / "none.onnx")


def test_what_is_missing_is_named():
    """shortlist itself needs no onnx; shortlist.onnx says that it does."""
    code = """
        import sys
        sys.modules["onnx"] = None
        import shortlist
        try:
            import shortlist.onnx
        except ImportError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "pip install onnx" in done.stdout, done.stderr


def test_inputs_of_rows_without_bags(data):
    rk = shortlist.Ranker.create(spec(), data)
    inputs = shortlist.onnx.inputs(rk, {**data, "tags": [[] for _ in data["tags"]]})
    assert inputs["bag_tags"].shape == (500, 1) and (inputs["bag_tags"] == -1).all()
    assert inputs["ids"].dtype == np.int64 and inputs["dense"].shape == (500, 3 + DIM)
