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


@dataclass(frozen=True, eq=False)
class Const:
    """An array that does not depend on the inputs; name: of the initializer it came from."""

    array: Array
    name: str


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


@dataclass(frozen=True, eq=False)
class Layers:
    """(N, out): a row led through layers, (in, out) and (out,) each; an activation for each, but perhaps the last.
    clipped: the codes of the outputs cut off what is below 0."""

    parts: tuple[Part, ...]
    layers: tuple[tuple[Array, Array], ...]
    active: tuple[str, ...] = ()
    clipped: bool = False

    def open(self) -> bool:
        return len(self.active) < len(self.layers)


@dataclass(frozen=True, eq=False)
class Total:
    """A sum: of layers' outputs, of rows of tables, and of constants; final: the function put on it."""

    layers: tuple[Layers, ...] = ()
    terms: tuple[Part, ...] = ()
    bias: Array = field(default_factory=lambda: np.zeros(1, np.float32))
    final: str | None = None


Value = Union[Const, Sizes, Columns, Looked, Row, Layers, Total]
