"""Questions to an index besides searches for the k nearest."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM

import shortlist


@pytest.mark.parametrize("step", [1, 2**40])
def test_ids_are_listed_and_told(x, step):
    ix = shortlist.Index(dim=DIM)
    assert ix.ids().dtype == np.uint64 and ix.ids().shape == (0,) and 0 not in ix
    ids = np.arange(len(x), dtype=np.uint64) * np.uint64(step)
    ix.add(x, ids)
    assert sorted(ix.ids()) == list(ids)
    ix.delete(ids[[3, 5]])
    assert sorted(ix.ids()) == list(np.delete(ids, [3, 5]))
    assert ids[4] in ix and int(ids[4]) in ix and 4 * step in ix
    assert ids[3] not in ix and len(x) * step not in ix
    for no_id in (-1, 2**64 - 1, 2**64, 10**30):
        assert no_id not in ix
    for no_number in ("4", 4.0, None):
        with pytest.raises(TypeError):
            no_number in ix  # noqa: B015
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        0 in ix  # noqa: B015
    with pytest.raises(ValueError, match="closed"):
        ix.ids()


def test_ids_of_a_file_that_another_handle_writes(x, tmp_path):
    path = tmp_path / "live.sl"
    ix = shortlist.Index(dim=DIM)
    ix.add(x[:1000])
    ix.save(path, room=2000)
    with shortlist.open(path, read_only=False) as writer, shortlist.open(path) as reader:
        writer.add(x[1000:1500])
        assert 1200 in writer and 1200 not in reader and len(reader.ids()) == 1000
        writer.delete([7])
        writer.sync()
        assert 1200 in reader and 7 not in reader
        assert sorted(reader.ids()) == [i for i in range(1500) if i != 7]


def near(ix, q, k):
    ids, scores = ix.search(q, k=k, ef=max(200, k))
    return ids, scores


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_range_search(x, q, metric):
    ix = shortlist.Index(dim=DIM, metric=metric, refine="f32")
    ix.add(x)
    _, scores = shortlist.exact(x, q[0], k=50, metric=metric)
    radius = float(scores[-1])
    for exact in (True, False):
        lims, ids, found = ix.range_search(q, radius, exact=exact, threads=2)
        assert (lims.dtype, ids.dtype, found.dtype) == (np.int64, np.uint64, np.float32)
        assert lims.shape == (len(q) + 1,) and lims[0] == 0 and lims[-1] == len(ids) == len(found)
        assert ((found <= radius) if metric == "l2" else (found >= radius)).all()
        for i in range(len(q)):
            row = found[lims[i] : lims[i + 1]]
            assert (np.diff(row) >= 0).all() if metric == "l2" else (np.diff(row) <= 0).all()
        best, first = near(ix, q[0], 20)
        assert list(ids[:20]) == list(best) and (found[:20] == first).all()
        assert 49 <= lims[1] <= 51
    lims, ids, _ = ix.range_search(q[0], radius, filter=np.arange(len(x)) % 2 == 0)
    assert lims.shape == (2,) and len(ids) and (ids % 2 == 0).all()
    for odd in (ids + 1, lambda id: id % 2 == 1, shortlist.Filter(ix, exclude=np.arange(0, len(x), 2))):
        assert (ix.range_search(q[0], radius, filter=odd)[1] % 2 == 1).all()
    ix.delete(ids)
    assert not np.isin(ix.range_search(q[0], radius)[1], ids).any()
    everything = float("inf") if metric == "l2" else -float("inf")
    assert sorted(ix.range_search(q[0], everything)[1]) == sorted(ix.ids())
    assert ix.range_search(q, -everything)[0].tolist() == [0] * (len(q) + 1)
    assert ix.range_search(q[:0], radius)[0].tolist() == [0]


def test_range_search_refuses(ready, q):
    with pytest.raises(ValueError, match="radius is NaN"):
        ready.range_search(q, float("nan"))
    with pytest.raises(ValueError, match="slack"):
        ready.range_search(q, 0.5, slack=-1)
    with pytest.raises(ValueError, match="ef is 0"):
        ready.range_search(q, 0.5, ef=0)
    with pytest.raises(ValueError, match="dimension"):
        ready.range_search(q[:, :4], 0.5)
    with pytest.raises(TypeError):
        ready.range_search(q, None)


def test_similar_leaves_out_the_vector_itself(ready, x):
    some = np.arange(0, 200, 2, dtype=np.uint64)
    ids, scores = ready.similar(some, k=5, ef=200, threads=2)
    expected, wanted = ready.search(ready.get(some), k=6, ef=200)
    assert ids.shape == scores.shape == (len(some), 5)
    assert (expected[:, 0] == some).all() and (ids == expected[:, 1:]).all() and (scores == wanted[:, 1:]).all()
    one, alone = ready.similar(some[3], k=5, ef=200)
    assert one.shape == alone.shape == (5,) and (one == ids[3]).all()
    for filter in (np.arange(len(x)) % 2 == 0, np.arange(0, len(x), 2), lambda id: id % 2 == 0):
        ids, _ = ready.similar(some, k=5, filter=filter)
        assert (ids % 2 == 0).all() and not (ids == some[:, None]).any()
    with pytest.raises(KeyError, match=f"id {len(x)} is not"):
        ready.similar([1, len(x)])
    with pytest.raises(ValueError, match="shape"):
        ready.similar([[1]])
    with pytest.raises(ValueError, match="at most 65535"):
        ready.similar([1], k=65536)
    assert ready.similar(np.zeros(0, np.uint64))[0].shape == (0, 10)


def test_threshold_cuts_rows(ready, q):
    ids, scores = ready.search(q, k=10)
    for threshold in (scores[0, 4], float(scores[0, 4])):
        cut, left = ready.search(q, k=10, threshold=threshold)
        stays = scores >= scores[0, 4]
        assert (cut == np.where(stays, ids, np.uint64(shortlist.NO_ID))).all()
        assert np.array_equal(left, np.where(stays, scores, np.nan), equal_nan=True)
    assert (ready.similar([1, 2], threshold=2.0)[0] == shortlist.NO_ID).all()
    with pytest.raises(ValueError, match="threshold is NaN"):
        ready.search(q, threshold=float("nan"))
