"""Searches go a short way where nothing is to be converted, and by it give what the longer way gives."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM, clustered, recall, whole_numbers

import shortlist


class Own(np.ndarray):
    """An array that is not quite numpy's, so that it takes the longer way."""


def short_way(ix, q, k=10, ef=64, threads=1, rerank=0, recall=None, stop=0.0, probes=0, groups=0):
    return ix._core.search_as_is(q, k, ef, threads, rerank, recall, stop, probes, groups)


def made(dtype):
    if np.dtype(dtype).kind == "f":
        x, q = clustered(1000).astype(dtype), clustered(20, seed=2).astype(dtype)
        ix = shortlist.Index(DIM, refine="f32")
    else:
        x, q = whole_numbers(1000, dtype), whole_numbers(20, dtype, seed=2)
        ix = shortlist.Index(DIM, dtype=dtype)
    ix.add(x)
    return ix, q


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8, np.int16])
def test_both_ways_give_the_same(dtype):
    ix, q = made(dtype)
    for queries in (q, q[3], q[:1], q[:0], q[::1]):
        settings = {"k": 7, "ef": 20, "threads": 2, "rerank": 9, "stop": 0.3}
        expected = ix.search(queries.view(Own), **settings)
        for found in (short_way(ix, queries, **settings), ix.search(queries, **settings)):
            assert type(found) is tuple and [a.dtype for a in found] == [np.uint64, np.float32]
            for a, b in zip(found, expected):
                assert a.shape == (*queries.shape[:-1], 7) and a.flags.c_contiguous and a.flags.writeable
                np.testing.assert_array_equal(a, b)


def test_what_goes_the_short_way(ready, q):
    frozen = q.copy()
    frozen.setflags(write=False)
    for queries in (q, q[0], frozen, frozen[5:7], np.ascontiguousarray(q.T).T.copy("C"), q.astype(np.float16)):
        assert short_way(ready, queries) is not None
    assert short_way(ready, q[0], k=1, ef=7, threads=0, rerank=5, stop=0.25) is not None


def test_what_does_not(ready, q):
    unaligned = np.zeros(q.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(q.shape)
    arrays = [
        q.tolist(),
        None,
        q.view(Own),
        np.float32(1),
        np.array(1, np.float32),
        q[np.newaxis],
        q[:, :-1],
        q[0, 1:],
        q[::2],
        q[:, ::-1],
        np.asfortranarray(q),
        q.astype(">f4"),
        q.astype(float),
        q.astype(np.int8),
        q.astype(complex),
        q.view(np.uint16),
        unaligned,
    ]
    for queries in arrays:
        assert short_way(ready, queries) is None
    for whole in ("k", "ef", "threads", "rerank", "probes", "groups"):
        for number in (-1, 2**63, -(2**63), 2**200, True, 3.0, "3", None, np.int64(3)):
            assert short_way(ready, q, **{whole: number}) is None
    assert short_way(ready, q, k=65537) is None
    for real in ("recall", "stop"):
        for number in (-1.0, np.nan, 1, "1", np.float64):
            assert short_way(ready, q, **{real: number}) is None
    for number in (0.0, 1.01, np.inf):
        assert short_way(ready, q, recall=number) is None
    assert short_way(ready, q, stop=None) is None
    ix, whole_q = made(np.int8)
    for other in (np.float32, np.float16, np.uint8, np.int16):
        assert short_way(ix, whole_q.astype(other)) is None


def test_numbers_of_other_types_are_taken(ready, q):
    expected = ready.search(q, k=3, ef=20, stop=1.0)
    found = ready.search(q, k=np.int64(3), ef=np.uint8(20), threads=True, stop=1)
    np.testing.assert_array_equal(found[0], expected[0])


def test_failures_of_the_short_way(ready, q):
    with pytest.raises(ValueError, match="k is 0"):
        short_way(ready, q, k=0)
    with pytest.raises(KeyError, match="recall"):
        short_way(ready, q[0], recall=0.9)
    bad = q.copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="7"):
        short_way(ready, bad)
    ix = shortlist.Index(DIM)
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        short_way(ix, q[0])


def test_stored_settings_go_both_ways(x, q):
    ix = shortlist.Index(DIM)
    ix.add(x)
    report = ix.tune(clustered(200, seed=3), k=5, targets=[0.9])
    expected = ix.search(q.view(Own), k=5, recall=0.9)[0]
    np.testing.assert_array_equal(short_way(ix, q, k=5, recall=0.9)[0], expected)
    (one,) = report.settings
    assert one.k <= one.ef_alone <= one.ef and (one.stop > 0 or one.ef_alone == one.ef)
    by_hand = ix.search(q, k=5, ef=one.ef, rerank=one.rerank, stop=one.stop)[0]
    np.testing.assert_array_equal(by_hand, expected)


def test_an_early_stop_looks_at_less(x, q):
    ix = shortlist.Index(DIM, metric="l2", m=4, ef_build=20, codes="f32")
    ix.add(x)
    truth = shortlist.exact(x, q, k=10, metric="l2")[0]
    for queries in (q, q.astype(float)):
        full = ix.search(queries, ef=400)[0]
        assert recall(ix.search(queries, ef=400, stop=1e-6)[0], truth) < recall(full, truth)
        np.testing.assert_array_equal(ix.search(queries, ef=400, stop=1e9)[0], full)


@pytest.mark.skipif(shortlist.cpu()["isa"] == "scalar", reason="this tier does not scan")
def test_probes_scan_instead_of_walking():
    ix, many = shortlist.Index(DIM), clustered(300, seed=4)
    ix.add(clustered(5000))
    truth = shortlist.exact(clustered(5000), many, k=10, metric="cosine")[0]
    for queries in (many, many.astype(float)):
        few, all_of_them = (ix.search(queries, ef=1, probes=probes)[0] for probes in (1, 1000))
        assert recall(few, truth) < recall(all_of_them, truth)
        assert recall(all_of_them, truth) > 0.98  # which no walk of ef 1 reaches


@pytest.mark.skipif(shortlist.cpu()["isa"] == "scalar", reason="this tier does not scan")
def test_fewer_groups_find_less():
    ix = shortlist.Index(DIM, metric="ip", m=4, ef_build=8)
    x, queries = clustered(34000), clustered(10, seed=4)
    ix.add(x, threads=2)
    truth = shortlist.exact(x, queries, k=10, metric="ip")[0]
    for asked in (queries, queries.astype(float)):  # the short way, and the long one
        found = [ix.search(asked, probes=20, groups=groups)[0] for groups in (1, 1000, 0)]
        assert recall(found[0], truth) < recall(found[1], truth)
        np.testing.assert_array_equal(found[1], found[2])


def test_results_are_their_own(ready, q):
    """Neither a later search nor the queries share their memory."""
    ids, scores = ready.search(q[0])
    kept = ids.copy(), scores.copy()
    again = ready.search(q[1])
    for a, b, c in zip((ids, scores), again, kept):
        assert a.flags.owndata and not np.shares_memory(a, b)
        np.testing.assert_array_equal(a, c)
