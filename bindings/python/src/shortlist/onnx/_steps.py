"""Values that several nodes make together: a bag's rows, and gelu by Erf. Each node is a step, or it is refused."""

from __future__ import annotations

from itertools import product
from typing import Sequence

import numpy as np

from ._values import NOTHING, Bag, Const, Gelu, Layers, Part, Ref, Row, Total, Value

# Nodes between a bag's ids and one row. Words are the steps of operands, or constants.
_BAG: dict[tuple[str, ...], str] = {
    ("Less", "given", "0"): "absent",
    ("Where", "absent", "0", "given"): "ids",
    ("Not", "absent"): "present",
    ("Cast float", "present"): "mask",
    ("Unsqueeze 2", "mask"): "mask of rows",
    ("Gather", "table", "ids"): "rows",
    ("Mul", "rows", "mask of rows"): "masked",
    ("ReduceSum 1", "masked"): "sum",
    ("ReduceSum 1", "mask of rows"): "number",
    ("Max", "number", "1"): "divisor",
    ("Div", "sum", "divisor"): "mean",
    ("Cast bool", "mask of rows"): "present rows",
    ("Where", "present rows", "rows", "lowest"): "lowered",
    ("ReduceMax 1", "lowered"): "largest",
    ("ReduceMax 1", "mask of rows"): "some",
    ("Cast bool", "some"): "any",
    ("Where", "any", "largest", "0"): "max",
}
_COMBINED = ("sum", "mean", "max")

# Nodes between a layer's outputs, x, and their gelu: x * (1 + erf(x / sqrt(2))) / 2.
_GELU: dict[tuple[str, ...], str] = {
    ("Mul", "x", "root of 1/2"): "scaled",
    ("Div", "x", "root of 2"): "scaled",
    ("Erf", "scaled"): "erf",
    ("Add", "erf", "1"): "shifted",
    ("Mul", "shifted", "1/2"): "share",
    ("Mul", "x", "share"): "gelu",
    ("Mul", "x", "shifted"): "twice",
    ("Mul", "twice", "1/2"): "gelu",
    ("Mul", "x", "1/2"): "halved",
    ("Mul", "halved", "shifted"): "gelu",
}
_CONSTANTS = {"0": 0.0, "1": 1.0, "1/2": 0.5, "root of 1/2": 0.5**0.5, "root of 2": 2**0.5}
_COMMUTE = ("Mul", "Add", "Max")

KNOWN = sorted({key[0].split()[0] for key in (*_BAG, *_GELU)})


def _words(value: Value | None) -> list[str]:
    """The words by which a table may name an operand."""
    if isinstance(value, (Bag, Gelu)):
        return [value.step]
    if isinstance(value, Layers):
        return ["x"] if value.open() and value.rank == 2 else []
    if isinstance(value, Row):
        # The step "sum" is a row that may be used as it is.
        return ["sum"] if [part.combine for part in value.parts] == ["sum"] and value.rank == 2 else []
    if not isinstance(value, Const):
        return []
    if value.array.size != 1:
        return ["table"] if value.array.ndim == 2 else []
    if value.array.ndim > 2 or value.array.dtype.kind not in "fiu":
        return []
    number = float(np.ravel(value.array)[0])
    found = [word for word, known in _CONSTANTS.items() if abs(number - known) <= 2e-7 * abs(known)]
    return [*found, "lowest", *(["table"] if value.array.ndim == 2 else [])]


def _found(table: dict[tuple[str, ...], str], op: str, values: Sequence[Value | None]) -> tuple[str, ...] | None:
    """The key of a table that an operator over these values is."""
    orders = [list(values)] if op not in _COMMUTE else [list(values), list(values)[::-1]]
    for order in orders:
        for words in product(*[_words(value) for value in order]):
            if (op, *words) in table:
                return (op, *words)
    return None


def _bag_of(value: Value | None) -> tuple[str, Const | None] | None:
    """The bag's input and table that a value is made of."""
    if isinstance(value, Bag):
        return value.input, value.table
    if isinstance(value, Row):
        return value.parts[0].ref.input, value.parts[0].table
    return None


def _bag(op: str, values: Sequence[Value | None]) -> Value | None:
    key = _found(_BAG, op, values)
    bags = [bag for bag in map(_bag_of, values) if bag is not None]
    if key is None or not bags:
        return None
    tables = [table for _, table in bags if table is not None]
    consts = [value for value in values if isinstance(value, Const)]
    if "table" in key:
        tables += consts
    if any(name != bags[0][0] for name, _ in bags) or any(table is not tables[0] for table in tables):
        return None
    table = tables[0] if tables else None
    if "lowest" in key and table is not None:
        # No number of the table is below what stands for an id that is absent.
        least = table.array.min(initial=np.inf)
        if not all(np.ravel(value.array)[0] <= least for value in consts):
            return None
    step = _BAG[key]
    if step in _COMBINED:
        return Row((Part(Ref(bags[0][0], None), table, step),))
    return Bag(bags[0][0], step, table)


def _gelu(op: str, values: Sequence[Value | None]) -> Value | None:
    key = _found(_GELU, op, values)
    nets = [value.layers if isinstance(value, Gelu) else value for value in values if not isinstance(value, Const)]
    if key is None or not isinstance(nets[0], Layers) or any(net is not nets[0] for net in nets):
        return None
    step = _GELU[key]
    return activated(nets[0], "gelu") if step == "gelu" else Gelu(nets[0], step)


def as_layers(value: Value | None) -> Layers | None:
    """Layers that nothing but a constant was added to; None for other values."""
    if isinstance(value, Layers):
        return value
    if not isinstance(value, Total) or value.final or value.terms or len(value.layers) != 1:
        return None
    (net,) = value.layers
    if not net.open():
        return None
    last = net.layers[-1]
    bias = np.broadcast_to(value.bias, last.weight.shape[1:]) + (NOTHING if last.bias is None else last.bias)
    return Layers(net.parts, (*net.layers[:-1], last._replace(bias=bias)), value.rank)


def activated(net: Layers, kind: str) -> Layers:
    """The layers with a function behind the last."""
    last = net.layers[-1]._replace(active=kind)
    return Layers(net.parts, (*net.layers[:-1], last), net.rank)


def step(op: str, values: Sequence[Value | None]) -> Value | None:
    """The value that an operator makes of such values; None where it is no step of a bag or of gelu. op: its name, and
    the type or the axis where the table has one."""
    return _bag(op, values) or _gelu(op, values)
