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
    """A value made from another value's shape alone."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of inputs: (N, k), or (N,) of a single one."""

    refs: tuple[Ref, ...]
    rank: int
    ids: bool


class Part(NamedTuple):
    """A piece of a row: a number of an input, or the row of a table that an id chooses."""

    ref: Ref
    table: Const | None

    def width(self) -> int:
        return 1 if self.table is None else int(self.table.array.shape[1])


@dataclass(frozen=True, eq=False)
class Looked:
    """(N, k, dim): rows of tables, not yet side by side."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Row:
    """(N, width): pieces side by side."""

    parts: tuple[Part, ...]


class Coding(NamedTuple):
    """The codes of a layer: of its inputs, and of its weights. None: it has none."""

    range: Range | None
    weights: Codes | None


@dataclass(frozen=True, eq=False)
class Layers:
    """(N, out): a row led through layers, (in, out) and (out,) each; an activation for each, but perhaps the last.
    codings: one a layer."""

    parts: tuple[Part, ...]
    layers: tuple[tuple[Array, Array], ...]
    active: tuple[str, ...] = ()
    codings: tuple[Coding, ...] = ()

    def open(self) -> bool:
        return len(self.active) < len(self.layers)


@dataclass(frozen=True, eq=False)
class Total:
    """A sum: of layers' outputs, of rows of tables, and of constants; final: the function put on it."""

    layers: tuple[Layers, ...] = ()
    terms: tuple[Part, ...] = ()
    bias: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    final: str | None = None


@dataclass(frozen=True, eq=False)
class Coded:
    """A value that went through QuantizeLinear. range: None for codes that are no bytes; cuts: whether no code stands
    for a number below 0; node: its name."""

    value: Union[Columns, Looked, Row, Layers, Total]
    range: Range | None
    cuts: bool
    node: str


Value = Union[Const, Sizes, Columns, Looked, Row, Layers, Total, Coded]
