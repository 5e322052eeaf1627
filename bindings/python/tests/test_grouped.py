"""Searches that give a few results of each key."""

from __future__ import annotations

import numpy as np
import pytest

import shortlist


@pytest.fixture(scope="module")
def keyed(x):
    ix = shortlist.Index(dim=x.shape[1], codes="f32", keys=True)
    ix.add(x, keys=np.arange(len(x)) // 100)
    return ix


def test_a_few_of_each_key(keyed, x, q):
    order, _ = shortlist.exact(x, q[:20], k=len(x), metric="cosine")
    for size in (1, 3):
        found, scores = keyed.search(q[:20], k=10, ef=200, group_size=size)
        hits = 0
        for row, ids in zip(order, found):
            wanted = [i for at, i in enumerate(row) if (row[:at] // 100 == i // 100).sum() < size][:10]
            assert np.bincount((ids // 100).astype(int)).max() <= size
            hits += len(np.intersect1d(ids, wanted))
        assert hits > 0.95 * found.size
        assert (np.diff(scores) <= 0).all()
    one, _ = keyed.search(q[0], k=10, ef=200, group_size=3)
    np.testing.assert_array_equal(one, found[0])


def test_fewer_keys_than_results(keyed, q):
    ids, scores = keyed.search(q[0], k=30, group_size=1)
    assert sorted(ids[:20] // 100) == list(range(20))
    assert (ids[20:] == shortlist.NO_ID).all() and np.isnan(scores[20:]).all()
    allowed = shortlist.Filter(keyed, np.arange(250, 1950, 7))
    ids, _ = keyed.search(q[0], k=30, group_size=1, filter=allowed)
    assert sorted(ids[:18] // 100) == list(range(2, 20)) and ids[18] == shortlist.NO_ID


def test_what_cannot_be_grouped(ready, keyed, q):
    with pytest.raises(ValueError, match="no keys"):
        ready.search(q, group_size=1)
    with pytest.raises(ValueError, match="group_size"):
        keyed.search(q, group_size=-1)
