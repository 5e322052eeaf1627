"""The peers' models of a net: ONNX graphs of floats, and what each peer's own tools make of them in INT8.

A function here takes a graph and samples, and gives {name: path}. A sample is {input: array of one row}. Every tool
sees the same samples. A tool that cannot be had, or fails, leaves its reason in `failed` in place of a path.
"""

import logging
import pathlib
import sys
from importlib import metadata

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

logging.disable(logging.WARNING)  # the tools tell much of themselves


def gemm(name, value, weight, bias, constants):
    constants[f"{name}.weight"] = weight
    if bias is None:
        return helper.make_node("MatMul", [value, f"{name}.weight"], [f"{name}.sum"], name=name)
    constants[f"{name}.bias"] = bias
    return helper.make_node("Gemm", [value, f"{name}.weight", f"{name}.bias"], [f"{name}.sum"], name=name)


FORMS = {"whole": ("x",), "once": ("user", "item"), "split": ("user_part", "item_part")}


def net_graph(layers, form, user):
    """The dense layers, [(weight, bias)], ReLU between them. Output: y (N, 1). Inputs by form:

    whole   x (N, inputs)
    once    the first inputs, `user` of them, as one row; the rest as rows `item`. The user's part of the first layer is
            computed once and added to each row's
    split   the first layer's sums of the two, computed elsewhere: user_part (1, width) and item_part (N, width)"""
    constants, (weight, bias) = {}, layers[0]
    if form == "split":
        inputs = [("user_part", 1, weight.shape[1]), ("item_part", "N", weight.shape[1])]
        nodes = [helper.make_node("Add", ["item_part", "user_part"], ["dense.0.sum"], name="join")]
    elif form == "once":
        inputs = [("user", 1, user), ("item", "N", weight.shape[0] - user)]
        nodes = [gemm("user_part", "user", weight[:user], bias, constants),
                 gemm("item_part", "item", weight[user:], None, constants),
                 helper.make_node("Add", ["item_part.sum", "user_part.sum"], ["dense.0.sum"], name="join")]
    else:
        inputs, nodes = [("x", "N", weight.shape[0])], [gemm("dense.0", "x", weight, bias, constants)]
    for i, (weight, bias) in enumerate(layers[1:], 1):
        nodes += [helper.make_node("Relu", [f"dense.{i - 1}.sum"], [f"relu.{i}"], name=f"relu.{i}"),
                  gemm(f"dense.{i}", f"relu.{i}", weight, bias, constants)]
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, width]) for n, rows, width in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])],
        [numpy_helper.from_array(numpy.ascontiguousarray(value), name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


class Failures(dict):
    """The contenders that could not be made, and the reasons."""

    def attempt(self, name, make, key=None):
        """Gives {key or name: what make() gives}, or nothing and notes the reason."""
        try:
            return {key or name: make()}
        except Exception as error:  # a peer's tool may raise anything
            self[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            return {}


left_out = set()  # peers that bench_precision was built without


def there(peer, failed):
    """Tells whether a peer takes part."""
    try:
        if peer in left_out:
            raise ImportError("bench_precision was built without its header")
        __import__(peer)
        return True
    except ImportError as error:
        failed[peer] = str(error)
        return False


class Samples:
    """ONNX Runtime's reader of calibration rows."""

    def __init__(self, samples):
        self.left = iter(samples)

    def get_next(self):
        return next(self.left, None)


def wide_nodes(graph):
    """The products of the wide part, by name. They stay floats, as ours do."""
    return [node.name for node in graph.graph.node if node.name.endswith(".wide")]


def onnxruntime_models(graph, samples, folder, failed):
    """Static QDQ and QOperator: per channel, u8 activations, s8 weights of 8 bits. Dynamic likewise."""
    if not there("onnxruntime", failed):
        return {}
    from onnxruntime import quantization
    source = folder / "f32.onnx"
    onnx.save(graph, str(source))
    common = {"per_channel": True, "reduce_range": False, "weight_type": quantization.QuantType.QInt8,
              "op_types_to_quantize": ["MatMul", "Gemm"], "nodes_to_exclude": wide_nodes(graph)}

    def static(form):
        path = folder / f"{form.name.lower()}.onnx"
        quantization.quantize_static(str(source), str(path), Samples(samples), quant_format=form,
                                     activation_type=quantization.QuantType.QUInt8, **common)
        return path

    def dynamic():
        path = folder / "dynamic.onnx"
        quantization.quantize_dynamic(str(source), str(path), **common)
        return path

    return {"onnxruntime/f32": source,
            **failed.attempt("onnxruntime/qdq", lambda: static(quantization.QuantFormat.QDQ)),
            **failed.attempt("onnxruntime/qoperator", lambda: static(quantization.QuantFormat.QOperator)),
            **failed.attempt("onnxruntime/dynamic", dynamic)}


class OpenVino:
    """OpenVINO's models of a graph, by NNCF.

    All 8 bits are used, since VNNI's sums do not saturate. Ranges are the least and greatest values: NNCF's own choice
    averages them over the samples, which cuts off more and was worse here by a factor of ten."""

    def __init__(self, graph, samples, folder):
        import nncf
        import openvino
        from nncf.quantization.range_estimator import RangeEstimatorParametersSet
        self.nncf, self.openvino, self.folder, self.samples = nncf, openvino, folder, samples
        self.source = folder / "openvino.onnx"
        onnx.save(graph, str(self.source))
        self.more = {
            "subset_size": len(samples), "ignored_scope": nncf.IgnoredScope(patterns=[".*wide.*"], validate=False)}
        self.advanced = nncf.AdvancedQuantizationParameters(
            overflow_fix=nncf.OverflowFix.DISABLE,
            activations_range_estimator_params=RangeEstimatorParametersSet.MINMAX)

    def read(self):
        return self.openvino.Core().read_model(str(self.source))

    def save(self, model, name):
        path = self.folder / f"{name}.xml"
        self.openvino.save_model(model, str(path), compress_to_fp16=False)
        return path

    def quantised(self, preset):
        preset = getattr(self.nncf.QuantizationPreset, preset)
        return self.save(self.nncf.quantize(self.read(), self.nncf.Dataset(self.samples), preset=preset,
                                            advanced_parameters=self.advanced, **self.more), preset.value)

    def within(self, batches, measure, max_drop):
        """NNCF's search within an accuracy bound. measure: of the scores of all batches, the greater the better."""
        def validate(model, rows):
            return measure(numpy.concatenate([next(iter(model(one).values())).reshape(-1) for one in rows])), None

        return self.save(self.nncf.quantize_with_accuracy_control(
            self.read(), self.nncf.Dataset(self.samples), self.nncf.Dataset(batches), validate, max_drop=max_drop,
            preset=self.nncf.QuantizationPreset.MIXED, advanced_quantization_parameters=self.advanced, **self.more),
            "within")


# OpenVINO takes bf16 for layers of floats where the machine has it: its own choice, `openvino/default`.
F32 = "openvino/f32"


def kind(name):
    """The kind of bench_precision for a contender of this name."""
    return "openvino-f32" if name == F32 else name.split("/")[0]


def openvino_models(graph, samples, folder, failed):
    """Floats by two precisions, and NNCF's quantize with both presets."""
    if not there("openvino", failed) or not there("nncf", failed):
        return {}
    made = OpenVino(graph, samples, folder)
    floats = made.save(made.read(), "f32")
    return {F32: floats, "openvino/default": floats,
            **failed.attempt("openvino/nncf-mixed", lambda: made.quantised("MIXED")),
            **failed.attempt("openvino/nncf-performance", lambda: made.quantised("PERFORMANCE"))}


def openvino_scores(path, name, inputs):
    """name: as of the contender, which says the precision."""
    import openvino
    settings = {"INFERENCE_PRECISION_HINT": "f32"} if name == F32 else {}
    model = openvino.Core().compile_model(str(path), "CPU", settings)
    return next(iter(model(inputs).values())).reshape(-1)


def onnxruntime_scores(path, inputs):
    import onnxruntime
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)[0].reshape(-1)


def libraries():
    """The files of the C libraries of the peers that take part."""
    found = {}
    for peer, pattern in (("onnxruntime", "capi/libonnxruntime.so.*"), ("openvino", "libs/libopenvino_c.so*")):
        if there(peer, {}):
            found[peer] = next(pathlib.Path(sys.modules[peer].__file__).parent.glob(pattern), None)
    return {name: path for name, path in found.items() if path}


def versions():
    """The versions of the packages that are there."""
    found = {}
    for name in ("onnxruntime", "openvino", "nncf", "torch", "onnx"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found
