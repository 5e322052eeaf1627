"""Searches among some ids alone."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import DIM, run_together

import shortlist

MOST = 2**64 - 1


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
    chosen = set(ids.tolist())
    forms = [mask, mask.tolist(), ids[::-1], ids.astype(np.uint64), np.repeat(ids, 2), chosen.__contains__]
    for form in forms:
        found, scores = ready.search(q, k=5, ef=400, filter=form, threads=2)
        assert np.isin(found, ids).all() and np.isfinite(scores).all()
        assert (found == ids[truth]).mean() > 0.95
    one, _ = ready.search(q[0], k=5, ef=400, filter=mask)
    np.testing.assert_array_equal(one, ready.search(q, k=5, ef=400, filter=mask)[0][0])


def test_ids_beyond_the_array_may_not_be_found(ready, q):
    found, _ = ready.search(q, k=5, ef=200, filter=np.ones(100, np.bool_))
    assert (found < 100).all()


def test_bytes_are_ids(ready, x, q):
    for bytes_given in (np.arange(0, 250, 3, dtype=np.uint8), np.arange(0, 100, 3, dtype=np.int8)):
        found, _ = ready.search(q, k=5, filter=bytes_given)
        assert np.isin(found, bytes_given).all()


def test_nothing_accepted(ready, q):
    for nothing in (np.zeros(0, np.bool_), np.zeros(5000, np.bool_), np.zeros(0, np.uint8), [], np.array([10**12])):
        found, scores = ready.search(q, k=3, filter=nothing)
        assert (found == shortlist.NO_ID).all() and np.isnan(scores).all()


def test_filters_that_cannot_be(ready, q):
    for wrong in ([[True]], np.ones(3), [-1], ["a"]):
        with pytest.raises(ValueError, match="filter|ids"):
            ready.search(q, filter=wrong)
    for masked in (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([True, False], mask=[0, 1])):
        with pytest.raises(ValueError, match="^filter is a masked array"):
            ready.search(q, filter=masked)
    with pytest.raises(ValueError, match="^allow is a masked array"):
        shortlist.Filter(ready, np.ma.array([1, 2], mask=[0, 1]))


def test_a_filter_is_made_once(ready, x, q):
    ids = allowed_ids(x)
    mask = as_bits(ids, len(x))
    truth, _ = shortlist.exact(x[ids], q, k=5, metric="cosine")
    filters = [
        shortlist.Filter(ready, ids),
        shortlist.Filter(ready, ids.tolist()),
        shortlist.Filter(ready, mask=mask),
        shortlist.Filter(ready, bits=np.packbits(mask, bitorder="little")),
        shortlist.Filter(ready, lambda number: number % 7 == 3),
        shortlist.Filter(ready, exclude=np.flatnonzero(~mask)),
        shortlist.Filter(ready, np.arange(len(x)), mask=mask, exclude=np.flatnonzero(~mask)),
    ]
    for made in filters:
        assert len(made) == len(ids)
        for threads in (1, 2):
            found, scores = ready.search(q, k=5, ef=400, filter=made, threads=threads)
            assert np.isin(found, ids).all() and np.isfinite(scores).all()
            assert (found == ids[truth]).mean() > 0.95


def test_each_query_has_its_filter(ready, x, q):
    ids = allowed_ids(x)
    filters = [shortlist.Filter(ready, ids), None, shortlist.Filter(ready, exclude=ids)]
    chosen = [filters[i % 3] for i in range(len(q))]
    for given in (chosen, tuple(chosen)):
        found, scores = ready.search(q, k=5, filter=given, threads=2)
        for i, one in enumerate(chosen):
            alone = ready.search(q[i], k=5, filter=one)
            np.testing.assert_array_equal(found[i], alone[0])
            np.testing.assert_array_equal(scores[i], alone[1])
    one, _ = ready.search(q[0], k=5, filter=filters[:1])
    assert np.isin(one, ids).all()
    labels = np.arange(len(q))
    found, _ = ready.similar(labels, k=5, filter=chosen)
    for i, one in enumerate(chosen):
        np.testing.assert_array_equal(found[i], ready.similar(i, k=5, filter=one)[0])


def test_lists_of_filters_that_cannot_be(ready, x, q):
    made = shortlist.Filter(ready, exclude=[1])
    for call in (ready.search, lambda _, **given: ready.similar(np.arange(len(q)), **given)):
        with pytest.raises(ValueError, match=f"filter has 2 filters for {len(q)} queries"):
            call(q, filter=[made, None])
        with pytest.raises(ValueError, match=r"filter\[1\] is int"):
            call(q, filter=[made, 3] + [None] * (len(q) - 2))
        other = shortlist.Index(x.shape[1], "cosine")
        other.add(x[:50])
        with pytest.raises(ValueError, match="query 4: the filter was made of another index"):
            call(q, filter=[made] * 4 + [shortlist.Filter(other)] + [made] * (len(q) - 5))


def test_bytes_are_ids_or_bits_as_they_are_named(ready):
    assert len(shortlist.Filter(ready, np.array([0, 1, 3], np.uint8))) == 3
    assert len(shortlist.Filter(ready, bits=np.array([0b1011], np.uint8))) == 3


def test_a_filter_takes_in_what_was_added(x, q):
    index = shortlist.Index(dim=x.shape[1])
    index.add(x[:500])
    made = shortlist.Filter(index, lambda number: number >= 400)
    assert len(made) == 100
    index.add(x[500:700])
    assert len(made) == 100
    made.refresh()
    assert len(made) == 300
    index.delete(np.arange(400, 450))
    assert len(made) == 250
    found, _ = index.search(q, k=5, filter=made)
    assert (found >= 450).all()


def test_filters_that_cannot_be_made(ready, x, q):
    def fails(number):
        raise RuntimeError(f"about {number}")

    with pytest.raises(RuntimeError, match="about"):
        shortlist.Filter(ready, fails)
    for wrong in ({"mask": np.ones(3)}, {"bits": np.ones(3)}, {"mask": [True], "bits": np.zeros(1, np.uint8)}):
        with pytest.raises(ValueError, match="mask|bits"):
            shortlist.Filter(ready, **wrong)
    with pytest.raises(ValueError, match="ids"):
        shortlist.Filter(ready, [-1])
    other = shortlist.Index(dim=x.shape[1])
    other.add(x[:50])
    with pytest.raises(ValueError, match="another index"):
        other.search(q, filter=shortlist.Filter(ready, [1]))
    made = shortlist.Filter(other, [1])
    other.close()
    with pytest.raises(ValueError, match="closed"):
        made.refresh()


def test_a_function_that_raises_later_changes_nothing(x, q):
    index, raising = shortlist.Index(dim=DIM), []

    def even(number):
        if raising and number > 300:
            raise raising[0]
        return number % 2 == 0

    index.add(x[:500])
    made = shortlist.Filter(index, even)
    before = index.search(q, filter=made)
    for error in (RuntimeError("enough"), KeyboardInterrupt()):
        raising[:] = [error]
        with pytest.raises(type(error)):
            made.refresh()
        with pytest.raises(type(error)):
            index.search(q, filter=even)
        assert len(made) == 250
        np.testing.assert_array_equal(index.search(q, filter=made)[0], before[0])
    raising.clear()
    made.refresh()
    assert len(made) == 250


def test_a_filter_of_the_deleted_alone(x, q):
    index = shortlist.Index(dim=DIM)
    index.add(x[:500])
    made = shortlist.Filter(index, np.arange(40))
    index.delete(np.arange(40))
    for form in (made, np.arange(40), shortlist.Filter(index, np.arange(40)), lambda number: number < 40):
        found, scores = index.search(q, k=3, filter=form)
        assert (found == shortlist.NO_ID).all() and np.isnan(scores).all()
        assert index.range_search(q[0], -2.0, filter=form)[1].size == 0
        assert list(index.iterate(q[0], filter=form)) == []
    assert len(made) == 0


def test_the_largest_number_is_no_id(ready, x, q):
    assert len(shortlist.Filter(ready, [MOST])) == 0
    assert len(shortlist.Filter(ready, [MOST, 5])) == 1
    assert len(shortlist.Filter(ready, exclude=np.array([MOST], np.uint64))) == len(x)
    assert (ready.search(q, filter=np.array([MOST], np.uint64))[0] == shortlist.NO_ID).all()
    assert MOST not in ready


def test_a_filter_outlives_its_names(x, q):
    """A filter keeps its index, and a search its filter."""
    index = shortlist.Index(dim=DIM)
    index.add(x[:500])
    made = shortlist.Filter(index, np.arange(100))
    gone = weakref.ref(made)
    searches = [lambda made=made: index.search(q, filter=made) for _ in range(3)]
    del made
    run_together(*searches)
    assert gone() is not None
    searches.clear()
    gc.collect()
    assert gone() is None
    alone = shortlist.Filter(index, np.arange(100))
    del index
    gc.collect()
    alone.refresh()
    assert len(alone) == 100


def test_a_refresh_waits_for_searches(x):
    """A filter that is being made reads the index as a search does. Meanwhile a refresh waits, of another filter too."""
    index, begun, order = shortlist.Index(dim=DIM), threading.Event(), []
    index.add(x[:500])
    made = shortlist.Filter(index, np.arange(100))

    def slow(number):
        if not begun.is_set():
            begun.set()
            time.sleep(0.2)
            order.append("read")
        return True

    def refresh():
        begun.wait()
        made.refresh()
        order.append("refreshed")

    run_together(lambda: shortlist.Filter(index, slow), refresh)
    assert order == ["read", "refreshed"]


def test_refreshed_while_it_is_used(x, q):
    """Searches find what the filter allowed before or after. A function's exception is raised where it was asked."""
    index, turn, stop = shortlist.Index(dim=DIM, tags=True), [0], threading.Event()
    index.add(x, tags=np.arange(len(x)) % 2 + 1)
    made = shortlist.Filter(index, any_tags=1)
    asked = shortlist.Filter(index, lambda number: (number + turn[0]) % 2)

    def search():
        while not stop.is_set():
            found, _ = index.search(q, k=5, filter=made)
            assert len({*(found % 2).ravel().tolist()}) == 1
            assert len(asked) == len(x) // 2

    def refresh():
        try:
            for i in range(10):
                index.set_tags(np.arange(len(x)), (np.arange(len(x)) + i) % 2 + 1)
                made.refresh()
                turn[0] += 1
                asked.refresh()
        finally:
            stop.set()

    run_together(search, search, refresh)


def test_no_query_has_a_filter(ready, q):
    expected, _ = ready.search(q[:2])
    np.testing.assert_array_equal(ready.search(q[:2], filter=[None, None])[0], expected)


def test_a_function_that_holds_its_filter_is_collected(x):
    class Shop:
        def __init__(self, index):
            self.filter = shortlist.Filter(index, self.sells)

        def sells(self, number):
            return True

    index = shortlist.Index(dim=DIM)
    index.add(x[:100])
    gone = [weakref.ref(Shop(index)) for _ in range(3)]
    gc.collect()
    assert [one() for one in gone] == [None] * 3
