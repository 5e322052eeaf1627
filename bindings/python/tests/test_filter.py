"""Searches among some ids alone."""

from __future__ import annotations

import numpy as np
import pytest

import shortlist


def allowed_ids(x):
    return np.flatnonzero(np.arange(len(x)) % 7 == 3)


def as_bits(ids, n):
    mask = np.zeros(n, np.bool_)
    mask[ids] = True
    return mask


def test_every_form_of_a_filter(ready, x, q):
    ids = allowed_ids(x)
    truth, _ = shortlist.exact(x[ids], q, k=5, metric="cosine")
    mask = as_bits(ids, len(x))
    bits = np.packbits(mask, bitorder="little")
    forms = [mask, mask.tolist(), bits, ids[::-1], ids.astype(np.uint64), np.repeat(ids, 2)]
    for form in forms:
        found, scores = ready.search(q, k=5, ef=400, filter=form, threads=2)
        assert np.isin(found, ids).all() and np.isfinite(scores).all()
        assert (found == ids[truth]).mean() > 0.95
    one, _ = ready.search(q[0], k=5, ef=400, filter=mask)
    np.testing.assert_array_equal(one, ready.search(q, k=5, ef=400, filter=mask)[0][0])


def test_ids_beyond_the_array_may_not_be_found(ready, q):
    found, _ = ready.search(q, k=5, ef=200, filter=np.ones(100, np.bool_))
    assert (found < 100).all()


def test_nothing_accepted(ready, q):
    for nothing in (np.zeros(0, np.bool_), np.zeros(5000, np.bool_), np.zeros(0, np.uint8), [], np.array([10**12])):
        found, scores = ready.search(q, k=3, filter=nothing)
        assert (found == shortlist.NO_ID).all() and np.isnan(scores).all()


def test_filters_that_cannot_be(ready, q):
    for wrong in ([[True]], np.ones(3), [-1], ["a"]):
        with pytest.raises(ValueError, match="filter|ids"):
            ready.search(q, filter=wrong)


def test_the_core_checks_a_filters_length(ready, q):
    ids, scores = np.empty((len(q), 3), np.uint64), np.empty((len(q), 3), np.float32)
    f32 = shortlist._core.DTYPES["f32"]
    for wrong in (
        {"bits": np.zeros(1, np.uint64), "bits_count": 65, "allowed": None, "allowed_count": 0},
        {"bits": None, "bits_count": 0, "allowed": np.zeros(1, np.uint64), "allowed_count": 2},
    ):
        with pytest.raises(ValueError, match="length"):
            ready._core.search(q, f32, 3, 10, 0, 0.0, 0.0, 0, 0, 1, wrong, ids, scores)
