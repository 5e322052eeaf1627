"""The known facts of each value of a graph that is read: the columns it looks up, adds, or leads through layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Ref(NamedTuple):
    """A column of an input: of a matrix its number, of a vector None. shift is added to its ids."""

    input: str
    column: int | None
    shift: int = 0


class Codes(NamedTuple):
    """Whole numbers that stand for an array: numbers * scales. numbers: with the zero point taken off, of the array's
    shape; scales: of as many axes, each of the array's length or 1."""

    numbers: Array
    scales: Array

    def turned(self) -> Codes:
        return Codes(self.numbers.T, self.scales.T)

    def misfit(self) -> str:
        """Why no INT8 layer has these weights; "": one has."""
        if self.scales.shape[0] != 1:
            return "its weights have a scale for each input"
        if self.numbers.min(initial=0) < -128 or self.numbers.max(initial=0) > 127:
            return "its weights are not whole numbers from -128 to 127 times a scale"
        return ""


class Range(NamedTuple):
    """The codes of an activation, as bytes from 0 to 255: x has the code zero + x / scale."""

    scale: float
    zero: int


@dataclass(frozen=True, eq=False)
class Const:
    """An array that does not depend on the inputs; name: of the initializer it came from; codes: what it was
    dequantised from."""

    array: Array
    name: str
    codes: Codes | None = None


@dataclass(frozen=True, eq=False)
class Sizes:
    """Numbers of a value's shape: a vector of them, or one alone. None stands for N, the number of rows."""

    dims: tuple[Union[int, None], ...]
    alone: bool = False


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of inputs: (N, k), or (N,) of a single one."""

    refs: tuple[Ref, ...]
    rank: int
    ids: bool


@dataclass(frozen=True, eq=False)
class Bag:
    """A step on the way from a matrix of a bag's ids, (N, L), to one row of a table. _steps.py lists the steps."""

    input: str
    step: str
    table: Const | None = None


class Part(NamedTuple):
    """A piece of a row: a number of an input, the row of a table that an id chooses, or what combine makes of the rows
    that a bag's ids choose: "sum", "mean" or "max"."""

    ref: Ref
    table: Const | None
    combine: str | None = None

    def width(self) -> int:
        return 1 if self.table is None else int(self.table.array.shape[1])


@dataclass(frozen=True, eq=False)
class Looked:
    """(N, k, dim): rows of tables, not yet side by side."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """(N, width): pieces side by side; or (N,) of width 1."""

    parts: tuple[Part, ...]
    rank: int = 2


class Coding(NamedTuple):
    """The numbers of a layer. range: the codes of its inputs; weights: the codes of its weights; half: its inputs are
    rounded to bfloat16. None: there are no codes."""

    range: Range | None
    weights: Codes | None
    half: bool = False


class Layer(NamedTuple):
    """weight: (in, out); bias: (out,), None before one is added; active: the function behind it, None before one is
    met."""

    weight: Array
    bias: Array | None
    coding: Coding
    active: str | None = None


@dataclass(frozen=True, eq=False)
class Layers:
    """(N, out), or (N,) of one output: a row led through layers."""

    parts: tuple[Part, ...]
    layers: tuple[Layer, ...]
    rank: int = 2

    def open(self) -> bool:
        return self.layers[-1].active is None


@dataclass(frozen=True, eq=False)
class Gelu:
    """A step on the way to the gelu of layers' outputs. _steps.py lists the steps."""

    layers: Layers
    step: str


# Adding to it changes no number, not even the sign of a zero.
NOTHING = np.float32(-0.0)


@dataclass(frozen=True, eq=False)
class Total:
    """(N, width), or (N,) of width 1: a sum of layers' outputs, of rows of tables, and of constants. final: the
    function put on it."""

    layers: tuple[Layers, ...] = ()
    terms: tuple[Part, ...] = ()
    bias: Array = field(default_factory=lambda: np.full(1, NOTHING))
    rank: int = 2
    final: str | None = None


Floats = Union[Columns, Looked, Row, Layers, Total]


@dataclass(frozen=True, eq=False)
class Coded:
    """A value that went through QuantizeLinear. scale, zero, axis: of the codes; range: None for codes that are no
    bytes; cuts: whether no code stands for a number below 0; whole: whether it is codes still; node: its name."""

    value: Floats
    scale: Array
    zero: Array
    axis: int | None
    range: Range | None
    cuts: bool
    whole: bool
    node: str


@dataclass(frozen=True, eq=False)
class Rounded:
    """A value that was rounded to bfloat16. half: whether it is of that type still."""

    value: Floats
    half: bool


Value = Union[Const, Sizes, Floats, Bag, Gelu, Coded, Rounded]
