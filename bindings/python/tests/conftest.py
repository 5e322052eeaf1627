"""Data that every test file uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import shortlist

DIM = 32

Matrix = npt.NDArray[Any]


def clustered(n: int, dim: int = DIM, seed: int = 1) -> Matrix:
    """Vectors around common centres, with lengths that differ by an order of magnitude."""
    centres = np.random.default_rng(99).standard_normal((40, dim))
    rng = np.random.default_rng(seed)
    x = centres[rng.integers(len(centres), size=n)] + 0.5 * rng.standard_normal((n, dim))
    return np.asarray(x * np.exp(0.5 * rng.standard_normal((n, 1))), np.float32)


def whole_numbers(n: int, dtype: npt.DTypeLike, dim: int = DIM, seed: int = 1) -> Matrix:
    """Clustered vectors spread over the range of an integer type, its ends included."""
    x = clustered(n, dim, seed).astype(np.float64)
    info = np.iinfo(np.dtype(dtype))
    x = np.interp(x, (-3.0, 3.0), (info.min, info.max))
    return np.rint(x).astype(dtype)


def recall(ids: Matrix, truth: Matrix) -> float:
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(ids, truth)]))


@pytest.fixture(scope="session")
def x() -> Matrix:
    return clustered(2000)


@pytest.fixture(scope="session")
def q() -> Matrix:
    return clustered(100, seed=2)


@pytest.fixture(scope="session")
def ready(x: Matrix) -> shortlist.Index:
    """An index over x that tests only read."""
    ix = shortlist.Index(dim=DIM, metric="cosine", refine="f32")
    ix.add(x)
    return ix
