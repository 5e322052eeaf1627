"""Graphs that were altered. The graph is what counts: a model that is loaded gives the scores of ONNX Runtime, or it is
refused by the documented exception."""

from __future__ import annotations

import base64
import random
import zlib

import numpy as np
import pytest
from clicks import columns, spec

import shortlist

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import shortlist.onnx  # noqa: E402
from google.protobuf.descriptor import FieldDescriptor  # noqa: E402
from onnx import AttributeProto, TensorProto, helper, numpy_helper  # noqa: E402

# Ranker.predict has no order of sums in common with ONNX Runtime. A tie of codes may be rounded the other way.
CLOSE, CODED = 2e-5, 2e-2


@pytest.fixture(scope="module")
def data():
    return columns(60)


def run(model, inputs):
    """The scores by ONNX Runtime, node by node as the graph says."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})[0]


def copy_of(model):
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


TAGS = {"name": "most_tags", "type": "multi", "column": "tags", "combine": "max", "side": "item"}
SUM = {"name": "all_tags", "type": "multi", "column": "tags", "combine": "sum", "dim": 4, "side": "item"}
NUMBERS = spec(
    features=[{"name": name, "type": "numeric"} for name in ("age", "price")], deep={"hidden": [12, 8]}, wide=None
)
MODELS = {
    "bags": (spec(features=[*spec()["features"], TAGS, SUM], deep={"hidden": [8]}), None),
    "gelu": (spec(deep={"hidden": [8, 4], "activation": "gelu"}), None),
    "several classes": (spec(label={"column": "shop", "loss": "multiclass"}), None),
    "int8": (spec(deep={"hidden": [16, 8]}), "static"),
    "bf16": (spec(deep={"hidden": [16, 8], "activation": "tanh"}), "bf16"),
}


@pytest.fixture(scope="module")
def models(data):
    made = {}
    for name, (said, mode) in MODELS.items():
        ranker = shortlist.Ranker.train(said, data, threads=1)
        if mode:
            ranker, _ = ranker.quantize(data, tables="f32", max_drop=1, mode=mode, trials=1)
        made[name] = ranker, shortlist.onnx.export(ranker), shortlist.onnx.inputs(ranker, data)
    return made


# ----------------------------------------------------------------------------------------------------------------------
# Exports that were altered
# ----------------------------------------------------------------------------------------------------------------------


def replaced_operators(graph):
    swaps = ["Relu", "Tanh", "Sigmoid", "Neg", "Add", "Mul", "Sub", "Max", "Min", "ReduceMax", "ReduceSum"]
    for i, node in enumerate(graph.node):
        for op in swaps:
            if op != node.op_type:
                yield f"{node.name} becomes {op}", lambda graph, i=i, op=op: setattr(graph.node[i], "op_type", op)


def other_attributes(graph):
    for i, node in enumerate(graph.node):
        for j, attribute in enumerate(node.attribute):
            for number in (0, 1, 2, -1, TensorProto.FLOAT16) if attribute.type == AttributeProto.INT else ([2], [-1]):
                field = "i" if attribute.type == AttributeProto.INT else "ints"

                def change(graph, i=i, j=j, field=field, number=number):
                    attribute = graph.node[i].attribute[j]
                    attribute.CopyFrom(helper.make_attribute(attribute.name, number))

                yield f"{attribute.name} of {node.name} is {number}", change
        for name, number in [("alpha", 0.5), ("beta", 0.5), ("transB", 1), ("axis", 0), ("keepdims", 1), ("to", 1)]:
            given = helper.make_attribute(name, number)
            yield f"{node.name} has {name} {number}", lambda graph, i=i, a=given: graph.node[i].attribute.append(a)


def other_numbers(graph):
    for i, tensor in enumerate(graph.initializer):
        array = numpy_helper.to_array(tensor)
        one = array.dtype.type(1)
        for what, changed in {
            "halved": array / 2 if array.dtype == np.float32 else array,
            "one more": array + one,
            "one less": array - one,
            "first": np.where(np.arange(array.size).reshape(array.shape) == 0, array + one, array),
            "of doubles": array.astype(np.float64),
        }.items():
            if not np.array_equal(changed, array) or changed.dtype != array.dtype:
                given = numpy_helper.from_array(np.asarray(changed, changed.dtype, order="C"), tensor.name)
                yield f"{tensor.name} {what}", lambda graph, i=i, given=given: graph.initializer[i].CopyFrom(given)


def other_edges(graph):
    chance = random.Random(1)
    known = [tensor.name for tensor in graph.initializer] + [value.name for value in graph.input]
    for i, node in enumerate(graph.node):
        for j, name in enumerate(node.input):
            # ONNX Runtime does not run a Squeeze whose axes are '', which ONNX allows.
            blank = [""] if node.op_type != "Squeeze" else []
            for other in {*chance.sample(known, min(3, len(known))), *known[-2:], *blank} - {name}:

                def change(graph, i=i, j=j, other=other):
                    graph.node[i].input[j] = other

                yield f"{node.name} reads {other!r} in place of {name}", change
        known += node.output


def left_out_nodes(graph):
    for i, node in enumerate(graph.node):
        for name in node.input[:2]:

            def change(graph, i=i, name=name):
                out = graph.node[i].output[0]
                del graph.node[i]
                for later in graph.node:
                    later.input[:] = [name if given == out else given for given in later.input]
                graph.output[0].name = name if graph.output[0].name == out else graph.output[0].name

            yield f"{node.name} is left out for {name}", change


ADDED = [
    ("Relu",), ("Neg",), ("Mul", 0.5), ("Add", 0.5), ("Add", [[0.25]]), ("Sub", 0.5), ("Max", 0.0), ("Clip", -0.1, 0.1),
]  # fmt: skip


def added_nodes(graph):
    for i, node in enumerate(graph.node):
        for op, *numbers in ADDED:

            def change(graph, i=i, op=op, numbers=numbers):
                out = graph.node[i].output[0]
                for later in graph.node:
                    later.input[:] = ["added" if given == out else given for given in later.input]
                graph.output[0].name = "added" if graph.output[0].name == out else graph.output[0].name
                names = [f"added.{n}" for n in range(len(numbers))]
                arrays = [np.array(number, np.float32) for number in numbers]
                graph.initializer.extend(map(numpy_helper.from_array, arrays, names))
                graph.node.insert(i + 1, helper.make_node(op, [out, *names], ["added"], name="added"))

            yield f"{op} {numbers} is added behind {node.name}", change


def other_outputs(graph):
    for node in graph.node:
        yield f"the output is {node.name}", lambda graph, name=node.output[0]: setattr(graph.output[0], "name", name)


def other_inputs(graph):
    for i, value in enumerate(graph.input):
        for number in (TensorProto.INT32, TensorProto.FLOAT, TensorProto.DOUBLE):

            def change(graph, i=i, number=number):
                graph.input[i].type.tensor_type.elem_type = number

            if number != value.type.tensor_type.elem_type:
                yield f"input {value.name} is of type {number}", change
        for width in (1, 3, 99):

            def narrow(graph, i=i, width=width):
                graph.input[i].type.tensor_type.shape.dim[1].dim_value = width

            yield f"input {value.name} has {width} columns", narrow


ALTERED = [
    replaced_operators, other_attributes, other_numbers, other_edges, left_out_nodes, added_nodes, other_outputs,
    other_inputs,
]  # fmt: skip


def fits(inputs, model):
    """Tells whether the rows may be given to the altered inputs."""
    for value in model.graph.input:
        kind = value.type.tensor_type
        if helper.np_dtype_to_tensor_dtype(inputs[value.name].dtype) != kind.elem_type:
            return False
        if kind.shape.dim[1].dim_value not in (0, inputs[value.name].shape[1]):
            return False
    return True


@pytest.mark.parametrize("alterations", ALTERED, ids=lambda function: function.__name__)
@pytest.mark.parametrize("which", MODELS)
def test_an_altered_export_changes_the_model_or_is_refused(which, alterations, models, data, caplog):
    ranker, model, inputs = models[which]
    close = CODED if MODELS[which][1] else CLOSE
    found = {name: change for name, change in alterations(model.graph)}
    # Some of many, the same in each run.
    some = random.Random(which).sample(sorted(found), min(len(found), 60))
    refused = 0
    for name in some:
        altered = copy_of(model)
        found[name](altered.graph)
        caplog.clear()
        try:
            scores = shortlist.onnx.load(altered).predict(data)
        except ValueError:
            refused += 1
            continue
        if fits(inputs, altered):
            expected = run(altered, inputs).reshape(scores.shape)
            far = np.abs(scores - expected) / max(1.0, np.abs(expected).max())
            # The log tells of layers that can be read as floats alone.
            middle = 50 * CLOSE if any(record.levelname == "WARNING" for record in caplog.records) else CLOSE
            assert far.max() <= close and np.median(far) <= middle, (name, far.max(), np.median(far))
    assert refused or alterations in (other_numbers, other_inputs)


@pytest.mark.parametrize(
    "op, change",
    [
        ("Relu", lambda node: setattr(node, "op_type", "Tanh")),
        ("Sigmoid", lambda node: setattr(node, "op_type", "Identity")),
        ("Sigmoid", lambda node: setattr(node, "op_type", "Tanh")),
        ("Div", lambda node: setattr(node, "op_type", "Mul")),
    ],
)
def test_another_function_in_an_export_is_refused(op, change, data):
    model = shortlist.onnx.export(shortlist.Ranker.train(spec(), data, threads=1))
    change(next(node for node in model.graph.node if node.op_type == op))
    with pytest.raises(ValueError):
        shortlist.onnx.load(model)


def test_a_factor_in_an_export_is_taken_over(data):
    ranker = shortlist.Ranker.train(spec(), data, threads=1)
    model = shortlist.onnx.export(ranker)
    gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
    gemm.attribute.append(helper.make_attribute("alpha", 0.5))
    again = shortlist.onnx.load(model)
    np.testing.assert_array_equal(again.tensors()["dense.0.weight"], ranker.tensors()["dense.0.weight"] * 0.5)
    np.testing.assert_allclose(again.predict(data), run(model, shortlist.onnx.inputs(ranker, data)), atol=CLOSE)


def test_names_of_nodes_and_numbers_do_not_count(models, data):
    """A graph whose values have other names is the same model, bags included."""
    for ranker, model, _ in models.values():
        renamed = copy_of(model)
        names = {tensor.name: f"t{i}" for i, tensor in enumerate(renamed.graph.initializer)}
        names |= {node.output[0]: f"v{i}" for i, node in enumerate(renamed.graph.node)}
        for tensor in renamed.graph.initializer:
            tensor.name = names[tensor.name]
        for node in renamed.graph.node:
            node.name = ""
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[0] = names[node.output[0]]
        renamed.graph.output[0].name = names[renamed.graph.output[0].name]
        again = shortlist.onnx.load(renamed)
        np.testing.assert_array_equal(again.predict(data), ranker.predict(data))
        assert again.layers == ranker.layers and again.to_bytes() == ranker.to_bytes()


def by_constants(model):
    """Numbers as nodes, as PyTorch's exporter writes them."""
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in model.graph.initializer]
    nodes += model.graph.node
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def optimised(model, path):
    """As ONNX Runtime writes a model that it has made simpler."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(path)


@pytest.mark.parametrize("which", MODELS)
def test_an_export_that_a_tool_has_rewritten_is_the_same_model(which, models, data, tmp_path):
    ranker, model, _ = models[which]
    written = [by_constants(copy_of(model)), optimised(model, tmp_path / "o.onnx")]
    written += [onnx.version_converter.convert_version(model, opset) for opset in (14, 18, 21)]
    for rewritten in written:
        np.testing.assert_allclose(shortlist.onnx.load(rewritten).predict(data), ranker.predict(data), atol=CLOSE)


def pytorchs(widths, shape):
    """Two ids and three numbers as PyTorch writes them: rows are made flat by the input's own shape."""
    random = np.random.default_rng(4)
    arrays = {"eu": (6, 3), "ei": (5, 3), "w0": (widths, 9), "b0": (widths,), "w1": (1, widths), "b1": (1,)}
    made = {name: random.normal(size=size).astype(np.float32) for name, size in arrays.items()}
    made |= {"zero": np.array(0), "one": np.array(1), "first": np.array([0]), "free": np.array([-1])}
    made |= {"axis": np.array([1]), "columns": np.array([6])}
    nodes = [
        helper.make_node("Gather", ["cats", "zero"], ["u"], axis=1),
        helper.make_node("Gather", ["cats", "one"], ["i"], axis=1),
        helper.make_node("Unsqueeze", ["u", "axis"], ["u1"]),
        helper.make_node("Unsqueeze", ["i", "axis"], ["i1"]),
        helper.make_node("Gather", ["eu", "u1"], ["u2"]),
        helper.make_node("Gather", ["ei", "i1"], ["i2"]),
        helper.make_node("Shape", ["nums"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "zero"], ["rows"], axis=0),
        helper.make_node("Unsqueeze", ["rows", "first"], ["rows1"]),
        helper.make_node("Concat", ["rows1", shape], ["flat"], axis=0),
        helper.make_node("Reshape", ["u2", "flat"], ["u3"]),
        helper.make_node("Reshape", ["i2", "flat"], ["i3"]),
        helper.make_node("Concat", ["u3", "i3", "nums"], ["x"], axis=-1),
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], transB=1, alpha=1.0, beta=1.0),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w1", "b1"], ["o"], transB=1),
        helper.make_node("Squeeze", ["o", "axis"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["out"]),
    ]
    ends = [
        helper.make_tensor_value_info("cats", TensorProto.INT64, ["N", 2]),
        helper.make_tensor_value_info("nums", TensorProto.FLOAT, ["N", 3]),
    ]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["N"])
    graph = helper.make_graph(nodes, "torch", ends, [out], list(map(numpy_helper.from_array, made.values(), made)))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("shape, refused", [("free", False), ("columns", True)])
def test_rows_made_flat_by_a_shape_that_the_graph_measures(shape, refused):
    random = np.random.default_rng(3)
    rows = {"u": random.integers(0, 6, 30), "i": random.integers(0, 5, 30), "y": np.arange(30) % 2}
    rows |= {name: random.normal(size=30).astype(np.float32) for name in "abc"}
    said = {
        "label": {"column": "y"},
        "features": [
            {"name": "u", "type": "categorical", "identity": 6, "dim": 3},
            {"name": "i", "type": "categorical", "identity": 5, "dim": 3},
            *({"name": name, "type": "numeric", "scale": "none", "missing": 0} for name in "abc"),
        ],
        "wide": None,
        "deep": {"hidden": [4]},
    }
    model = pytorchs(4, shape)
    if refused:
        with pytest.raises(ValueError, match="'u3' .*one row a sample"):
            shortlist.onnx.load(model, said, rows)
        return
    again = shortlist.onnx.load(model, said, rows)
    inputs = {"cats": np.stack([rows["u"], rows["i"]], 1), "nums": np.stack([rows[name] for name in "abc"], 1)}
    np.testing.assert_allclose(again.predict(rows), run(model, inputs), atol=CLOSE)


def test_bags_are_read_without_metadata(models, data):
    ranker, model, _ = models["bags"]
    bare = copy_of(model)
    del bare.metadata_props[:]
    again = shortlist.onnx.load(bare, MODELS["bags"][0], data)
    np.testing.assert_allclose(again.predict(data), ranker.predict(data), atol=CLOSE)


# ----------------------------------------------------------------------------------------------------------------------
# Codes written in all ways
# ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coded():
    age, price = np.random.default_rng(5).normal(size=(2, 200)).astype(np.float32)
    rows = {"age": age, "price": price, "click": (age * price + age > 0.3).astype(np.float32)}
    ranker = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    made, _ = ranker.quantize(rows, max_drop=1, mode="static", trials=1)
    return made, shortlist.onnx.export(made), rows


def left_out(node, chance):
    """Leaves the last input out, or writes ''."""
    if chance.random() < 0.5:
        del node.input[2]
    else:
        node.input[2] = ""


def write_quantise(node, zero, opset, chance):
    """Writes the codes of an activation in some way. Returns their type and their zero point."""
    kind = chance.choice([np.uint8, np.int8])
    lowest = 0 if kind is np.uint8 else -128
    number = chance.choice([int(numpy_helper.to_array(zero)) + lowest, 0, lowest])
    zero.CopyFrom(numpy_helper.from_array(np.array(number, kind), zero.name))
    standard, said = node.domain != "com.microsoft", False
    if standard and opset >= 21 and chance.random() < 0.6:
        said = True
        to = TensorProto.UINT8 if kind is np.uint8 else TensorProto.INT8
        node.attribute.append(helper.make_attribute("output_dtype", to))
    if number == 0 and (kind is np.uint8 or said) and chance.random() < 0.7:
        left_out(node, chance)
    if standard and opset >= 19 and chance.random() < 0.3:
        node.attribute.append(helper.make_attribute("saturate", 1))
    if chance.random() < 0.3:
        node.attribute.append(helper.make_attribute("axis", chance.choice([0, 1])))
    return number


def write_dequantise(node, numbers, opset, chance):
    standard = node.domain != "com.microsoft"
    if numbers.get(node.input[0], 0) == 0 and chance.random() < 0.5:
        left_out(node, chance)
    for axis in [attribute for attribute in node.attribute if attribute.name == "axis"]:
        axis.i = chance.choice([1, -1])
        if standard and chance.random() < 0.4:
            node.attribute.remove(axis)
    if standard and opset >= 21 and chance.random() < 0.3:
        node.attribute.append(helper.make_attribute("block_size", 0))
    if standard and opset >= 23 and chance.random() < 0.3:
        node.attribute.append(helper.make_attribute("output_dtype", chance.choice([0, TensorProto.FLOAT])))


def mixed(model, chance):
    """The model in another opset, with attributes, zero points and domains written in some way."""
    opset = chance.choice([13, 15, 17, 19, 20, 21, 22, 23])
    model.opset_import[0].version, model.ir_version = opset, 10
    model.opset_import[0].domain = chance.choice(["", "ai.onnx"])
    if chance.random() < 0.7:
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    zeros, numbers = {tensor.name: tensor for tensor in model.graph.initializer}, {}
    for node in model.graph.node:
        coding = node.op_type in ("QuantizeLinear", "DequantizeLinear")
        node.domain = chance.choice(["", "ai.onnx", *(["com.microsoft"] if coding else [])])
        if node.op_type == "Gemm" and chance.random() < 0.5:
            given = chance.choice([("alpha", 1.0), ("beta", 1.0), ("transA", 0), ("transB", 0)])
            node.attribute.append(helper.make_attribute(*given))
        if node.op_type == "QuantizeLinear":
            numbers[node.output[0]] = write_quantise(node, zeros[node.input[2]], opset, chance)
        elif node.op_type == "DequantizeLinear":
            write_dequantise(node, numbers, opset, chance)
    return model


@pytest.mark.parametrize("seed", range(60))
def test_codes_may_be_written_in_any_way_that_onnxruntime_runs(seed, coded):
    made, model, rows = coded
    model = mixed(copy_of(model), random.Random(seed))
    if seed % 2:
        del model.metadata_props[:]
    expected = run(model, shortlist.onnx.inputs(made, rows))
    again = shortlist.onnx.load(model, *((NUMBERS, rows) if seed % 2 else ()))
    assert [layer.precision for layer in again.layers] == ["int8"] * 3
    far = np.abs(again.predict(rows) - expected)
    assert np.median(far) < 1e-5 and far.max() < CODED


def coded_behind(model, name, zero, *nodes):
    """Puts the value through codes of u8 with this zero point, and then through other nodes."""
    made = [
        helper.make_node("QuantizeLinear", [name, "put.scale", "put.zero"], ["put.codes"], name="put"),
        helper.make_node("DequantizeLinear", ["put.codes", "put.scale", "put.zero"], ["put.0"], name="taken"),
        *(helper.make_node(op, [f"put.{i}", *more], [f"put.{i + 1}"]) for i, (op, *more) in enumerate(nodes)),
    ]
    for node in model.graph.node:
        node.input[:] = [f"put.{len(nodes)}" if given == name else given for given in node.input]
    at = next(i for i, node in enumerate(model.graph.node) if name in node.output)
    for node in reversed(made):
        model.graph.node.insert(at + 1, node)
    arrays = {"put.scale": np.float32(0.05), "put.zero": np.uint8(zero), "flat": np.array([-1, 8])}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items())
    return model


@pytest.mark.parametrize("nodes", [[], [("Cast",)], [("Reshape", "flat")], [("Relu",)], [("Reshape", "flat"), ("Relu",)]])
def test_codes_that_cut_are_a_relu_whatever_reads_them(nodes, coded):
    """Between layers of floats, too."""
    _, _, rows = coded
    ranker = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    model = shortlist.onnx.export(ranker)
    inputs = shortlist.onnx.inputs(ranker, rows)
    relu = [node for node in model.graph.node if node.op_type == "Relu"][-1]
    last = relu.input[0]
    for node in model.graph.node:
        node.input[:] = [last if name == relu.output[0] else name for name in node.input]
    model.graph.node.remove(relu)
    coded_behind(model, last, 0, *nodes)
    for node in model.graph.node:
        if node.op_type == "Cast" and not node.attribute:
            node.attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
    far = np.abs(shortlist.onnx.load(model).predict(rows) - run(model, inputs))
    assert far.max() < CODED


@pytest.mark.parametrize("which", ["gelu", "several classes"])
def test_codes_that_cut_what_no_relu_can_are_refused(which, models, data):
    """Sums of the parts, outputs of a deep part, rows of tables, and what tanh or gelu gives."""
    _, model, inputs = models[which]
    refused = []
    for node in model.graph.node:
        if node.op_type not in ("Gemm", "Add", "Gather") or node.name.startswith("tags") or node.name.endswith(".shifted"):
            continue  # steps of a bag and of gelu are put in no codes
        for zero in (0, 100):
            altered = coded_behind(copy_of(model), node.output[0], zero)
            try:
                found = run(altered, inputs)
            except Exception:  # codes of ids
                continue
            try:
                scores = shortlist.onnx.load(altered).predict(data)
            except ValueError:
                refused.append((node.name, zero))
                continue
            assert np.abs(scores - found.reshape(scores.shape)).max() < 5 * CODED, (node.name, zero)
    assert {zero for _, zero in refused} == {0}, refused


def test_codes_that_cut_count_where_no_int8_layer_reads_them(coded):
    """Weights in codes of u8 around 100 reach 155: their layer is read as floats, which cut off nothing."""
    rows = coded[2]
    ranker = shortlist.Ranker.train({**NUMBERS, "deep": {"hidden": [8, 4], "activation": "tanh"}}, rows, threads=1)
    inputs = shortlist.onnx.inputs(ranker, rows)
    for zero in (0, 128):
        model = shortlist.onnx.export(ranker)
        first = next(node.output[0] for node in model.graph.node if node.op_type == "Tanh")
        coded_behind(model, first, zero)
        at, layer = next((i, node) for i, node in enumerate(model.graph.node) if "put.0" in node.input)
        weight = next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == layer.input[1])
        scale = np.float32(weight.max() / 150)
        codes = np.clip(np.round(weight / scale) + 100, 0, 255).astype(np.uint8)
        arrays = {"w.codes": codes, "w.scale": scale, "w.zero": np.uint8(100)}
        model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items())
        layer.input[1] = "w"
        model.graph.node.insert(at, helper.make_node("DequantizeLinear", list(arrays), ["w"], name="w"))
        if zero:
            assert np.abs(shortlist.onnx.load(model).predict(rows) - run(model, inputs)).max() < CODED
        else:
            with pytest.raises(ValueError, match="cut off what is below 0, and no layer can do so there"):
                shortlist.onnx.load(model)


def test_an_axis_may_be_counted_from_either_end(coded, caplog):
    """A scale for each input: 1 and -1 are the same axis of a matrix."""
    made, model, rows = coded
    for axes in ((1, -1), (-1, 1), (-1, -1), (1, None)):
        altered = copy_of(model)
        put = next(node for node in altered.graph.node if node.op_type == "QuantizeLinear")
        taken = next(node for node in altered.graph.node if node.input[0] == put.output[0])
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in altered.graph.initializer}
        scale, zero = (np.repeat(arrays[name], 2) for name in put.input[1:])
        both = [numpy_helper.from_array(scale * np.float32([1, 1.5]), "two.scales"), numpy_helper.from_array(zero, "two")]
        altered.graph.initializer.extend(both)
        for node, axis in zip((put, taken), axes):
            node.input[1:] = ["two.scales", "two"]
            for attribute in [attribute for attribute in node.attribute if attribute.name == "axis"]:
                node.attribute.remove(attribute)
            if axis is not None:
                node.attribute.append(helper.make_attribute("axis", axis))
        caplog.clear()
        again = shortlist.onnx.load(altered)
        assert [layer.precision for layer in again.layers] == ["f32", "int8", "int8"]
        assert "layer dense.0 is read as floats" in caplog.text
        assert np.abs(again.predict(rows) - run(altered, shortlist.onnx.inputs(made, rows))).max() < CODED
    put.attribute[-1].i = 0
    with pytest.raises(ValueError, match="not those of the codes"):
        shortlist.onnx.load(altered)


@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_graphs_of_the_quantisers_own_domain(activations, coded, tmp_path):
    tool = pytest.importorskip("onnxruntime.quantization")
    _, _, rows = coded
    ranker = shortlist.Ranker.train(NUMBERS, rows, threads=1)
    shortlist.onnx.export(ranker, tmp_path / "f32.onnx")
    inputs = shortlist.onnx.inputs(ranker, rows)

    class Rows:
        left = [inputs]

        def get_next(self):
            return self.left.pop() if self.left else None

    tool.quantize_static(
        tmp_path / "f32.onnx", tmp_path / "q.onnx", Rows(), quant_format=tool.QuantFormat.QDQ,
        op_types_to_quantize=["Gemm", "Relu"], activation_type=getattr(tool.QuantType, activations),
        weight_type=tool.QuantType.QInt8, extra_options={"UseQDQContribOps": True},
    )  # fmt: skip
    model = onnx.load(tmp_path / "q.onnx")
    assert {node.domain for node in model.graph.node if node.op_type == "QuantizeLinear"} == {"com.microsoft"}
    again = shortlist.onnx.load(model)
    assert [layer.precision for layer in again.layers] == ["int8"] * 3
    assert np.abs(again.predict(rows) - run(model, inputs)).max() < CODED


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda node: setattr(node, "domain", "my.own"), "its domain is 'my.own'"),
        (lambda node: setattr(node, "op_type", "QLinearAdd"), "opset 23 has no such operator"),
        (lambda node: node.attribute.append(helper.make_attribute("axes", 1)), "no attribute 'axes'"),
        (lambda node: node.attribute.append(helper.make_attribute("axis", "1")), "'axis' is of another type"),
        (lambda node: node.attribute.append(helper.make_attribute("output_dtype", 3)), "output_dtype is int8.*uint8"),
        (lambda node: node.input.__setitem__(1, ""), "'y_scale' is left out"),
        (lambda node: node.input.append("dense.0.zero"), "4 inputs"),
    ],
)
def test_codes_that_stay_refused_are_named(change, says, coded):
    _, model, _ = coded
    model = copy_of(model)
    model.opset_import[0].version, model.ir_version = 23, 10
    node = next(node for node in model.graph.node if node.op_type == "QuantizeLinear")
    change(node)
    with pytest.raises(ValueError, match=f"'{node.name}'.*{says}"):
        shortlist.onnx.load(model)


# ----------------------------------------------------------------------------------------------------------------------
# Damaged models
# ----------------------------------------------------------------------------------------------------------------------


def fields(message, found):
    """Every field that a message or one inside of it has."""
    for field, value in message.ListFields():
        many = not hasattr(value, "ListFields") and hasattr(value, "append") or hasattr(value, "add")
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for part in value if many else [value]:
                fields(part, found)
        found.append((message, field, many))
    return found


WHOLE = [0, 1, -1, 2, 3, 7, 16, 23, 99, 2**31 - 1, -(2**31)]
TEXTS = ["", "x", "dense", "ids", "bias", "logits", "Gemm", "Constant", "If", "Loop", "axis", "ai.onnx", "\0", "é"]


def number_for(field, value, chance):
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return chance.choice([0.0, float("nan"), float("inf"), -1.0, 1e30])
    if field.type == FieldDescriptor.TYPE_STRING:
        return chance.choice(TEXTS)
    if field.type == FieldDescriptor.TYPE_BYTES:
        shorter = value[:-1] if isinstance(value, bytes) else b""
        return chance.choice([b"", b"\xff", bytes(8), shorter, chance.randbytes(16)])
    return chance.choice(WHOLE)


def damage(model, chance):
    """Damages a field; returns its name."""
    message, field, many = chance.choice(fields(model, []))
    value = getattr(message, field.name)
    if chance.random() < 0.25:
        message.ClearField(field.name)
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        if many and chance.random() < 0.5:
            del value[chance.randrange(len(value))]
        elif many:
            value.add().CopyFrom(chance.choice(list(value)))
    else:
        try:
            number = number_for(field, value, chance)
            if many and chance.random() < 0.5:
                value[chance.randrange(len(value))] = number
            elif many:
                value.append(number)
            else:
                setattr(message, field.name, number)
        except (ValueError, TypeError):  # a number that the field cannot hold
            pass
    return field.name


WORDS = {"doc_string", "producer_name", "producer_version", "model_version"}


@pytest.mark.parametrize("which", MODELS)
def test_what_does_not_count_is_never_refused(which, models):
    """Remarks, versions and names of nodes may be anything; weights any finite numbers."""
    ranker, model, _ = models[which]
    told = copy_of(model)
    told.producer_name, told.producer_version, told.model_version, told.doc_string = "é", "\0", -(2**31), "x" * 1000
    told.graph.name = told.graph.doc_string = "If"
    told.metadata_props.add(key="another", value="x")
    for part in (*told.graph.node, *told.graph.initializer, *told.graph.input, *told.graph.output):
        part.doc_string = "Loop"
    for node in told.graph.node:
        node.name = "bias"
    assert shortlist.onnx.load(told).to_bytes() == ranker.to_bytes()
    for at, tensor in enumerate(model.graph.initializer):
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.ndim == 2:
            other = copy_of(model)
            changed = np.round(array * 64) / 64  # of bfloat16, too
            other.graph.initializer[at].CopyFrom(numpy_helper.from_array(changed, tensor.name))
            shortlist.onnx.load(other)


@pytest.mark.parametrize("which", MODELS)
def test_damaged_models_raise_the_documented_exception(which, models, tmp_path):
    _, model, _ = models[which]
    chance = random.Random(which)
    path = tmp_path / "m.onnx"
    whole = model.SerializeToString()
    refused = 0
    for i in range(150):
        damaged = copy_of(model)
        hit = {damage(damaged, chance) for _ in range(chance.choice([1, 1, 2, 4]))}
        source = damaged
        if i % 3 == 0:
            found = bytearray(whole)
            for _ in range(chance.choice([1, 1, 3])):
                found[chance.randrange(len(found))] = chance.randrange(256)
            path.write_bytes(found)
            source = path
        try:
            shortlist.onnx.load(source)
        except ValueError:
            refused += 1
            assert source is path or not hit <= WORDS, hit
    assert 50 < refused < 150


def external(tensor, location):
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": "4"}.items():
        tensor.external_data.add(key=key, value=value)


def bias_of(model):
    return next(tensor for tensor in model.graph.initializer if tensor.name == "bias")


def test_weights_in_another_file_are_read_or_named(models, data, tmp_path):
    ranker, model, _ = models["gelu"]
    number = ranker.tensors()["bias"][0, 0].tobytes()
    apart = copy_of(model)
    external(bias_of(apart), "weights.bin")
    with pytest.raises(ValueError, match="'bias' lies in another file"):
        shortlist.onnx.load(apart)
    path = tmp_path / "m.onnx"
    path.write_bytes(apart.SerializeToString())
    with pytest.raises(ValueError, match="another file"):
        shortlist.onnx.load(path)
    (tmp_path / "weights.bin").write_bytes(number[:2])
    with pytest.raises(ValueError):
        shortlist.onnx.load(path)
    (tmp_path / "weights.bin").write_bytes(number)
    np.testing.assert_array_equal(shortlist.onnx.load(path).predict(data), ranker.predict(data))


@pytest.mark.parametrize("name", ["bias", "dense.0.scale", "dense.0.zero", "dense.0.codes", "dense.0.scales"])
def test_arrays_of_no_type_and_of_another_are_named(name, models):
    _, model, _ = models["int8"]
    for change in (
        lambda tensor: setattr(tensor, "data_type", 0),
        lambda tensor: tensor.CopyFrom(numpy_helper.from_array(np.array(["a"], object), name)),
        lambda tensor: tensor.CopyFrom(numpy_helper.from_array(np.array([1j], np.complex64), name)),
        lambda tensor: tensor.CopyFrom(numpy_helper.from_array(np.array([True]), name)),
        lambda tensor: tensor.CopyFrom(numpy_helper.from_array(np.zeros(0, np.float32), name)),
    ):
        damaged = copy_of(model)
        change(next(tensor for tensor in damaged.graph.initializer if tensor.name == name))
        with pytest.raises(ValueError):
            shortlist.onnx.load(damaged)


@pytest.mark.parametrize(
    "op, numbers",
    [
        ("ConstantOfShape", [[1 << 20, 1 << 20]]),
        ("Expand", [[1.0], [1 << 20, 1 << 20]]),
        ("Tile", [[1.0], [1 << 40]]),
        ("Add", [np.zeros((1 << 16, 1), np.float32), np.zeros(1 << 16, np.float32)]),
        ("MatMul", [np.zeros((1 << 16, 1), np.float32), np.zeros((1, 1 << 16), np.float32)]),
        ("Range", [0, 1 << 40, 1]),
        ("NonZero", [[1.0, 0.0]]),
    ],
)
def test_small_files_fill_no_memory(op, numbers, models):
    _, model, _ = models["gelu"]
    model = copy_of(model)
    arrays = [array if isinstance(array, np.ndarray) else np.array(array) for array in numbers]
    arrays = [array.astype(np.float32) if array.dtype == np.float64 else array for array in arrays]
    names = [f"large.{i}" for i in range(len(arrays))]
    model.graph.initializer.extend(map(numpy_helper.from_array, arrays, names))
    model.graph.node.insert(0, helper.make_node(op, names, ["large"]))
    with pytest.raises(ValueError, match=f"'large' .{op}.*too large"):
        shortlist.onnx.load(model)


def test_metadata_that_is_damaged_asks_for_a_spec(models):
    _, model, _ = models["gelu"]
    damaged = copy_of(model)
    said = next(prop for prop in damaged.metadata_props if prop.key == "shortlist.model")
    saved = zlib.decompress(base64.b64decode(said.value))
    for broken in (b"", saved[: len(saved) // 2], saved[:-1], bytes([saved[0] ^ 1]) + saved[1:], bytes(len(saved))):
        said.value = base64.b64encode(zlib.compress(broken)).decode()
        with pytest.raises(ValueError, match="give a spec and data"):
            shortlist.onnx.load(damaged)


def test_what_is_no_model_is_a_type_error(models):
    for what in (None, 3, models["gelu"][1].graph):
        with pytest.raises(TypeError, match="onnx.ModelProto"):
            shortlist.onnx.load(what)
