"""Makes the ONNX model of a folder that `bench_rank model` filled: the same network, built so that it runs fastest. All
fields share one embedding table and one wide table, whose rows the inputs name, so that a row's embeddings are one
Gather instead of one a field."""

import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensors(folder):
    data = numpy.fromfile(folder / "tensors.bin", numpy.float32)
    found, at = {}, 0
    for line in (folder / "tensors.txt").read_text().splitlines():
        name, rows, columns = line.split()
        count = int(rows) * int(columns)
        found[name] = data[at:at + count].reshape(int(rows), int(columns))
        at += count
    return found


def side_order(found, numbers, dim):
    """The first layer's rows as they are: the user's numbers and embeddings, then the item's; the graph's input has all
    numbers before all embeddings, so its rows are put in that order."""
    fields = sum(name.startswith("embedding.") for name in found)
    user_numbers, user_fields = numbers // 2, fields // 2
    user_width = user_numbers + user_fields * dim
    positions = list(range(user_numbers)) + [user_width + i for i in range(numbers - user_numbers)]
    positions += [user_numbers + i for i in range(user_fields * dim)]
    positions += [user_width + numbers - user_numbers + i for i in range((fields - user_fields) * dim)]
    return positions


def build(found):
    names = sorted((name for name in found if name.startswith("embedding.")), key=lambda name: int(name.split("C")[1]))
    table = numpy.concatenate([found[name] for name in names])
    fields, dim = len(names), table.shape[1]
    layers = sum(name.endswith(".weight") for name in found)
    numbers = found["dense.0.weight"].shape[0] - fields * dim
    constants = {"embeddings": table, "wide": found["wide"], "bias": found["bias"].reshape(1),
                 "shape": numpy.array([-1, fields * dim], numpy.int64), "axis": numpy.array([1], numpy.int64)}
    nodes = [helper.make_node("Gather", ["embeddings", "ids"], ["gathered"]),
             helper.make_node("Reshape", ["gathered", "shape"], ["flat"]),
             helper.make_node("Concat", ["dense", "flat"], ["layer0"], axis=1)]
    for i in range(layers):
        weight = found[f"dense.{i}.weight"]
        constants[f"w{i}"] = weight[side_order(found, numbers, dim)] if i == 0 else weight
        constants[f"b{i}"] = found[f"dense.{i}.bias"].reshape(-1)
        out = f"sum{i}" if i + 1 < layers else "deep"
        nodes.append(helper.make_node("Gemm", [f"layer{i}", f"w{i}", f"b{i}"], [out]))
        if i + 1 < layers:
            nodes.append(helper.make_node("Relu", [out], [f"layer{i + 1}"]))
    nodes += [helper.make_node("Gather", ["wide", "ids"], ["wide_weights"]),
              helper.make_node("ReduceSum", ["wide_weights", "axis"], ["wide_sum"], keepdims=0),
              helper.make_node("Add", ["deep", "wide_sum"], ["both"]),
              helper.make_node("Add", ["both", "bias"], ["logit"]),
              helper.make_node("Sigmoid", ["logit"], ["scores"])]
    graph = helper.make_graph(
        nodes, "wide_and_deep",
        [helper.make_tensor_value_info("dense", TensorProto.FLOAT, ["rows", numbers]),
         helper.make_tensor_value_info("ids", TensorProto.INT64, ["rows", fields])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", 1])],
        [numpy_helper.from_array(numpy.ascontiguousarray(value), name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    onnx.save(build(tensors(folder)), str(folder / "model.onnx"))


if __name__ == "__main__":
    main()
