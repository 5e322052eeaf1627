"""Vectors deleted: what is left is found, and what is gone is gone until it is added again."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM, clustered

import shortlist


@pytest.fixture
def made(x):
    ix = shortlist.Index(dim=DIM, metric="l2", codes="f32")
    ix.add(x)
    return ix


def left_of(x, q, gone, k):
    """Ids of the k nearest rows that are left."""
    kept = np.setdiff1d(np.arange(len(x)), gone)
    return kept[shortlist.exact(x[kept], q, k=k, metric="l2")[0].astype(np.int64)]


@pytest.mark.parametrize("share", [0.1, 0.9, 0.99])
def test_what_is_left_is_found(made, x, q, share):
    gone = np.random.default_rng(1).permutation(len(x))[: int(share * len(x))]
    made.delete(gone)
    assert len(made) == len(x) - len(gone) == made.stats()["n"]
    stats = made.stats()
    assert stats["deleted"] + stats["reusable"] == len(gone)
    assert f"{len(made)} vectors" in repr(made)
    ids, scores = made.search(q, k=5, ef=200)
    assert not np.isin(ids, gone).any() and np.isfinite(scores).all()
    assert (ids == left_of(x, q, gone, 5)).mean() > 0.98
    ids, _ = made.search(q[0], k=5)
    assert ids.shape == (5,) and not np.isin(ids, gone).any()
    report = made.check()
    assert (report.n, report.deleted) == (len(made), stats["deleted"])


def test_all_or_nothing(made, x):
    made.delete(7)
    for ids, says in (([5, len(x)], f"id {len(x)} "), ([5, 7], "id 7 "), ([5, 6, 5], "given twice")):
        with pytest.raises(KeyError, match=says):
            made.delete(ids)
        assert len(made) == len(x) - 1
        made.get([5, 6])
    with pytest.raises(KeyError):
        made.get(7)
    made.delete([])
    for ids, says in (([[1, 2]], "shape"), ([-1], "-1"), ([1.5], "whole numbers")):
        with pytest.raises(ValueError, match=says):
            made.delete(ids)
    made.delete(np.array([5, 6], np.int32))
    assert len(made) == len(x) - 3


def test_added_again(made, x):
    other = clustered(2, seed=99)
    made.delete([3, len(x) - 1])
    made.add(other, ids=[len(x) - 1, 3])
    assert len(made) == len(x) and made.stats()["deleted"] == 2
    np.testing.assert_array_equal(made.get([len(x) - 1, 3]), other)
    np.testing.assert_array_equal(made.search(other, k=1)[0].ravel(), [len(x) - 1, 3])
    made.delete(len(x) - 1)
    made.add(other[:1])
    np.testing.assert_array_equal(made.get(len(x)), other[0])


def test_kept_in_files(made, q, tmp_path):
    made.delete(range(0, 500))
    wanted = made.search(q)[0]
    made.save(tmp_path / "x.sl")
    mapped = shortlist.open(tmp_path / "x.sl")
    # The save has left out places that had been wiped.
    assert len(mapped) == len(made) and mapped.stats()["deleted"] in (0, 500) and mapped.stats()["reusable"] == 0
    np.testing.assert_array_equal(mapped.search(q)[0], wanted)
    with pytest.raises(shortlist.Error, match="place='dram', read_only=False to delete") as caught:
        mapped.delete(600)
    assert caught.value.status == "SL_EREADONLY"
    copied = shortlist.open(tmp_path / "x.sl", place="dram")
    copied.delete(600)
    assert len(copied) == len(made) - 1


def test_tuned_among_what_is_left(made, x, q):
    made.delete(range(0, len(x), 2))
    report = made.tune(np.repeat(q, 2, axis=0), k=5, targets=[0.9])
    assert report.settings[0].n == len(made)
    ids, _ = made.search(q, k=5, recall=0.9)
    assert (ids % 2 == 1).all()


def test_closed(made):
    made.close()
    with pytest.raises(ValueError, match="closed"):
        made.delete(1)
