"""Makes the ONNX models of a folder that `bench_rank model` filled: the same network, built so that it runs fastest.
All fields share one embedding table and one wide table, whose rows the inputs name. A row's embeddings are so one
Gather instead of one a field.

model.onnx takes joined rows. model-once.onnx takes the user's inputs as one row beside the items' rows. The user's part
of the first layer is computed once and added to each row's.
"""

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


class Network:
    """The weights, and how their columns divide into the user's, which come first, and the item's."""

    def __init__(self, found):
        names = sorted((name for name in found if name.startswith("embedding.")), key=lambda n: int(n.split("C")[1]))
        self.found, self.table = found, numpy.concatenate([found[name] for name in names])
        self.fields, self.dim = len(names), self.table.shape[1]
        self.layers = sum(name.endswith(".weight") for name in found)
        self.numbers = found["dense.0.weight"].shape[0] - self.fields * self.dim
        self.constants = {"embeddings": self.table, "wide": found["wide"], "bias": found["bias"].reshape(1),
                          "axis": numpy.array([1], numpy.int64)}
        self.nodes, self.inputs = [], []

    def positions(self):
        """Gives the rows of the first layer for (the user's numbers, the user's embeddings, the item's numbers, the
        item's embeddings)."""
        user_numbers, user_fields = self.numbers // 2, self.fields // 2
        sizes = (user_numbers, user_fields * self.dim, self.numbers - user_numbers,
                 (self.fields - user_fields) * self.dim)
        ends = numpy.cumsum((0, *sizes))
        return [list(range(ends[i], ends[i + 1])) for i in range(4)]

    def add(self, kind, inputs, output, **more):
        self.nodes.append(helper.make_node(kind, inputs, [output], **more))
        return output

    def side(self, name, rows, numbers, fields):
        """Inputs of `numbers` and `fields`: (the rows beside their embeddings, the sums of their wide weights)."""
        dense, ids = f"{name}dense", f"{name}ids"
        self.inputs += [helper.make_tensor_value_info(dense, TensorProto.FLOAT, [rows, numbers]),
                        helper.make_tensor_value_info(ids, TensorProto.INT64, [rows, fields])]
        self.constants[f"{name}shape"] = numpy.array([-1, fields * self.dim], numpy.int64)
        flat = self.add("Reshape", [self.add("Gather", ["embeddings", ids], f"{name}gathered"), f"{name}shape"],
                        f"{name}flat")
        weights = self.add("Gather", ["wide", ids], f"{name}weights")
        return (self.add("Concat", [dense, flat], f"{name}row", axis=1),
                self.add("ReduceSum", [weights, "axis"], f"{name}sum", keepdims=0))

    def gemm(self, row, weight, bias, output):
        name = f"w_{output}"
        self.constants[name] = weight
        if bias is None:
            return self.add("MatMul", [row, name], output)
        self.constants[f"b_{output}"] = bias.reshape(-1)
        return self.add("Gemm", [row, name, f"b_{output}"], output)

    def upper(self, first, wide_sum):
        """From the first layer's sums to the scores."""
        value = first
        for i in range(1, self.layers):
            value = self.gemm(self.add("Relu", [value], f"layer{i}"), self.found[f"dense.{i}.weight"],
                              self.found[f"dense.{i}.bias"], f"sum{i}")
        logit = self.add("Add", [self.add("Add", [value, wide_sum], "both"), "bias"], "logit")
        self.add("Sigmoid", [logit], "scores")
        graph = helper.make_graph(
            self.nodes, "wide_and_deep", self.inputs,
            [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["rows", 1])],
            [numpy_helper.from_array(numpy.ascontiguousarray(value), name) for name, value in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def joined(found):
    net = Network(found)
    user_numbers, user_fields, item_numbers, item_fields = net.positions()
    row, wide_sum = net.side("", "rows", net.numbers, net.fields)
    order = user_numbers + item_numbers + user_fields + item_fields  # all numbers stand before all embeddings
    first = net.gemm(row, found["dense.0.weight"][order], found["dense.0.bias"], "sum0")
    return net.upper(first, wide_sum)


def once(found):
    net = Network(found)
    user_numbers, user_fields, item_numbers, item_fields = net.positions()
    weight = found["dense.0.weight"]
    user, user_sum = net.side("user_", 1, net.numbers // 2, net.fields // 2)
    item, item_sum = net.side("item_", "rows", net.numbers - net.numbers // 2, net.fields - net.fields // 2)
    user_part = net.gemm(user, weight[user_numbers + user_fields], found["dense.0.bias"], "user_part")
    item_part = net.gemm(item, weight[item_numbers + item_fields], None, "item_part")
    return net.upper(net.add("Add", [item_part, user_part], "sum0"), net.add("Add", [item_sum, user_sum], "wide_sum"))


def main():
    folder = pathlib.Path(sys.argv[1])
    found = tensors(folder)
    onnx.save(joined(found), str(folder / "model.onnx"))
    onnx.save(once(found), str(folder / "model-once.onnx"))


if __name__ == "__main__":
    main()
