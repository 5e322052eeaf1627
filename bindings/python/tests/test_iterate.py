"""Results page by page."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import shortlist


def test_pages_are_one_search(ready, x, q):
    for query in q[:20]:
        pages = [page for page, _ in zip(ready.iterate(query, page=10, ef=100), range(10))]
        ids = np.concatenate([ids for ids, _ in pages])
        assert [len(ids) for ids, _ in pages] == [10] * 10
        assert len(np.unique(ids)) == 100
        assert np.isin(ids, ready.search(query, k=100, ef=100)[0]).mean() > 0.98
        assert all((np.diff(scores) <= 0).all() for _, scores in pages)
        assert pages[0][0].dtype == np.uint64 and pages[0][1].dtype == np.float32


def test_everything_comes_once(ready, x, q):
    ids = np.concatenate([ids for ids, _ in ready.iterate(q[0], page=300)])
    assert sorted(ids) == list(range(len(x)))


def test_filters(ready, x, q):
    allowed = np.arange(5, len(x), 9)
    forms = [
        allowed,
        np.isin(np.arange(len(x)), allowed),
        shortlist.Filter(ready, allowed),
        shortlist.Filter(ready, lambda i: i % 9 == 5),
    ]
    for form in forms:
        ids = np.concatenate([ids for ids, _ in ready.iterate(q[0], page=50, filter=form)])
        assert sorted(ids) == list(allowed)
    assert list(ready.iterate(q[0], filter=[])) == []


def test_visits_are_bounded(ready, x, q):
    pages = list(ready.iterate(q[0], page=200, max_visits=200))
    assert any(len(ids) < 200 for ids, _ in pages[:-1])
    assert sorted(i for ids, _ in pages for i in ids.tolist()) == list(range(len(x)))


def test_an_iterator_outlives_its_names(x, q):
    ix = shortlist.Index(dim=x.shape[1])
    ix.add(x[:500])
    pages = ix.iterate(q[0], page=7, filter=shortlist.Filter(ix, np.arange(100)))
    next(pages)
    del ix
    assert sum(len(ids) for ids, _ in pages) == 93


def test_changes(x, q):
    ix = shortlist.Index(dim=x.shape[1])
    ix.add(x[:500])
    pages = ix.iterate(q[0], page=100)
    first = next(pages)[0]
    gone = np.setdiff1d(np.arange(0, 500, 2), first)
    ix.delete(gone)
    rest = np.concatenate([ids for ids, _ in pages])
    assert sorted(np.concatenate([first, rest])) == sorted(np.setdiff1d(np.arange(500), gone))
    ix = shortlist.Index(dim=x.shape[1])
    ix.add(x[:500])
    there = ix.ids()
    pages = ix.iterate(q[0], page=50)
    first = next(pages)[0]
    ix.add(x[500:510])
    ix.add(x[510:511], ids=first[-1:], replace=True)
    assert sorted([*first, *np.concatenate([ids for ids, _ in pages])]) == sorted(there), "only what was there"
    pages = ix.iterate(q[0])
    next(pages)
    ix.add(np.tile(x, (3, 1)))
    with pytest.raises(ValueError, match="renumbered"):
        next(pages)
    pages = ix.iterate(q[0])
    ix.close()
    with pytest.raises(ValueError, match="closed"):
        next(pages)


def test_what_cannot_be_iterated(ready, q):
    for wrong in (q[:2], q[0][:5], np.full(q.shape[1], np.nan), "q"):
        with pytest.raises(ValueError):
            ready.iterate(wrong)
    for page in (0, -1, shortlist._core.MAX_EF + 1):
        with pytest.raises(ValueError, match="page"):
            ready.iterate(q[0], page=page)
    with pytest.raises(ValueError, match="ef"):
        ready.iterate(q[0], ef=0)


def test_threads_side_by_side(ready, q):
    alone = [np.concatenate([ids for ids, _ in ready.iterate(query, page=100)]) for query in q[:4]]
    found: list[object] = [None] * 4

    def iterate(i: int) -> None:
        found[i] = np.concatenate([ids for ids, _ in ready.iterate(q[i], page=100)])

    threads = [threading.Thread(target=iterate, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_array_equal(alone[i], found[i])
