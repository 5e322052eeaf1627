"""Bad input and damaged files: each its exception, with the library's words, and nothing lost."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import DIM, OPTIONS

import shortlist
from shortlist import _errors


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"dim": 0}, "dim"),
        ({"dim": 65537}, "dim"),
        ({"dim": -1}, "dim is -1"),
        ({"dim": 2**70}, "dim is"),
        ({"m": 0}, "m"),
        ({"m": 1}, "m"),
        ({"m": 2**63 - 1}, "m"),
        ({"ef_build": 0}, "ef"),
        ({"seed": -1}, "seed is -1"),
        ({"metric": "euclid"}, "metric is 'euclid'; it must be one of ip, cosine, l2"),
        ({"metric": None}, "metric is None"),
        ({"codes": "i7"}, "codes is 'i7'"),
        ({"refine": "f64"}, "refine is 'f64'"),
        ({"dtype": "f64"}, "dtype is 'f64'"),
        ({"dtype": np.int64}, "dtype is"),
        ({"dtype": object()}, "dtype is"),
        ({"dtype": "i8", "codes": "i16"}, "i8"),
        ({"dtype": "i8", "refine": "f32"}, "refine"),
        ({"codes": "f32", "refine": "f32"}, "refine"),
        ({"codes": "i4", "refine": "bf16"}, "refine none, i16 or f32"),
        ({"dtype": "u8", "codes": "i16"}, "u8"),
        ({"clip": "median"}, "clip is 'median'; it must be one of auto, minmax, mse, quantile"),
        ({"clip": "quantile", "clip_share": 0.6}, "0 to 0.5"),
        ({"clip": "quantile", "clip_share": float("nan")}, "0 to 0.5"),
        ({"codes": "f32", "clip": "mse"}, "use clip auto"),
        ({"dtype": "u8", "clip": "minmax"}, "use clip auto"),
    ],
)
def test_settings_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        shortlist.Index(**{"dim": 8, **arguments})


def test_settings_that_are_no_numbers():
    for arguments in ({"dim": "8"}, {"dim": 8.0}, {"dim": 8, "m": None}):
        with pytest.raises(TypeError, match="must be a whole number"):
            shortlist.Index(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"k": -1},
        {"k": 65537},
        {"k": 2**62},
        {"k": 2**70},
        {"ef": 0},
        {"ef": -1},
        {"ef": 65537},
        {"threads": -1},
        {"rerank": -2},
        {"recall": 0},
        {"recall": 0.0},
        {"recall": -1.0},
        {"recall": 1.5},
        {"recall": np.nan},
        {"stop": -0.1},
        {"stop": np.nan},
    ],
)
def test_searches_that_cannot_be(arguments, ready, q):
    for queries in (q, q[0], q.tolist()):
        with pytest.raises(ValueError, match=f"^{next(iter(arguments))} is "):
            ready.search(queries, **arguments)


@pytest.mark.parametrize("name", ["k", "ef", "threads", "rerank", "recall", "stop"])
def test_searches_for_what_are_no_numbers(name, ready, q):
    for wrong in ([], object(), None):
        if name == "recall" and wrong is None:
            continue
        with pytest.raises(TypeError, match=f"^{name} must be a"):
            ready.search(q[0], **{name: wrong})


def test_a_missing_id_is_a_key_error(ready):
    with pytest.raises(KeyError, match="123456"):
        ready.get([1, 123456])
    with pytest.raises(ValueError, match="shape"):
        ready.get([[1]])


def test_a_taken_id_is_a_value_error(x):
    ix = shortlist.Index(dim=DIM)
    ix.add(x[:5])
    with pytest.raises(ValueError, match="3"):
        ix.add(x[:1], ids=[3])
    assert len(ix) == 5


def test_results_too_large_for_memory(x):
    with pytest.raises((MemoryError, ValueError)):
        shortlist.exact(x, x, k=2**50)


@pytest.mark.parametrize(
    "status, kind",
    [
        ("SL_EINVAL", ValueError),
        ("SL_EDIM", ValueError),
        ("SL_ETYPE", ValueError),
        ("SL_EVALUE", ValueError),
        ("SL_ELIMIT", ValueError),
        ("SL_EEXIST", ValueError),
        ("SL_ENOMEM", MemoryError),
        ("SL_EIO", OSError),
        ("SL_ENOSPC", OSError),
        ("SL_ENOTFOUND", KeyError),
        ("SL_ECORRUPT", shortlist.Error),
        ("SL_EBUSY", shortlist.Error),
    ],
)
def test_what_each_status_becomes(status, kind):
    error = _errors.from_status(status, "what, where and what to do")
    assert type(error) is kind and error.args == ("what, where and what to do",)


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(shortlist.Error("SL_ECORRUPT", "damaged")))
    assert (error.status, str(error), error.report) == ("SL_ECORRUPT", "damaged", None)


def test_the_core_refuses_buffers_that_do_not_fit(ready):
    """The core repeats the package's checks where memory would be overrun."""
    core, f32 = ready._core, shortlist._core.DTYPES["f32"]
    good = np.ones((2, DIM), np.float32)
    ids, scores = np.empty((2, 3), np.uint64), np.empty((2, 3), np.float32)
    core.search(good, f32, 3, OPTIONS, ids, scores)
    bad_rows = [good[:, :-1], good.astype(float), np.asfortranarray(good), good[::-1], good[0], good[:, ::-1]]
    for rows in bad_rows:
        with pytest.raises(ValueError, match="contiguous rows"):
            core.search(rows, f32, 3, OPTIONS, ids, scores)
    for bad_ids in (ids[:1], ids.astype(np.uint32), np.empty((2, 6), np.uint64)[:, ::2]):
        with pytest.raises((ValueError, BufferError)):
            core.search(good, f32, 3, OPTIONS, bad_ids, scores)
    frozen = ids.copy()
    frozen.setflags(write=False)
    with pytest.raises((ValueError, BufferError)):
        core.search(good, f32, 3, OPTIONS, frozen, scores)
    with pytest.raises(TypeError):
        core.search([1.0], f32, 3, OPTIONS, ids, scores)
    with pytest.raises(KeyError):
        core.search(good, f32, 3, {"ef": 10}, ids, scores)
    with pytest.raises((RuntimeError, TypeError)):
        core.search(good, f32, 3, {**OPTIONS, "filter": "all"}, ids, scores)
    with pytest.raises(ValueError):
        core.get(np.arange(3, dtype=np.uint64), 3, f32, np.empty((2, DIM), np.float32))
