"""A recall instead of settings."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DIM, clustered, recall

import shortlist


@pytest.fixture
def ix(x):
    index = shortlist.Index(dim=DIM, refine="f32", m=4, ef_build=16)
    index.add(x)
    return index


@pytest.fixture(scope="module")
def many():
    return clustered(2000, seed=5)


def test_reaches_the_recall_on_other_queries(ix, x, many):
    truth, _ = shortlist.exact(x, many, k=10, metric="cosine")
    report = ix.tune(many[:1000], k=10, truth=truth[:1000], targets=[0.95, 0.8])
    assert [one.target for one in report.settings] == [0.8, 0.95]
    assert report.passes > 5 and report.queries_needed > 100
    for one in report.settings:
        assert one.reached and one.limit is None and one.k == 10 and one.n == len(x) and one.queries == 1000
        ids, _ = ix.search(many[:1000], k=10, recall=one.target)
        assert recall(ids, truth[:1000]) == pytest.approx(one.recall)
        np.testing.assert_array_equal(ids, ix.search(many[:1000], k=10, ef=one.ef, rerank=one.rerank, stop=one.stop)[0])
        assert recall(ix.search(many[1000:], k=10, recall=one.target)[0], truth[1000:]) >= one.target - 0.02


def test_truth_is_found_where_it_is_not_given(ix, x, q):
    # The finer copy is the vectors themselves.
    truth, _ = shortlist.exact(x, q, k=12, metric="cosine")
    given = ix.tune(q, k=10, truth=truth, targets=(0.9,))
    assert ix.tune(q, k=10, targets=(0.9,), threads=1) == given
    assert len(ix.tune(q).settings) == 10


def test_settings_are_kept_and_saved(ix, q, tmp_path):
    ix.tune(q, k=10, targets=[0.9])
    ix.tune(q, k=5, targets=[0.7, 0.9])
    assert [(one.k, one.target) for one in ix.tuned()] == [(5, 0.7), (5, 0.9), (10, 0.9)]
    assert ix.stats()["tuned"] == 3
    ix.save(tmp_path / "x.sl")
    with shortlist.open(tmp_path / "x.sl") as opened:
        assert opened.tuned() == ix.tuned()
        opened.search(q, k=10, recall=0.85)
        # Read-only is what is added, not what is tuned.
        opened.tune(q, k=7, targets=[0.9])
        opened.save(tmp_path / "x.sl")
    with shortlist.open(tmp_path / "x.sl") as opened:
        assert [one.k for one in opened.tuned()] == [5, 5, 7, 10]


def test_out_of_reach(ix, q):
    report = ix.tune(q, k=10, targets=[1.0], max_ef=10)
    (one,) = report.settings
    assert not one.reached and one.limit == "ef" and one.recall < 1
    with pytest.raises(KeyError, match="out of reach"):
        ix.search(q, k=10, recall=1)


def test_refused(ix, q):
    with pytest.raises(KeyError, match="no tuned settings"):
        ix.search(q, k=10, recall=0.9)
    for wrong in (0, -1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="recall is"):
            ix.search(q, k=10, recall=wrong)
        with pytest.raises(ValueError, match="target 0 is"):
            ix.tune(q, targets=[wrong])
    with pytest.raises(TypeError, match="recall must be a number"):
        ix.search(q, recall=[0.9])
    with pytest.raises(ValueError, match="20 queries"):
        ix.tune(q[:20])
    with pytest.raises(ValueError, match="truth has shape"):
        ix.tune(q, truth=np.zeros((len(q), 3), np.uint64))
    with pytest.raises(ValueError, match="targets have shape"):
        ix.tune(q, targets=0.9)
    with pytest.raises(KeyError, match="truth of query 0"):
        ix.tune(q, truth=np.arange(len(q) * 10).reshape(len(q), 10) + 10**6)
    assert ix.tuned() == []


def test_row_numbers_for_ids(x, q):
    """Row numbers that the index has as ids of other vectors: the truth is refused, and no graph is blamed."""
    turned = shortlist.Index(dim=x.shape[1])
    turned.add(x, ids=np.roll(np.arange(len(x)), len(x) // 2))
    truth, _ = shortlist.exact(x, q, k=10, metric="cosine")
    with pytest.raises(ValueError, match="chance.*row numbers"):
        turned.tune(q, k=10, truth=truth)
    assert turned.tuned() == []
    turned.tune(q, k=10, truth=np.roll(np.arange(len(x)), len(x) // 2)[truth], targets=[0.9])


def test_progress_cancels(ix, q):
    with pytest.raises(shortlist.Error, match="cancel"):
        ix.tune(q, progress=lambda done, total: True)
    assert ix.tuned() == []
