"""Exchange of rankers with ONNX, by the package ``onnx`` (``pip install onnx``).

    proto = shortlist.onnx.export(rk, "model.onnx")
    session = onnxruntime.InferenceSession("model.onnx")
    (scores,) = session.run(None, shortlist.onnx.inputs(rk, data))
    rk = shortlist.onnx.load("model.onnx")
"""

try:
    import onnx as _onnx  # noqa: F401
except ImportError:
    raise ImportError("shortlist.onnx needs the package onnx: pip install onnx") from None

from ._export import OPSET, export, inputs
from ._load import load

__all__ = ["OPSET", "export", "inputs", "load"]
