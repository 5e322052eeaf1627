"""Data that every test file uses."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import shortlist

DIM = 32
# Options of a search as the core takes them.
OPTIONS = {
    "ef": 64,
    "threads": 1,
    "rerank": 0,
    "recall": 0.0,
    "stop": 0.0,
    "probes": 0,
    "groups": 0,
    "group_size": 0,
    "threshold": None,
    "max_visits": 0,
    "filter": None,
}

Matrix = npt.NDArray[Any]

# Later Pythons warn of every fork beside threads; that it works here is what these tests show.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


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


@pytest.fixture
def counter():
    """Counts in a thread that gives up the GIL after each step, while no thread is made to give up the GIL. The count
    so stands still during a call that keeps the GIL, and moves during one that does not."""
    steps, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            steps[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1000)
    yield steps
    sys.setswitchinterval(interval)
    stop.set()
    thread.join()


def moves(counter, call):
    """Tells whether the count moves during the call, given many chances, since a short call may be over too soon."""
    for _ in range(200):
        before = counter[0]
        call()
        if counter[0] != before:
            return True
    return False


def run_together(*works):
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # told to the test below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
